"""NVIDIA Nsight Compute: found as nvcc is, run without touching the clocks, its report read."""

from __future__ import annotations

import csv
import functools
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from cuda_sandbox.isolation import Mount
from cuda_sandbox.profiler import Launch, Profile
from cuda_sandbox.ptxas import plain_name
from cuda_sandbox.toolchain import cuda_toolkit

MOST_LAUNCHES = 24
_SECTIONS = (
    "SpeedOfLight",
    "ComputeWorkloadAnalysis",
    "MemoryWorkloadAnalysis",
    "WarpStateStats",
    "Occupancy",
    "LaunchStats",
)
_PERMISSION = (
    "this machine lets only administrators read the GPU's counters (ERR_NVGPUCTRPERM), and in its "
    "jail a kernel is none: ask for the driver option NVreg_RestrictProfilingToAdminUsers=0"
)
# The first of these that the chip has; shares are of the peak over the whole run.
_BUSY = {
    "dram": (
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    "l2": ("lts__throughput.avg.pct_of_peak_sustained_elapsed",),
    "shared": (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed",
        "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    ),
    "tensor": ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",),
    "fma": ("sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed",),
    "sm": ("sm__throughput.avg.pct_of_peak_sustained_elapsed",),
}
_STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
_LIMIT = re.compile(r"launch__occupancy_limit_(\w+)")
_LIMITS = {
    "registers": "registers",
    "shared_mem": "shared memory",
    "blocks": "blocks per SM",
    "barriers": "barriers",
}


@functools.cache
def program() -> Path | None:
    """The ``ncu`` of the newest installation; None if there is none."""
    folders = [Path("/opt/nvidia/nsight-compute").glob("*/ncu")]
    if toolkit := cuda_toolkit():
        folders += [toolkit.glob("nsight-compute-*/ncu")]
    found = sorted((path for group in folders for path in group), key=_version)
    if found:
        return found[-1]
    elsewhere = shutil.which("ncu")
    return Path(elsewhere).resolve() if elsewhere else None


def _version(path: Path) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", path.parent.name)))


def forbidden(parameters: Path = Path("/proc/driver/nvidia/params")) -> str:
    """Why the driver lets no jailed program read counters; empty if it does, or does not say."""
    try:
        text = parameters.read_text(encoding="utf-8")
    except OSError:
        return ""
    return _PERMISSION if re.search(r"^RmProfilingAdminOnly: 1$", text, re.MULTILINE) else ""


def mounts(ncu: Path) -> tuple[Mount, ...]:
    """What it needs to see: its own folder, where the toolkit's does not hold it."""
    return (Mount(ncu.parent),)


def command(ncu: Path) -> tuple[str, ...]:
    """The command that profiles the program behind it; clocks stay as they are."""
    sections = [word for name in _SECTIONS for word in ("--section", name)]
    metrics = ",".join(names[0] for names in _BUSY.values())
    return (
        *(str(ncu), "--csv", "--page", "raw", "--print-units", "base"),
        *("--clock-control", "none", "--launch-count", str(MOST_LAUNCHES)),
        *(*sections, "--metrics", metrics),
    )


def read(code: int | None, said: str) -> Profile:
    """The launches in what ncu printed, or why there are none."""
    if code is None:
        return Profile(missing="Nsight Compute did not come to an end in time")
    launches = tuple(_launch(row) for row in _rows(said))
    if launches:
        return Profile(launches)
    if "ERR_NVGPUCTRPERM" in said:
        return Profile(missing=_PERMISSION)
    errors = [line for line in said.splitlines() if line.startswith("==ERROR==")]
    last = errors[:1] or [line for line in said.splitlines() if line.strip()][-1:]
    word = last[0].removeprefix("==ERROR==").strip() if last else f"ended with {code}"
    return Profile(missing=f"Nsight Compute: {word[:200]}")


def _rows(said: str) -> Iterable[Mapping[str, str]]:
    """The table's rows, without the one of units; what the program printed is left out."""
    lines = said.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    table = csv.DictReader(line for line in lines[start:] if line.startswith('"'))
    return [row for row in table if row["ID"].isdecimal()]


def _launch(row: Mapping[str, str]) -> Launch:
    numbers = {name: value for name, text in row.items() if (value := _number(text)) is not None}
    return Launch(
        function=_function(row.get("Kernel Name", "")),
        time_ms=numbers.get("gpu__time_duration.sum", 0.0) / 1e6,
        busy=_busy(numbers),
        stalls=_stalls(numbers),
        occupancy=_occupancy(numbers),
        limit=_limit(numbers),
    )


def _number(text: str | None) -> float | None:
    try:
        return float((text or "").replace(",", ""))
    except ValueError:
        return None


def _function(name: str) -> str:
    """``rows`` of ``void rows<32>(const float *, float *)``, or of a mangled name."""
    if name.startswith("_Z"):
        return plain_name(name)
    head = re.split(r"[<(]", name.removeprefix("void "), maxsplit=1)[0]
    return head.split("::")[-1].strip() or name


def _busy(numbers: Mapping[str, float]) -> dict[str, float]:
    found = {}
    for unit, names in _BUSY.items():
        value = next((numbers[name] for name in names if name in numbers), None)
        if value is not None:
            found[unit] = value
    return found


def _stalls(numbers: Mapping[str, float]) -> dict[str, float]:
    """Shares in %, the largest first; ``selected`` is work, not waiting."""
    ratios = {hit[1]: value for name, value in numbers.items() if (hit := _STALL.fullmatch(name))}
    total = sum(ratios.values())
    ratios.pop("selected", None)
    ordered = sorted(ratios.items(), key=lambda item: -item[1])
    return {reason: 100 * value / total for reason, value in ordered if total and value > 0}


def _occupancy(numbers: Mapping[str, float]) -> tuple[float, float] | None:
    achieved = numbers.get("sm__warps_active.avg.pct_of_peak_sustained_active")
    possible = numbers.get("sm__maximum_warps_per_active_cycle_pct")
    return None if achieved is None or possible is None else (achieved, possible)


def _limit(numbers: Mapping[str, float]) -> str:
    """What keeps more blocks from an SM; empty where it is full of warps anyway."""
    if numbers.get("sm__maximum_warps_per_active_cycle_pct", 0.0) >= 99:
        return ""
    blocks = {hit[1]: value for name, value in numbers.items() if (hit := _LIMIT.fullmatch(name))}
    least = min(blocks.values(), default=0.0)
    names = [name for name, value in blocks.items() if value == least]
    if "blocks" in names:
        names = ["blocks"]  # the others read the same where they limit nothing
    return " and ".join(_LIMITS[name] for name in names if name in _LIMITS)
