from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cuda_sandbox import compile_job
from cuda_sandbox.compiler import Compiler
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CompileReport, Status
from cuda_sandbox.signature import Signature

RELU = """
int launch(const float* x, const int32_t* what, float* out, void* workspace) {
    for (long i = 0; i < X_SIZE; ++i) out[i] = x[i] > 0 ? x[i] : 0;
    return 0;
}
"""


@pytest.fixture
def compile_cpp(compiler: Compiler, signature: Signature):
    def compile_it(source: str, *flags: str) -> CompileReport:
        return compiler.submit(Kernel(source, "cpp", flags), signature, "native").result()

    return compile_it


def calling(code: str, include: str) -> str:
    return f"#include <{include}>\n" + RELU.replace("return 0;", f"{code}; return 0;")


def test_a_kernel_is_compiled_once_and_then_found(compiler, signature, compile_cpp) -> None:
    first = compile_cpp(RELU)
    again = compile_cpp("// a comment makes no new kernel\n" + RELU)
    assert (first.status, again.status) == (Status.OK, Status.OK)
    assert again.cached
    assert again.object_key == first.object_key
    assert compiler.object_path(first.object_key).read_bytes()[:4] == b"\x7fELF"


def test_a_compilation_that_fails_by_our_fault_leaves_no_folder(
    tmp_path, signature, monkeypatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(compile_job, "run_tool", full)
    with Compiler(tmp_path) as compiler, pytest.raises(OSError, match="no space left"):
        compiler.submit(Kernel(RELU, "cpp"), signature, "native").result()
    assert list((tmp_path / "jobs").iterdir()) == []


def test_identical_submissions_at_once_are_one_compilation(compiler, signature) -> None:
    kernel = Kernel(RELU.replace("> 0", ">= 0"), "cpp")
    one = compiler.submit(kernel, signature, "native")
    two = compiler.submit(kernel, signature, "native")
    assert one is two


def test_a_syntax_error_is_reported_without_paths_of_this_host(compile_cpp, cache) -> None:
    report = compile_cpp("int launch() { return foo; }")
    assert report.status is Status.COMPILE_ERROR
    assert report.reason.startswith("kernel.cpp:1:")
    assert str(cache) not in report.log
    assert report.object_key is None


def test_what_a_source_says_cannot_steer_a_terminal(compile_cpp) -> None:
    report = compile_cpp("#error \x1b]0;owned\x07 {ok}\n")

    assert report.status is Status.COMPILE_ERROR
    assert "owned" in report.reason
    assert not set("\x1b\x07") & set(report.reason + report.log)


def test_a_wrong_prototype_is_a_compile_error(compile_cpp) -> None:
    report = compile_cpp('extern "C" int launch(float* x) { return 0; }')
    assert report.status is Status.COMPILE_ERROR
    assert "launch" in report.reason


@pytest.mark.parametrize("how", ["include", "incbin", "embed"])
def test_host_files_cannot_be_read_while_compiling(compile_cpp, tmp_path, how) -> None:
    secret = tmp_path / "secret"
    secret.write_text("int stolen = 42;\n")
    source = {
        "include": f'#include "{secret}"\n{RELU}',
        "incbin": f'{RELU}\nasm(".incbin \\"{secret}\\"");',
        "embed": f'#if __has_include("{secret}")\n{RELU}\n#endif\n',
    }[how]
    report = compile_cpp(source)
    assert report.status in (Status.COMPILE_ERROR, Status.REJECTED)
    assert "stolen" not in report.log


def test_etc_passwd_and_the_home_folder_are_not_there(compile_cpp) -> None:
    probe = f'__has_include("/etc/passwd") || __has_include("{Path.home()}")'
    assert compile_cpp(f"#if {probe}\n#error leak\n#endif\n{RELU}").status is Status.OK


@pytest.mark.parametrize(
    ("code", "include", "symbol"),
    [
        ('dlopen("x", 1)', "dlfcn.h", "dlopen"),
        ("socket(1, 1, 0)", "sys/socket.h", "socket"),
        ("fork()", "unistd.h", "fork"),
        ('system("ls")', "stdlib.h", "system"),
        ('getenv("HOME")', "stdlib.h", "getenv"),
        ('fopen("x", "w")', "stdio.h", "fopen"),
        ("clock()", "time.h", "clock"),
    ],
)
def test_forbidden_symbols_are_named(compile_cpp, code, include, symbol) -> None:
    report = compile_cpp(calling(code, include))
    assert report.status is Status.REJECTED
    assert f"calls {symbol}, which is not allowed" in report.reason


def test_the_standard_library_and_openmp_are_allowed(compile_cpp) -> None:
    source = """
    #include <algorithm>
    #include <cmath>
    #include <cstdio>
    #include <cstring>
    #include <omp.h>
    #include <vector>
    int launch(const float* x, const int32_t* what, float* out, void* workspace) {
        std::vector<float> v(x, x + X_SIZE);
        std::sort(v.begin(), v.end());
        #pragma omp parallel for
        for (long i = 0; i < X_SIZE; ++i) out[i] = std::exp(v[i]) + std::erf(x[i]);
        std::printf("%d\\n", omp_get_max_threads());
        std::memset(workspace, 0, 4);
        return 0;
    }
    """
    report = compile_cpp(source, "-ffast-math")
    assert (report.status, report.reason) == (Status.OK, "")


def test_a_source_without_launch_is_rejected(compile_cpp) -> None:
    assert "defines no function launch" in compile_cpp("int f() { return 1; }").reason


def test_a_flag_that_is_not_allowed_lists_those_that_are(compile_cpp) -> None:
    report = compile_cpp(RELU, "-lcublas")
    assert report.status is Status.REJECTED
    assert "'-lcublas' is not allowed for cpp; allowed: " in report.reason
    assert "-ffast-math" in report.reason


def test_an_unknown_architecture_is_the_callers_mistake(compiler, signature) -> None:
    with pytest.raises(ValueError, match="no CPU architecture"):
        compiler.submit(Kernel(RELU, "cpp"), signature, "native -B/tmp")


def test_an_unknown_language_lists_the_backends(compiler, signature) -> None:
    with pytest.raises(ValueError, match=r"choose from: .*cpp, cuda"):
        compiler.submit(Kernel("", "fortran"), signature, "native")


BOMB = f"""
template <int N, int M> struct B {{
    static constexpr unsigned long v = B<N - 1, M>::v + B<N - 1, M + 1>::v;
}};
template <int M> struct B<0, M> {{ static constexpr unsigned long v = M; }};
static_assert(B<800, 0>::v != 0);
{RELU}
"""


def test_a_compiler_that_does_not_end_is_killed(cache, signature) -> None:
    with Compiler(cache, jobs=1, deadline_s=1.0) as pool:
        started = time.monotonic()
        report = pool.submit(Kernel(BOMB, "cpp"), signature, "native").result()
        assert report.status is Status.TIMEOUT
        assert report.reason == "the compiler was stopped after 1 s"
        assert time.monotonic() - started < 20
    assert not list((cache / "jobs").iterdir())


def test_close_kills_what_is_compiling(tmp_path, signature) -> None:
    pool = Compiler(tmp_path, jobs=1, deadline_s=300.0)
    future = pool.submit(Kernel(BOMB, "cpp"), signature, "native")
    while not list((tmp_path / "jobs").glob("*/log")):
        time.sleep(0.01)
    closer = threading.Thread(target=pool.close)
    closer.start()
    closer.join(timeout=20)
    assert not closer.is_alive()
    assert future.result().status is Status.TIMEOUT


SCRIPT = """
import sys
from pathlib import Path
from cuda_sandbox.compiler import Compiler
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.signature import Signature
pool = Compiler(Path(sys.argv[1]), jobs=1)
future = pool.submit(Kernel(sys.stdin.read(), "cpp"), Signature("t", (), ()), "native")
print("started", flush=True)
future.result()
"""


def test_kill_9_of_the_pool_leaves_no_compiler_and_no_half_object(tmp_path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(BOMB)
    child.stdin.close()
    child.stdout.readline()
    while not list((tmp_path / "jobs").glob("*/log")):
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    marker = str(tmp_path)
    deadline = time.monotonic() + 10
    while any(marker in line for line in _command_lines()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [line for line in _command_lines() if marker in line]
    assert not list(tmp_path.glob("objects/**/*.so"))


def _command_lines() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_text(errors="replace"))
        except OSError:
            continue
    return [line for line in found if "pytest" not in line and str(os.getpid()) not in line]
