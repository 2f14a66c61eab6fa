"""Real kernels that misbehave in real workers: what the judge is told, and that it goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cuda_sandbox.backend import find
from cuda_sandbox.buffers import HostBuffers
from cuda_sandbox.compiler import Compiler
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CandidateFailure, Status
from cuda_sandbox.sandbox import Worker
from cuda_sandbox.signature import Signature

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="raw system calls")

# One object that does what the input `what` says: one compilation serves all tests.
WILD = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long sys(long n, long a = 0, long b = 0, long c = 0) {
    long r;
    asm volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return r;
}
static int deep(volatile int n) {
    volatile char page[4096];
    page[n % 4096] = n;
    return deep(n + 1) + page[0];
}
size_t workspace_bytes() { return 1000; }
int launch(const float* x, const int32_t* what, float* out, void* workspace) {
    for (long i = 0; i < X_SIZE; ++i) out[i] = x[i] > 0 ? x[i] : 0;
    switch (*what) {
        case 1: exit(0);
        case 2: _exit(3);
        case 3: abort();
        case 4: for (;;) asm volatile("");
        case 5: *(volatile int*)8 = 1; break;
        case 6: out[X_SIZE + 2000] = 1; break;
        case 7: out[0] = x[X_SIZE + 2000]; break;
        case 8: out[-100] = 1; break;
        case 9: ((float*)x)[128] = 1; break;
        case 10: return 7;
        case 11: throw 1;
        case 12: sys(57); break;                           // fork
        case 13: sys(41, 1, 1, 0); break;                  // socket
        case 14: sys(62, -1, 9); break;                    // kill everybody
        case 15: sys(59, (long)"/bin/sh", 0, 0); break;    // execve
        case 16: out[0] = sys(2, (long)"/etc/passwd", 0); break;
        case 17: out[0] = sys(2, (long)"/tmp/notes", 0101, 0600); break;
        case 18: for (int i = 0; i < 20000; ++i) puts("I repeat, I repeat, I repeat"); break;
        case 19: sys(10, (long)x & ~4095, 4096, 3); ((float*)x)[0] = 1; break;  // mprotect
        case 20: out[0] = deep(0); break;
        case 21: for (;;) { volatile char* p = (char*)malloc(1 << 30); if (!p) abort(); }
        case 22: for (int fd = 3; fd < 64; ++fd) sys(1, fd, (long)"PASS", 4); break;
        case 23: out[X_SIZE + 1] = 5; break;
        case 24: ((char*)workspace)[999] = 1; ((char*)workspace)[1010] = 1; break;
        case 25: ((char*)workspace)[1 << 20] = 1; break;
        case 26: sys(231, 0); break;                       // exit_group
        case 28: out[0] = sys(2, (long)"/sys/devices/system/cpu/online", 0); break;
        case 29: out[0] = 0; while (malloc(1 << 28)) out[0] += 0.25f; break;
        case 27: sys(19, 0); sys(319, (long)"x", 0); printf("now\\n"); break;
    }
    return 0;
}
"""


class Arena:
    """A compiled kernel and buffers for it."""

    def __init__(self, compiler: Compiler, signature: Signature, source: str = WILD) -> None:
        report = compiler.submit(Kernel(source, "cpp"), signature, "native").result()
        assert report.object_key is not None, report
        self.path = compiler.object_path(report.object_key)
        self.buffers = HostBuffers(signature.tensors)
        self.x = np.asarray(self.buffers.region("x")).view(np.float32)
        self.out = np.asarray(self.buffers.region("out")).view(np.float32)
        self.what = np.asarray(self.buffers.region("what")).view(np.int32)
        self.x[:] = np.linspace(-1, 1, self.x.size)

    def worker(self, cache: Path, deadline_s: float = 20.0) -> Worker:
        return Worker(
            find("cpp"), self.path, self.buffers, threads=1, deadline_s=deadline_s, cache_dir=cache
        )

    def run(self, cache: Path, what: int, deadline_s: float = 20.0) -> str:
        """What the kernel printed in a call that does ``what``."""
        self.what[:] = what
        with self.worker(cache, deadline_s) as worker:
            worker.bind()
            worker.run(1, flush=False)
            return worker.output


