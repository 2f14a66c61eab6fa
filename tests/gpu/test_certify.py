"""Certification on a GPU: sanitizers, clocks, PyTorch in every mode, one sitting."""

from __future__ import annotations

import time

import pytest
import torch

from cuda_sandbox.compiler import Compiler
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.nvml import Gpu
from cuda_sandbox.report import Status
from fitness.certificate import Terms
from fitness.certify import certify
from fitness.evaluation import Demand
from fitness.judge import Judge
from fitness.stopwatch import Stopwatch

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x @ x.T)

def get_inputs():
    return [torch.randn(512, 512)]

def get_init_inputs():
    return []
"""
SOURCE = """
__global__ void product(const float* x, float* out) {
    __shared__ float left[32][33], right[32][33];
    int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    double sum = 0;
    for (int k = 0; k < X_D1; k += 32) {
        left[threadIdx.y][threadIdx.x] = x[row * X_D1 + k + threadIdx.x];
        const int other = blockIdx.x * 32 + threadIdx.y;
        right[threadIdx.y][threadIdx.x] = x[other * X_D1 + k + threadIdx.x];
        FIRST
        for (int i = 0; i < 32; ++i) sum += left[threadIdx.y][i] * right[threadIdx.x][i];
        SECOND
    }
    out[row * X_D0 + column] = sum > 0 ? sum : 0;
}
extern "C" int launch(const float* x, float* out, void* workspace, cudaStream_t stream) {
    product<<<dim3(X_D0 / 32, X_D0 / 32), dim3(32, 32), 0, stream>>>(x, out);
    return cudaGetLastError();
}
"""
BARRIER = "__syncthreads();"


def product(first=BARRIER, second=BARRIER):
    return Kernel(SOURCE.replace("FIRST", first).replace("SECOND", second), "cuda")


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    path = tmp_path_factory.mktemp("task") / "square.py"
    path.write_text(TASK)
    with Compiler() as compiler:
        judge = Judge(path, Demand(), "cuda:0", compiler=compiler)
        yield judge
        judge.close()


def certified(judge, kernel, **rivals):
    def built(one):
        return one, judge.compiler.submit(one, judge.signature, judge.arch).result()

    parents = {name: built(rival) for name, rival in rivals.items()}
    return certify(judge, built(kernel), parents, Terms(sanitizer_s=60.0))


def test_a_sound_kernel_is_certified_beside_pytorch_in_every_mode(judge):
    found = certified(judge, product(), parent=product(second=BARRIER + BARRIER))

    document = found.certificate
    assert found.status is Status.OK, found.reason
    print("\n".join(f"{name}: {said}" for name, said in document["checks"].items()))
    for tool in ("memcheck", "racecheck", "initcheck", "synccheck"):
        assert document["checks"][tool].startswith(("passed", "not run: ")), tool
    assert document["checks"]["memcheck"] == "passed"
    print(document["baselines"], document["figures"]["absent"])
    assert set(document["baselines"]) == set(judge.baselines.modes)
    quick = {"eager", "eager_tf32", "half", "graph"}
    assert quick <= document["figures"]["time_ms"].keys()
    assert document["baselines"]["eager_tf32"]["tier"] == "tf32"
    again = document["figures"]["speedup"]["kernel again"]["median"]
    assert 0.95 < again < 1.05
    print(document["clocks"])
    assert "MHz" in document["clocks"]["summary"]
    assert document["clocks"]["during"]["readings"] >= 1
    print("\n".join(document["bottleneck"]))
    assert document["bottleneck"]


def test_a_missing_barrier_is_found_by_racecheck(judge):
    """Right by luck or not: without the second barrier the next tile may be overwritten early."""
    found = certified(judge, product(second=""))

    assert not found.correct
    checks = found.certificate["checks"]
    raced = checks["racecheck"].startswith("failed: ")
    assert raced or checks["verdict"].startswith("failed: "), checks


def test_a_call_that_takes_long_to_queue_is_not_held_against_pytorch():
    device = torch.device("cuda:0")
    x = torch.ones(1000, device=device)

    def slow_to_queue():
        time.sleep(0.0005)
        return x.add_(1)

    stopwatch = Stopwatch(device)
    for _ in range(3):
        stopwatch(slow_to_queue)

    assert min(stopwatch(slow_to_queue) for _ in range(5)) < 0.1


def test_clocks_and_limits_are_read_from_the_driver():
    gpu = Gpu(f"GPU-{torch.cuda.get_device_properties(0).uuid}")

    assert gpu.read().sm_mhz > 0
    assert gpu.limits().driver
    began = time.monotonic()
    for _ in range(20):
        gpu.read()
    assert time.monotonic() - began < 1.0
