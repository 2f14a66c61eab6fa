# task: relu
# does: is a C++ extension of PyTorch
# demand: own
# needs: ninja
# devices: cpu
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    const float* from = x.data_ptr<float>();
    float* to = out.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] > 0 ? from[i] : 0;
    return out;
}
"""
extension = load_inline("honest_relu", SOURCE, functions=["relu"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
