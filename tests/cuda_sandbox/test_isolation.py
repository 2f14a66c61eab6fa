"""The walls of this machine, and what is left where namespaces are forbidden."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from cuda_sandbox import isolation
from cuda_sandbox.backend import find
from cuda_sandbox.buffers import HostBuffers
from cuda_sandbox.compiler import Compiler
from cuda_sandbox.isolation import Jail, Mount
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CandidateFailure, Status
from cuda_sandbox.sandbox import Worker

SOURCE = """
static long early;  // a constructor runs when files may still be opened: libraries are being loaded
__attribute__((constructor)) static void before() {
    asm volatile("syscall" : "=a"(early) : "a"(2L), "D"("/etc/passwd"), "S"(0L) : "rcx", "r11");
}
int launch(const float* x, const int32_t* what, float* out, void* workspace) {
    for (long i = 0; i < X_SIZE; ++i) out[i] = x[i] > 0 ? x[i] : 0;
    if (*what == 1) for (;;) asm volatile("");
    if (*what == 2) out[0] = early;
    return 0;
}
"""


@pytest.fixture
def no_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "namespaces_missing", lambda: "forbidden here, for a test")


@pytest.mark.skipif(bool(isolation.namespaces_missing()), reason="no namespaces here")
def test_what_is_mounted_below_tmp_is_seen_in_spite_of_a_private_tmp() -> None:
    system = tuple(Mount(Path(at)) for at in ("/usr", "/bin", "/lib", "/lib64"))
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, tempfile.NamedTemporaryFile(dir="/tmp"):
        Path(folder, "mark").touch()
        jail = Jail((*system, Mount(Path(folder))), tmp_bytes=1 << 20)
        look = [*isolation.enter(jail), "/bin/sh", "-c", f"ls {folder}; ls /tmp"]
        seen = subprocess.run(look, capture_output=True, text=True, check=True).stdout.split()

    assert seen == ["mark", Path(folder).name]


def test_every_layer_that_is_missing_says_why() -> None:
    layers = isolation.isolation_layers()
    standing = {
        "namespaces": layers.namespaces,
        "seccomp": layers.seccomp,
        "landlock": bool(layers.landlock),
    }
    assert set(layers.missing) == {name for name, there in standing.items() if not there}
    assert layers.rlimits
    assert layers.no_new_privs


def test_without_namespaces_a_jail_cannot_be_entered(no_namespaces) -> None:
    with pytest.raises(RuntimeError, match="no namespaces: forbidden here"):
        isolation.enter(Jail((Mount(Path("/usr")),)))


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="raw system calls")
def test_without_namespaces_kernels_still_run_and_see_no_files(
    no_namespaces, compiler, signature, cache
) -> None:
    report = compiler.submit(Kernel(SOURCE, "cpp"), signature, "native").result()
    assert report.status is Status.OK, report
    buffers = HostBuffers(signature.tensors)
    x, out = (np.asarray(buffers.region(name)).view(np.float32) for name in ("x", "out"))
    what = np.asarray(buffers.region("what")).view(np.int32)
    x[:] = np.linspace(-1, 1, x.size)
    path = compiler.object_path(str(report.object_key))
    with Worker(find("cpp"), path, buffers, threads=1, deadline_s=20, cache_dir=cache) as worker:
        worker.bind()
        worker.run(1, flush=False)
        assert np.array_equal(out, np.maximum(x, 0))
        if isolation.isolation_layers().landlock:
            what[:] = 2
            worker.run(1, flush=False)
            assert out[0] == -13  # EACCES
    what[:] = 1
    with Worker(find("cpp"), path, buffers, threads=1, deadline_s=1, cache_dir=cache) as worker:
        worker.bind()
        pid = worker.pid
        with pytest.raises(CandidateFailure, match="no answer within 1 s"):
            worker.run(1, flush=False)
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.skipif(not isolation.isolation_layers().landlock, reason="no Landlock")
def test_without_namespaces_the_compiler_sees_no_host_files(
    no_namespaces, tmp_path, signature
) -> None:
    secret = tmp_path / "secret.h"
    secret.write_text("#define STOLEN 1\n")
    with Compiler(tmp_path / "cache", jobs=1) as pool:
        report = pool.submit(Kernel(SOURCE, "cpp"), signature, "native").result()
        assert report.status is Status.OK, report
        stolen = Kernel(f'#include "{secret}"\n{SOURCE}', "cpp")
        report = pool.submit(stolen, signature, "native").result()
        assert report.status is Status.COMPILE_ERROR
        assert str(tmp_path / "cache") not in report.log
