"""CUDA kernels, good and bad, in real workers on a real device."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuda_sandbox import driver
from cuda_sandbox.backend import find
from cuda_sandbox.compiler import Compiler
from cuda_sandbox.cuda_buffers import CudaBuffers
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CandidateFailure, Status
from cuda_sandbox.sandbox import Worker
from cuda_sandbox.sanitizer import sanitize
from cuda_sandbox.screen import with_extra
from cuda_sandbox.signature import Role, Signature, TensorSpec

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch")

SIZE = 1 << 20
SIGNATURE = Signature(
    "relu",
    (TensorSpec("x", "float32", (1024, 1024), Role.INPUT),),
    (TensorSpec("out", "float32", (1024, 1024), Role.OUTPUT),),
)
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
// extra
__global__ void relu(const float* x, float* out) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < X_SIZE) out[i] = x[i] > 0 ? x[i] : 0;
    // device
}
__global__ void endless(const volatile float* x) { while (*x != 1e30f) {} }
int launch(const float* x, float* out, void* workspace, cudaStream_t stream) {
    // before
    relu<<<(X_SIZE + 255) / 256, 256, 0, stream>>>(x, out);
    // after
    return cudaGetLastError();
}
size_t workspace_bytes() { return 1 << 20; }
"""
FORK = """cudaStream_t own = stream, side; cudaEvent_t a, b;
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreate(&a); cudaEventCreate(&b);
    cudaEventRecord(a, own); cudaStreamWaitEvent(side, a, 0); stream = side;"""
JOIN = "cudaEventRecord(b, side); cudaStreamWaitEvent(own, b, 0);"
MAP = """CUtensorMap map; uint64_t dims[2] = {1024, 1024}, strides[1] = {4096};
    uint32_t box[2] = {32, 8}, steps[2] = {1, 1};
    if (int code = kernelevo_tensor_map_tiled(
            &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void*)x, dims, strides, box, steps,
            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)) return code;"""
SYSTEM_CALL = """long r;
    asm volatile("syscall" : "=a"(r) : "a"(NUMBERL), "D"(1L), "S"(1L), "d"(0L)
                 : "rcx", "r11", "memory");
    printf("%ld\\n", r);"""

GOOD = {
    "plain": {},
    "copies": {
        "after": "cudaMemsetAsync(workspace, 0, 4096, stream); cudaMemcpyAsync("
        "(char*)workspace + 4096, workspace, 4096, cudaMemcpyDeviceToDevice, stream);"
    },
    "fork": {"before": FORK, "after": JOIN},
    "tma": {"before": MAP},
}
BAD = {
    "null_stream": ({"before": "stream = 0;"}, Status.LAUNCH_ERROR, "use the stream it was given"),
    "unjoined": ({"before": FORK}, Status.LAUNCH_ERROR, "must join it again"),
    "elsewhere": (
        {"before": "cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);"},
        Status.LAUNCH_ERROR,
        "enqueued nothing",
    ),
    "malloc": ({"after": "cudaMalloc(&workspace, 64);"}, Status.LAUNCH_ERROR, "must not allocate"),
    "malloc_async": (
        {"after": "cudaMallocAsync(&workspace, 64, stream);"},
        Status.LAUNCH_ERROR,
        "enqueued an allocation",
    ),
    "host_function": (
        {"after": "cudaLaunchHostFunc(stream, [](void*) {}, nullptr);"},
        Status.LAUNCH_ERROR,
        "enqueued a host function",
    ),
    "host_copy": (
        {
            "after": "static float host[4];"
            "cudaMemcpyAsync(host, x, 16, cudaMemcpyDeviceToHost, stream);"
        },
        Status.LAUNCH_ERROR,
        "copy from or to host memory",
    ),
    "synchronise": (
        {"after": "cudaStreamSynchronize(stream);"},
        Status.LAUNCH_ERROR,
        "cudaErrorStreamCapture",
    ),
    "returns": ({"after": "return 1;"}, Status.LAUNCH_ERROR, "returned 1 (cudaErrorInvalidValue"),
    "too_large": (
        {"after": "relu<<<1, 4096, 0, stream>>>(x, out);"},
        Status.LAUNCH_ERROR,
        "cudaErrorInvalidValue",
    ),
    "illegal": (
        {"device": "if (i == 5) *(volatile float*)8 = 1;"},
        Status.CRASHED,
        "cudaErrorIllegalAddress",
    ),
    "trap": ({"device": "if (i == 5) __trap();"}, Status.CRASHED, "cudaErrorLaunchFailure"),
    "exits": ({"after": "exit(0);"}, Status.CRASHED, "exited with code 0"),
    "segfault": ({"after": "*(volatile int*)8 = 1;"}, Status.CRASHED, "SIGSEGV"),
    "constructor": (
        {"extra": "__attribute__((constructor)) static void early() { _Exit(0); }"},
        Status.CRASHED,
        "exited with code 0 during its start",
    ),
    "socket": (
        {"after": SYSTEM_CALL.replace("NUMBER", "41")},
        Status.CRASHED,
        "forbidden system call socket",
    ),
    "fork_call": (
        {"after": SYSTEM_CALL.replace("NUMBER", "57")},
        Status.CRASHED,
        "forbidden system call fork",
    ),
    "ahead": (
        {
            "before": "cudaStream_t own; cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);"
            "endless<<<1, 1, 0, own>>>(x);"
        },
        Status.HACK,
        "work running outside of the stream",
    ),
    "hang": (
        {"device": "if (i == 5) while (*(volatile float*)x != 1e30f);"},
        Status.TIMEOUT,
        "no answer within",
    ),
}
QUIET = {
    "beside": {"device": "if (i == 5) out[X_SIZE + 10] = 1;"},
    "input": {"device": "if (i == 5) ((float*)x)[7] = 123;"},
    "flood": {"after": 'for (int i = 0; i < 50000; ++i) puts("I repeat, I repeat");'},
}


