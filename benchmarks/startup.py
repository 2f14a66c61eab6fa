"""How long the command line takes to answer.

python benchmarks/startup.py [--repetitions 15] [--save startup]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import processor, publish, report, spread, versions

ROOT = Path(__file__).parents[1]
TASK = "configs/tasks/softmax_cpu.py"


def seconds(arguments: list[str], environment: dict[str, str]) -> float:
    """Wall-clock seconds of one Python process; raises if it fails."""
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, check=True, capture_output=True
    )
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--save", metavar="NAME", help="write benchmarks/results/NAME.md")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "KERNELEVO_CACHE": cache}
        cold = seconds(["-m", "evo", "header", TASK], environment)
        for name, arguments in {
            "python -c pass": ["-c", "pass"],
            "kernelevo --help": ["-m", "evo", "--help"],
            f"kernelevo header {TASK}": ["-m", "evo", "header", TASK],
            "kernelevo doctor": ["-m", "evo", "doctor"],
        }.items():
            times = [seconds(arguments, environment) for _ in range(options.repetitions)]
            rows.append((f"`{name}`", spread(times)))
    rows.append((f"`kernelevo header {TASK}`, never seen before (imports torch)", f"{cold:.3f} s"))
    facts = {
        "device": processor(),
        "versions": versions("click", "torch"),
        "repetitions": f"{options.repetitions}; median (minimum to maximum)",
    }
    publish(report("Start-up", rows, facts), options.save)


if __name__ == "__main__":
    main()
