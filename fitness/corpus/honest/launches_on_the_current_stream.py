# task: relu
# does: is a CUDA extension that asks for the current stream
# demand: own
# needs: ninja
# devices: cuda
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

KERNEL = """
__global__ void relu_kernel(const float* from, float* to, int64_t count) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < count) to[i] = from[i] > 0 ? from[i] : 0;
}
torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int64_t count = x.numel();
    relu_kernel<<<(count + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), out.data_ptr<float>(), count);
    return out;
}
"""
extension = load_inline(
    "honest_relu_current",
    "torch::Tensor relu(torch::Tensor x);",
    cuda_sources="#include <c10/cuda/CUDAStream.h>" + KERNEL,
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
