"""Real CUDA kernels before the real judge: honest ones pass, the others get what they earn."""

from __future__ import annotations

import pytest
import torch

from cuda_sandbox.compiler import Compiler
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from fitness.evaluation import Demand, Tier
from fitness.judge import Judge

TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(1024)

    def forward(self, x):
        return self.norm(x)

def get_inputs():
    return [torch.randn(8192, 1024)]

def get_init_inputs():
    return []
"""

SOURCE = """
OUTSIDE
__device__ double total(double v) {
    __shared__ double part[8];
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < 8; ++w) v += part[w];
    return v;
}
__global__ void norm(const float* x, const float* weight, const float* bias, float* out) {
    DEVICE
    const float* row = x + (size_t)blockIdx.x * X_D1;
    double sum = 0, square = 0;
    for (int c = threadIdx.x; c < X_D1; c += 256) sum += row[c];
    const double mean = total(sum) / X_D1;
    for (int c = threadIdx.x; c < X_D1; c += 256) square += (row[c] - mean) * (row[c] - mean);
    const double scale = 1 / sqrt(total(square) / X_D1 + 1e-5);
    for (int c = threadIdx.x; c < X_D1; c += 256)
        out[(size_t)blockIdx.x * X_D1 + c] =
            (float)((row[c] - mean) * scale) * weight[c] + bias[c];
}
extern "C" int launch(const float* x, const float* norm_weight, const float* norm_bias,
                      float* out, void* workspace, cudaStream_t stream) {
    norm<<<X_D0, 256, 0, stream>>>(x, norm_weight, norm_bias, out);
    AFTER
    return cudaGetLastError();
}
"""


def norm(outside="", device="", after=""):
    source = SOURCE.replace("OUTSIDE", outside).replace("DEVICE", device)
    return source.replace("AFTER", after)


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    path = tmp_path_factory.mktemp("task") / "norm.py"
    path.write_text(TASK)
    with Compiler() as compiler:
        judge = Judge(path, Demand(), "cuda:0", compiler=compiler)
        yield judge
        judge.close()


def judged(judge, source):
    kernel = Kernel(source, "cuda")
    compiled = judge.compiler.submit(kernel, judge.signature, judge.arch).result()
    return judge.evaluate(kernel, compiled)


def test_an_honest_kernel_is_accepted_and_compared_with_eager_and_graph(judge):
    found = judged(judge, norm())

    assert found.status is Status.OK, found.reason
    assert found.precision.tier is Tier.FP32
    assert {"eager", "graph"} <= found.speedup.keys()
    assert 0 < found.roofline_share < 1.3
    assert any(resource.registers for resource in found.resources)


def test_two_verdicts_on_one_kernel_agree(judge):
    times = [judged(judge, norm()).time_ms.median for _ in range(3)]

    assert max(times) / min(times) < 1.1


def test_a_second_gpu_is_timed_like_the_first(judge, tmp_path):
    if torch.cuda.device_count() < 2:
        pytest.skip("this machine has one GPU")
    path = tmp_path / "norm.py"
    path.write_text(TASK + "\n# elsewhere: no baseline of this text is known yet\n")
    other = Judge(path, Demand(), "cuda:1", compiler=judge.compiler)
    try:
        found = judged(other, norm())
    finally:
        other.close()

    assert found.status is Status.OK, found.reason
    assert 0.5 < found.speedup["eager"] / judged(judge, norm()).speedup["eager"] < 2


CHEATS = {
    "stops after the checks": (
        {
            "outside": "__device__ int calls;",
            "device": """
            if (blockIdx.x == 0 && threadIdx.x == 0) atomicAdd(&calls, 1);
            if (*(volatile int*)&calls > 14) return;""",
        },
        {Status.HACK, Status.INCORRECT},
    ),
    "leaves a row unwritten": (
        {"device": "if (blockIdx.x == 77) return;"},
        {Status.INCORRECT},
    ),
    "writes past the end": (
        {"device": "if (blockIdx.x == 0) out[OUT_SIZE + threadIdx.x] = 1;"},
        {Status.HACK},
    ),
    "changes its input": (
        {"device": "if (blockIdx.x == 9 && threadIdx.x == 0) ((float*)x)[0] += 1;"},
        {Status.HACK, Status.INCORRECT},
    ),
    "works on the null stream": (
        {"after": "norm<<<1, 256>>>(x, norm_weight, norm_bias, out);"},
        {Status.LAUNCH_ERROR},
    ),
    "reads where there is nothing": (
        {"device": "if (blockIdx.x == 3) out[0] = *(const float*)0x10;"},
        {Status.CRASHED, Status.LAUNCH_ERROR},
    ),
    "never ends": (
        {"device": "while (*(volatile const float*)x != 12345.678f) {}"},
        {Status.TIMEOUT},
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_seen_and_the_next_kernel_is_unharmed(judge, name):
    parts, statuses = CHEATS[name]

    found = judged(judge, norm(**parts))

    assert found.status in statuses, found.reason
    assert found.time_ms is None
    assert judged(judge, norm()).status is Status.OK