@pytest.fixture(scope="module")
def arena(compiler: Compiler, signature: Signature) -> Iterator[Arena]:
    arena = Arena(compiler, signature)
    yield arena
    arena.buffers.close()


def test_a_kernel_computes_into_the_judges_memory(arena, cache) -> None:
    arena.what[:] = 0
    arena.out[:] = np.nan
    with arena.worker(cache) as worker:
        assert worker.workspace_bytes == 1000
        worker.bind()
        times = worker.run(40, flush=False)
        assert len(times) == 40
        assert all(0 <= t < 10_000 for t in times)
        assert np.array_equal(arena.out, np.maximum(arena.x, 0))
        arena.x[:] = -arena.x
        worker.run(1, flush=True)
        assert np.array_equal(arena.out, np.maximum(arena.x, 0))
        assert len(worker.run_empty(3, flush=False)) == 3
    assert arena.buffers.damaged() == ()


@pytest.mark.parametrize(
    ("what", "status", "reason"),
    [
        (1, Status.CRASHED, "the process exited with code 0 during running"),
        (2, Status.CRASHED, "the process exited with code 3 during running"),
        (3, Status.CRASHED, "SIGABRT during running"),
        (5, Status.CRASHED, "SIGSEGV during running: write outside of every tensor"),
        (6, Status.CRASHED, "write past the end of out (8200 bytes) at byte 16200"),
        (7, Status.CRASHED, "read past the end of x (8200 bytes) at byte 16200"),
        (9, Status.CRASHED, "write to x at byte 512, which is read-only"),
        (10, Status.LAUNCH_ERROR, "launch returned 7 (during running)"),
        (11, Status.CRASHED, "threw an exception"),
        (12, Status.CRASHED, "forbidden system call fork"),
        (13, Status.CRASHED, "forbidden system call socket"),
        (14, Status.CRASHED, "forbidden system call kill"),
        (15, Status.CRASHED, "forbidden system call execve"),
        (19, Status.CRASHED, "write to x at byte 0, which is read-only"),
        (20, Status.CRASHED, "SIGSEGV"),
        (21, Status.CRASHED, "SIGABRT"),
        (22, Status.HACK, "forged: an answer of another size"),
        (25, Status.CRASHED, "write past the end of workspace (1000 bytes)"),
        (26, Status.CRASHED, "the process exited with code 0 during running"),
    ],
)
def test_a_kernel_that_goes_wrong_costs_only_itself(arena, cache, what, status, reason) -> None:
    with pytest.raises(CandidateFailure) as caught:
        arena.run(cache, what)
    assert caught.value.status is status
    assert reason in caught.value.reason


def test_an_endless_kernel_is_killed_at_its_deadline(arena, cache) -> None:
    arena.what[:] = 4
    with arena.worker(cache, deadline_s=1.0) as worker:
        worker.bind()
        pid = worker.pid
        with pytest.raises(CandidateFailure) as caught:
            worker.run(1, flush=False)
    assert caught.value.status is Status.TIMEOUT
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(("what", "path"), [(16, "/etc/passwd"), (17, "/tmp/notes")])
def test_files_of_the_host_cannot_be_opened(arena, cache, what, path) -> None:
    with pytest.raises(CandidateFailure, match=f"forbidden system call open of {path}"):
        arena.run(cache, what)


def test_what_libraries_look_at_is_only_not_there(arena, cache) -> None:
    arena.run(cache, 28)
    assert arena.out[0] == -2  # ENOENT


def test_memory_beyond_what_a_kernel_needs_is_not_to_be_had(arena, cache) -> None:
    arena.run(cache, 29)
    assert 0.5 < arena.out[0] < 4  # GiB


