"""``kernelevo eval`` on a GPU, as a user calls it: one process, one JSON object."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TASK = "configs/tasks/softmax.py"
GOOD = (ROOT / "benchmarks/kernels/softmax.cu").read_text(encoding="utf-8")


def evaluated(source: str, folder: Path) -> tuple[int, dict[str, Any]]:
    """Exit code and record of ``eval`` for ``source``."""
    kernel = folder / "kernel.cu"
    kernel.write_text(source, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "evo", "eval", TASK, str(kernel), "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return done.returncode, json.loads(done.stdout)


def test_a_right_kernel_is_accepted_with_all_its_figures(tmp_path: Path) -> None:
    code, found = evaluated(GOOD, tmp_path)
    assert (code, found["status"]) == (0, "ok"), found["reason"]
    assert found["precision"]["tier"] == "fp32"
    assert found["time_ms"]["low"] <= found["time_ms"]["median"] <= found["time_ms"]["high"]
    assert found["speedup"]["eager"] > 0
    assert found["speedup"]["graph"] > 0
    assert 0 < found["roofline_share"] < 1.2


def test_a_kernel_that_leaves_out_the_maximum_is_incorrect(tmp_path: Path) -> None:
    code, found = evaluated(GOOD.replace("v.x - mine.x", "v.x"), tmp_path)
    assert (code, found["status"]) == (1, "incorrect")
    assert found["time_ms"]["median"] is None


def test_an_illegal_access_costs_one_candidate_and_leaves_the_device_usable(tmp_path: Path) -> None:
    wild = GOOD.replace("to[i] = make_float4", "to[i + (1ll << 40)] = make_float4")
    code, found = evaluated(wild, tmp_path)
    assert code == 1
    assert found["status"] in ("launch_error", "crashed")
    assert evaluated(GOOD, tmp_path)[0] == 0


def test_an_endless_kernel_is_killed_at_its_deadline(tmp_path: Path) -> None:
    endless = GOOD.replace(
        "float scale =", "while (clock64() >= 0) __nanosleep(100);\nfloat scale ="
    )
    code, found = evaluated(endless, tmp_path)
    assert (code, found["status"]) == (1, "timeout")
