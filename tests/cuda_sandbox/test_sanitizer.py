from __future__ import annotations

import struct
from pathlib import Path

import pytest

from cuda_sandbox import reports
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.reports import compute_sanitizer
from cuda_sandbox.sanitizer import sanitize
from cuda_sandbox.signature import Role, Signature, TensorSpec

SIGNATURE = Signature(
    "relu",
    (TensorSpec("x", "float32", (100,), Role.INPUT),),
    (TensorSpec("out", "float32", (100,), Role.OUTPUT),),
)
# What goes wrong is chosen by the input, so that one source serves all.
SOURCE = """
size_t workspace_bytes() { return 40; }
int launch(const float* x, float* out, void* workspace) {
    #pragma omp parallel for
    for (int i = 0; i < X_SIZE; ++i) out[i] = x[i] > 0 ? x[i] : 0;
    int what = x[0];
    if (what == 1) out[X_SIZE] = 1;
    if (what == 2) ((char*)workspace)[40] = 1;
    if (what == 3) what += 2147483647;
    if (what == 4) return 5;
    if (what == 5) for (;;) asm volatile("");
    out[1] = what;
    return 0;
}
"""


def check(cache: Path, what: int, source: str = SOURCE, deadline_s: float = 60.0) -> dict[str, str]:
    inputs = {"x": struct.pack("100f", *[what] * 100)}
    kernel = Kernel(source, "cpp")
    return sanitize(kernel, SIGNATURE, "native", inputs, deadline_s=deadline_s, cache_dir=cache)


@pytest.mark.parametrize(
    ("what", "address", "undefined"),
    [
        (0, "passed", "passed"),
        (1, "failed: WRITE of size 4: heap-buffer-overflow kernel.cpp:7 in launch", "passed"),
        (3, "passed", "failed: kernel.cpp:9:25: runtime error: signed integer overflow"),
        (4, "failed: launch returned 5", "passed"),
    ],
)
def test_what_the_sanitizers_find_is_told(cache, what, address, undefined) -> None:
    found = check(cache, what)
    assert found["address"].startswith(address)
    assert found["undefined"].startswith(undefined)


def test_a_run_without_end_is_not_run_and_no_pass(cache) -> None:
    found = check(cache, 5, deadline_s=8.0)
    assert found["address"] == "not run: no end within 8 s"
    assert not list((cache / "jobs").iterdir())


def test_a_source_that_does_not_compile_is_not_run(cache) -> None:
    found = check(cache, 0, "int launch() {")
    assert found["address"].startswith("not run: the driver did not compile: kernel.cpp:1:")


def test_inputs_of_a_wrong_size_are_our_mistake(cache) -> None:
    with pytest.raises(ValueError, match="input 'x' has 3 bytes; 400 bytes are needed"):
        sanitize(Kernel("", "cpp"), SIGNATURE, "native", {"x": b"abc"}, cache_dir=cache)


RACES = """\
========= COMPUTE-SANITIZER
========= Error: Maximum number of hazards reached
========= Error: Race reported between Write access at fill(float *)+0xab0 in kernel.cu:141
=========     and Read access at load(float *)+0x5c0 in kernel.cu:196 [1252903 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def test_a_race_is_told_before_what_the_tool_says_of_itself() -> None:
    found = reports.compute_sanitizer("racecheck", 99, RACES)["racecheck"]
    assert found.startswith(
        "failed: Error: Race reported between Write access at fill+0xab0 in kernel.cu:141"
        " and Read access at load+0x5c0 in kernel.cu:196 [1252903 hazards]"
    )


MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at relu(const float *, float *)+0x90 in kernel.cu:9
=========     by thread (5,0,0) in block (0,0,0)
========= ERROR SUMMARY: 1 error
"""


def test_compute_sanitizers_report_becomes_one_line() -> None:
    found = reports.compute_sanitizer("memcheck", 99, MEMCHECK)
    assert found["memcheck"] == (
        "failed: Invalid __global__ write of size 4 bytes at relu+0x90 in kernel.cu:9"
        " by thread (5,0,0) in block (0,0,0)"
    )
    assert reports.compute_sanitizer("memcheck", 0, "") == {}
    broken = reports.compute_sanitizer("memcheck", 1, "Error: no device")
    assert broken["memcheck"] == "not run: compute-sanitizer ended with 1: Error: no device"


def test_one_fault_in_many_threads_leaves_room_for_the_next() -> None:
    def fault(thread: int, line: int) -> str:
        return (
            "========= Barrier error detected. Missing wait.\n"
            f"=========     at arrive(unsigned long *)+0x40a0 in kernel.cu:{line}\n"
            f"=========     by thread ({thread},0,0) in block (0,0,0)\n"
            "=========         Device Frame: k(int, int *)+0x460 in kernel.cu:12\n=========\n"
        )

    text = "".join(fault(thread, 6) for thread in range(30)) + fault(0, 55)
    found = reports.compute_sanitizer("synccheck", 99, text)["synccheck"]
    assert found == (
        "failed: Barrier error detected. Missing wait. at arrive+0x40a0 in kernel.cu:6 by thread"
        " (0,0,0) in block (0,0,0) Device Frame: k+0x460 in kernel.cu:12; Barrier error detected."
        " Missing wait. at arrive+0x40a0 in kernel.cu:55 by thread (0,0,0) in block (0,0,0)"
        " Device Frame: k+0x460 in kernel.cu:12"
    )


def test_races_that_racecheck_only_warns_of_are_told_but_do_not_fail():
    text = "========= RACECHECK SUMMARY: 2 hazards displayed (0 errors, 2 warnings)\n"

    assert compute_sanitizer("racecheck", 99, text) == {"racecheck": "passed with 2 warnings"}


def test_races_that_racecheck_calls_errors_fail():
    text = (
        "========= Error: Race reported between Write access at k and Read access at k\n"
        "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n"
    )

    assert compute_sanitizer("racecheck", 99, text)["racecheck"].startswith("failed: Error: Race")


@pytest.mark.parametrize("arguments", ["const float *, int", "Shape<(int)4>, float *", "(anon)::P"])
def test_the_types_of_arguments_are_left_out_of_a_place(arguments):
    output = (
        "========= Invalid __global__ write of size 4 bytes\n"
        f"=========     at relu<(int)4, (bool)1>({arguments})+0x90 in kernel.cu:9\n"
    )

    (told,) = compute_sanitizer("memcheck", 99, output).values()

    assert "at relu<(int)4, (bool)1>+0x90 in kernel.cu:9" in told