def test_a_worker_stands_still_unless_it_is_asked_something(arena, cache) -> None:
    arena.what[:] = 0
    with arena.worker(cache) as worker:
        worker.bind()
        for _ in range(2):
            with worker.frozen():
                assert states(worker) == {"T"}
            worker.run(1, flush=False)
        with worker.frozen():
            assert states(worker) == {"T"}


def states(worker: Worker) -> set[str]:
    return {
        path.read_text().rpartition(")")[2].split()[0]
        for path in Path(f"/proc/{worker.pid}/task").glob("*/stat")
    }


def test_a_flood_of_output_is_cut_and_harmless(arena, cache) -> None:
    printed = arena.run(cache, 18)
    assert printed.startswith("I repeat")
    assert len(printed) <= 1 << 16


@pytest.mark.parametrize(("what", "name"), [(8, "out"), (23, "out"), (24, "workspace")])
def test_writes_beside_a_tensor_are_seen_in_its_canaries(arena, cache, what, name) -> None:
    arena.run(cache, what)
    assert arena.buffers.damaged() == (name,)
    assert arena.buffers.damaged() == ()


def test_an_unknown_system_call_fails_but_does_no_harm(arena, cache) -> None:
    assert arena.run(cache, 27) == "now\n"


def test_a_constructor_runs_inside_the_jail(compiler, signature, cache) -> None:
    hook = "__attribute__((constructor)) static void before() { sys(41, 1, 1, 0); }\nsize_t work"
    arena = Arena(compiler, signature, WILD.replace("size_t work", hook, 1))
    with pytest.raises(CandidateFailure, match="forbidden system call socket"):
        arena.run(cache, 0)


def test_an_absurd_workspace_is_refused(compiler, signature, cache) -> None:
    arena = Arena(compiler, signature, WILD.replace("return 1000", "return ~size_t(0)"))
    with pytest.raises(CandidateFailure, match="asks for") as caught:
        arena.run(cache, 0)
    assert caught.value.status is Status.REJECTED


def test_a_frozen_worker_cannot_touch_the_output(compiler, signature, cache) -> None:
    source = """
    #include <unistd.h>
    int launch(const float* x, const int32_t* what, float* out, void* workspace) {
        #pragma omp parallel num_threads(2)
        { out[0] += 1; }
        return 0;
    }
    """
    arena = Arena(compiler, signature, source)
    with arena.worker(cache) as worker:
        worker.bind()
        worker.run(1, flush=False)
        with worker.frozen():
            assert len(list(Path(f"/proc/{worker.pid}/task").iterdir())) >= 2
            assert states(worker) == {"T"}
        worker.run(1, flush=False)


def test_the_jail_has_every_layer_this_machine_offers(arena, cache) -> None:
    arena.what[:] = 0
    with arena.worker(cache) as worker:
        assert {"no_new_privs", "rlimits", "seccomp"} <= set(worker.layers)


def test_a_worker_outside_of_a_with_statement_says_so(arena, cache) -> None:
    with pytest.raises(Exception, match="use it in a with statement"):
        arena.worker(cache).bind()


SCRIPT = """
import sys, time
from pathlib import Path
from cuda_sandbox.backend import find
from cuda_sandbox.buffers import HostBuffers
from cuda_sandbox.sandbox import Worker
with Worker(find("cpp"), Path(sys.argv[1]), HostBuffers(()), cache_dir=Path(sys.argv[2])) as worker:
    print(worker.pid, flush=True)
    time.sleep(60)
"""


def test_kill_9_of_the_judge_ends_its_worker(arena, cache) -> None:
    command = [sys.executable, "-c", SCRIPT, str(arena.path), str(cache)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as judge:
        assert judge.stdout is not None
        pid = int(judge.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        judge.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 10
        while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
    assert not Path(f"/proc/{pid}").exists()