def source(parts: dict[str, str]) -> str:
    text = SOURCE
    for place, code in parts.items():
        text = text.replace(f"// {place}", code)
    return text


class Bench:
    """All kernels compiled (past the screen, so that the worker's own rules are tried)."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.backend = find("cuda")
        kernels = {**GOOD, **QUIET, **{name: parts for name, (parts, _, _) in BAD.items()}}
        with pytest.MonkeyPatch.context() as patch, Compiler(cache) as compiler:
            patch.setattr(type(self.backend), "rules", with_extra(".*", ".*"))
            arch = driver.device(0).arch
            futures = {
                name: compiler.submit(Kernel(source(parts), "cuda"), SIGNATURE, arch)
                for name, parts in kernels.items()
            }
            self.reports = {name: future.result() for name, future in futures.items()}
            self.paths = {
                name: compiler.object_path(str(report.object_key))
                for name, report in self.reports.items()
            }
        self.buffers = CudaBuffers(SIGNATURE.tensors)
        self.x = torch.as_tensor(self.buffers.region("x"), device="cuda").view(torch.float32)
        self.out = torch.as_tensor(self.buffers.region("out"), device="cuda").view(torch.float32)

    def worker(self, name: str, deadline_s: float = 20.0) -> Worker:
        assert self.reports[name].object_key, self.reports[name]
        self.x.normal_()
        self.out.fill_(float("nan"))
        torch.cuda.synchronize()
        return Worker(
            self.backend,
            self.paths[name],
            self.buffers,
            device="cuda:0",
            deadline_s=deadline_s,
            cache_dir=self.cache,
        )

    def try_out(self, name: str) -> None:
        with self.worker(name, 4.0) as worker:
            worker.bind()
            worker.run(2, flush=False)

    def correct(self) -> bool:
        return bool(torch.equal(self.out, self.x.clamp(min=0)))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("cuda"))
    yield bench
    del bench.x, bench.out
    bench.buffers.close()


@pytest.mark.parametrize("name", GOOD)
def test_a_kernel_is_captured_and_replayed(bench: Bench, name: str) -> None:
    with bench.worker(name) as worker:
        assert worker.workspace_bytes == 1 << 20
        worker.bind()
        assert torch.isnan(bench.out).all()  # capturing runs nothing
        assert len(worker.run(70, flush=True)) == 70
        assert bench.correct()
        bench.x.normal_()
        torch.cuda.synchronize()
        times = worker.run(1, flush=False)
        assert bench.correct()
        assert 0 < times[0] < 100
        assert 0 <= worker.run_empty(5, flush=False)[0] < 10
        bench.out.fill_(float("nan"))
        torch.cuda.synchronize()
        assert worker.run_bare(300) == []
        assert bench.correct()
    assert bench.buffers.damaged() == ()


@pytest.mark.parametrize("name", BAD)
def test_a_kernel_that_breaks_a_rule_is_told_which(bench: Bench, name: str) -> None:
    _, status, reason = BAD[name]
    with pytest.raises(CandidateFailure) as caught:
        bench.try_out(name)
    assert caught.value.status is status
    assert reason in caught.value.reason


def test_the_device_works_on_after_all_of_them(bench: Bench) -> None:
    bench.x.normal_()
    assert bool((bench.x + 1).isfinite().all())


def test_a_write_beside_a_tensor_is_seen(bench: Bench) -> None:
    with bench.worker("beside") as worker:
        worker.bind()
        worker.run(1, flush=False)
    assert bench.buffers.damaged() == ("out",)
    assert bench.buffers.damaged() == ()


def test_calls_go_through_the_sets_of_buffers_in_turns(bench: Bench) -> None:
    more = CudaBuffers(SIGNATURE.tensors)
    x, out = (
        torch.as_tensor(more.region(n), device="cuda").view(torch.float32) for n in ("x", "out")
    )
    try:
        with bench.worker("plain") as worker:
            x.normal_()
            out.fill_(float("nan"))
            torch.cuda.synchronize()
            worker.bind(more)
            worker.run(1, flush=False)
            assert bench.correct()
            assert torch.isnan(out).all()
            assert len(worker.run(2, flush=True)) == 2
            assert torch.equal(out, x.clamp(min=0))
    finally:
        del x, out
        more.close()


def test_a_changed_input_is_visible_to_the_judge(bench: Bench) -> None:
    with bench.worker("input") as worker:
        worker.bind()
        worker.run(1, flush=False)
    assert bench.x[7] == 123


def test_a_flood_of_output_is_cut(bench: Bench) -> None:
    with bench.worker("flood") as worker:
        worker.bind()
        worker.run(1, flush=False)
        assert len(worker.output) <= 1 << 16
        assert bench.correct()


def test_nothing_is_left_after_a_hang(bench: Bench) -> None:
    with bench.worker("hang", 2.0) as worker:
        worker.bind()
        pid = worker.pid
        with pytest.raises(CandidateFailure):
            worker.run(1, flush=False)
    assert not Path(f"/proc/{pid}").exists()


def test_a_frozen_worker_goes_on_afterwards(bench: Bench) -> None:
    with bench.worker("plain") as worker:
        worker.bind()
        with worker.frozen():
            time.sleep(0.01)
        worker.run(1, flush=False)
        assert bench.correct()


def certify(cache: Path, parts: dict[str, str]) -> dict[str, str]:
    kernel = Kernel(source(parts), "cuda")
    data = {"x": bytes(4 * SIZE)}
    return sanitize(kernel, SIGNATURE, driver.device(0).arch, data, cache_dir=cache)


def test_compute_sanitizer_passes_a_good_kernel(bench: Bench) -> None:
    tools = ("memcheck", "racecheck", "initcheck", "synccheck")
    assert certify(bench.cache, {}) == dict.fromkeys(tools, "passed")


def test_compute_sanitizer_finds_races_and_writes_out_of_bounds(bench: Bench) -> None:
    race = """__shared__ float shared[256];
    shared[threadIdx.x] = i;
    if (i == 5) out[X_SIZE] = 1;
    if (i < X_SIZE && x[i] > 1e30f) out[i] = shared[255 - threadIdx.x];
    shared[(threadIdx.x + 33) % 256] += 1;"""
    found = certify(bench.cache, {"device": race})
    assert found["memcheck"].startswith("failed: Invalid __global__ write of size 4 bytes")
    assert "kernel.cu:" in found["memcheck"]
    assert found["racecheck"].startswith("failed: ")
