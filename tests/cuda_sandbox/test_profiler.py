"""Profiles: what a compiler tells of loops, what ncu prints, and why there may be nothing."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from cuda_sandbox import ncu, vectorised
from cuda_sandbox.backend import find
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.profiler import profile
from cuda_sandbox.signature import Role, Signature, TensorSpec
from fitness.bottleneck import bound_by

SIGNATURE = Signature(
    "relu",
    (TensorSpec("x", "float32", (1000,), Role.INPUT),),
    (TensorSpec("out", "float32", (1000,), Role.OUTPUT),),
)
RELU = """
extern "C" int launch(const float* x, float* out, void* workspace) {
    for (int i = 0; i < X_SIZE; ++i)
        out[i] = x[i] > 0 ? x[i] : 0;
    return 0;
}
"""


def report(rows):
    """What ncu prints: progress, the table with its row of units, the program's own words."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(["ID", "Kernel Name", *rows[0][1]])
    writer.writerow(["", "", *("unit" for _ in rows[0][1])])
    for index, (name, figures) in enumerate(rows):
        writer.writerow([index, name, *figures.values()])
    return f"==PROF== Connected to process 7\nhello\n{text.getvalue()}==PROF== Disconnected\n"


FIGURES = {
    "gpu__time_duration.sum": "570,112",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": "91.25",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": "48.5",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "31.0",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "61.9",
    "sm__maximum_warps_per_active_cycle_pct": "75",
    "launch__occupancy_limit_registers": "3",
    "launch__occupancy_limit_shared_mem": "8",
    "launch__occupancy_limit_warps": "4",
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": "6.0",
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": "1.0",
    "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio": "1.0",
    "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio": "2.0",
    "dram__bytes.sum": "n/a",
}


def test_a_report_as_nsight_compute_2025_wrote_it_on_an_h200_tells_what_each_kernel_is_bound_by():
    said = (Path(__file__).parent / "ncu_h200.csv").read_text()

    found = {launch.function: launch for launch in ncu.read(0, said).launches}

    assert {name: bound_by(launch.busy) for name, launch in found.items()} == {
        "stream_": "dram",
        "fma_": "fma",
        "shared_": "shared",
        "tensor_": "tensor",
        "latency_": "latency",
    }
    first = {name: next(iter(launch.stalls)) for name, launch in found.items()}
    assert first["stream_"] == first["latency_"] == "long_scoreboard"
    assert (first["shared_"], first["tensor_"]) == ("mio_throttle", "math_pipe_throttle")
    assert found["shared_"].time_ms == pytest.approx(2.071808)
    assert found["latency_"].occupancy == (1.56, 50.0)
    assert found["latency_"].limit == "blocks per SM"


def test_ncus_table_becomes_a_launch_with_units_stalls_and_occupancy():
    (launch,) = ncu.read(0, report([("void rows<32>(const float *, float *)", FIGURES)])).launches

    assert launch.function == "rows"
    assert launch.time_ms == pytest.approx(0.570112)
    assert launch.busy == {"dram": 91.25, "l2": 48.5, "sm": 31.0}
    assert list(launch.stalls.items()) == [
        ("long_scoreboard", 60.0),
        ("wait", 20.0),
        ("barrier", 10.0),
    ]
    assert launch.occupancy == (61.9, 75.0)
    assert launch.limit == "registers"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("rows(const float *)", "rows"),
        ("void ns::rows<(int)4, float>(T2 *)", "rows"),
        ("_Z4rowsPKfPf", "rows"),
    ],
)
def test_a_function_is_called_by_its_own_name(name, short):
    (launch,) = ncu.read(0, report([(name, FIGURES)])).launches

    assert launch.function == short


@pytest.mark.parametrize(
    ("said", "code", "word"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have", 1, "only administrators"),
        ("==ERROR== Failed to find metric regex:x", 1, "Failed to find metric"),
        ("==WARNING== No kernels were profiled.", 0, "No kernels were profiled"),
        ("", 3, "ended with 3"),
        ("anything", None, "did not come to an end"),
    ],
)
def test_why_there_is_no_profile_is_told_in_a_clear_word(said, code, word):
    found = ncu.read(code, said)

    assert found.launches == ()
    assert word in found.missing


def test_the_command_leaves_the_clocks_alone_and_bounds_the_launches(tmp_path):
    command = ncu.command(tmp_path / "ncu")

    assert command[command.index("--clock-control") + 1] == "none"
    assert "--launch-count" in command


def test_of_several_installations_the_newest_is_taken(tmp_path, monkeypatch):
    for version in ("2024.3.2", "2025.3.0", "2025.1.1"):
        (tmp_path / f"nsight-compute-{version}").mkdir()
        (tmp_path / f"nsight-compute-{version}" / "ncu").touch()
    monkeypatch.setattr(ncu, "cuda_toolkit", lambda: tmp_path)
    ncu.program.cache_clear()
    try:
        assert ncu.program() == tmp_path / "nsight-compute-2025.3.0" / "ncu"
    finally:
        ncu.program.cache_clear()


def test_loops_that_gcc_or_clang_vectorised_are_named_by_line():
    gcc = "kernel.cpp:4:23: optimized: loop vectorized using 32 byte vectors\n"
    clang = (
        "kernel.cpp:7:5: remark: vectorized loop (vectorization width: 8, interleaved count: 4)"
        " [-Rpass=loop-vectorize]\n"
    )

    assert vectorised.read(0, gcc + "driver.cpp:9:1: optimized: loop vectorized").notes == (
        "the compiler vectorised loops at lines 4 (32 B)",
    )
    assert "7 (8 wide)" in vectorised.read(0, clang).notes[0]
    assert vectorised.read(0, "").notes == ("the compiler vectorised no loop",)


def test_a_cpp_kernel_is_looked_into_by_compiling_it_alone(cache):
    def nothing():
        raise AssertionError("no input is needed where nothing is run")

    probe = find("cpp").probe("native", ())
    found = profile(Kernel(RELU, "cpp"), SIGNATURE, probe, nothing, cache_dir=cache)

    assert found.missing == ""
    assert found.notes[0].startswith("the compiler vectorised loops at lines 3 (")
    assert not list((cache / "jobs").iterdir())


def test_without_a_gpu_or_ncu_a_cuda_kernel_is_not_profiled_and_the_reason_is_told(cache):
    probe = find("cuda").probe("sm_90", ())
    if not probe.missing:
        pytest.skip("this machine can profile")
    found = profile(Kernel("", "cuda"), SIGNATURE, probe, dict, cache_dir=cache)

    assert found.missing in ("no CUDA device", "no ncu: install NVIDIA Nsight Compute")


def test_a_driver_that_keeps_its_counters_for_administrators_is_known_beforehand(tmp_path):
    parameters = tmp_path / "params"
    assert ncu.forbidden(parameters) == ""
    parameters.write_text("EnableMSI: 1\nRmProfilingAdminOnly: 0\n")
    assert ncu.forbidden(parameters) == ""
    parameters.write_text("EnableMSI: 1\nRmProfilingAdminOnly: 1\n")
    assert "NVreg_RestrictProfilingToAdminUsers=0" in ncu.forbidden(parameters)
