"""Profiles by Nsight Compute of kernels that are bound by something known."""

from __future__ import annotations

import pytest

from cuda_sandbox import driver
from cuda_sandbox.backend import find
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.profiler import profile
from cuda_sandbox.signature import Role, Signature, TensorSpec
from fitness.bottleneck import bound_by

COUNT = 1 << 26
SIGNATURE = Signature(
    "scale",
    (TensorSpec("x", "float32", (COUNT,), Role.INPUT),),
    (TensorSpec("out", "float32", (COUNT,), Role.OUTPUT),),
)
LAUNCH = """
extern "C" int launch(const float* x, float* out, void* workspace, cudaStream_t stream) {
    work<<<132 * 8, 256, 0, stream>>>(x, out);
    return cudaGetLastError();
}
"""
KERNELS = {
    "dram": """
__global__ void work(const float* x, float* out) {
    const float4* from = (const float4*)x;
    float4* to = (float4*)out;
#pragma unroll 4
    for (int i = blockIdx.x * 256 + threadIdx.x; i < X_SIZE / 4; i += 132 * 8 * 256) {
        const float4 v = from[i];
        to[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
    }
}""",
    "fma": """
__global__ void work(const float* x, float* out) {
    float a = x[threadIdx.x], b = 1.0001f, c = 2, d = 3;
    for (int i = 0; i < 20000; ++i) {
        a = fmaf(a, b, c); c = fmaf(c, b, d); d = fmaf(d, b, 1.f); b = fmaf(b, .5f, .5f);
    }
    out[blockIdx.x * 256 + threadIdx.x] = a + b + c + d;
}""",
    "shared": """
__global__ void work(const float* x, float* out) {
    __shared__ float held[2048];
    for (int i = threadIdx.x; i < 2048; i += 256) held[i] = x[i];
    __syncthreads();
    float sum = 0;
    int at = threadIdx.x * 8 % 2048;
    for (int i = 0; i < 4000; ++i) { sum += held[at]; at = (at + 8) & 2047; }
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}""",
    "latency": """
__global__ void work(const float* x, float* out) {
    if (threadIdx.x >= 32 || blockIdx.x >= 132) return;
    int at = threadIdx.x;
    for (int i = 0; i < 3000; ++i) at = ((int)x[at] + at * 40503 + 77777) & (X_SIZE - 1);
    out[blockIdx.x * 32 + threadIdx.x] = at;
}""",
}


@pytest.mark.parametrize("bound", KERNELS)
def test_a_kernel_is_told_what_it_is_bound_by_or_why_that_is_not_known(bound):
    probe = find("cuda").probe(driver.device(0).arch, ())
    if probe.missing:
        pytest.skip(probe.missing)
    kernel = Kernel(KERNELS[bound] + LAUNCH, "cuda")

    found = profile(kernel, SIGNATURE, probe, lambda: {"x": bytes(4 * COUNT)})

    print(found)
    if found.missing:
        assert "administrators" in found.missing, found.missing
        pytest.skip(found.missing)
    (launch,) = found.launches
    assert launch.function == "work"
    assert launch.time_ms > 0
    assert launch.occupancy is not None
    assert sum(launch.stalls.values()) <= 100.1
    assert bound_by(launch.busy) == bound, launch
