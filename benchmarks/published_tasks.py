"""The published tasks, evolved one after the other with what their configurations say.

    python benchmarks/published_tasks.py [--devices cuda:0] [--minutes 1] [--save h200]
                                         [--tasks softmax layer_norm ...] [--set KEY=VALUE ...]

Every task is a run of its own under populations/ (``--prefix`` names it); runs that are finished
are not run again. Prints one table of the winners' certificates: all ratios of a line are of one
sitting, in which the kernel, its parent and PyTorch took turns.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from common import compiler, publish, report, versions

ROOT = Path(__file__).resolve().parents[1]
TASKS = (
    "softmax",
    "layer_norm",
    "conv_block",
    "conv2d",
    "matmul_fp32",
    "matmul_fp16",
    "attention_fp16",
)


def kernelevo(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line with this interpreter, from the checkout."""
    command = [sys.executable, "-m", "evo", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)


def evolve(task: str, options: argparse.Namespace) -> dict[str, Any] | None:
    """The winner as ``kernelevo show --json`` has it; None where there is none."""
    name = f"{options.prefix}{task}"
    settings = [f"name={name}", f"devices=[{options.devices}]"]
    settings += [f"budget.hours={options.minutes / 60:g}", *options.settings]
    chosen = [word for setting in settings for word in ("--set", setting)]
    print(f"{task}: evolving", file=sys.stderr)
    kernelevo("run", f"configs/{task}.yaml", *chosen)
    shown = kernelevo("show", name, "winner", "--json")
    return json.loads(shown.stdout) if shown.returncode == 0 else None


def line(task: str, winner: dict[str, Any] | None) -> tuple[str, str]:
    """A task's row of the table."""
    found = (winner or {}).get("certificate")
    if not found or not found["correct"]:
        return task, "no certified kernel"
    time, precision = found["time_ms"], found["precision"]
    words = [f"{time['median']:.4g} ms [{time['low']:.4g}, {time['high']:.4g}]"]
    ratios = found["certificate"]["figures"]["speedup"]
    words += [
        f"{100 * ratios[mode]['median']:.1f}% of {mode} "
        f"[{100 * ratios[mode]['low']:.1f}, {100 * ratios[mode]['high']:.1f}]"
        for mode in ("eager", "eager_no_tf32", "graph", "compile")
        if mode in ratios
    ]
    words.append(f"{found['roofline_share']:.0%} of {found['roofline_ceiling']}")
    words.append(
        f"tier {precision['tier']}, error {precision['error']:.2g} "
        f"(PyTorch's {precision['reference_error']:.2g})"
    )
    checks = found["certificate"]["checks"].items()
    words += [f"{check} {said}" for check, said in checks if not said.startswith("passed")]
    return task, "; ".join(words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", default="cuda:0", help="comma-separated, as in the YAML")
    parser.add_argument("--minutes", type=float, default=60.0, help="of search for each task")
    parser.add_argument("--tasks", nargs="+", default=TASKS, choices=TASKS)
    parser.add_argument("--prefix", default="published-", help="of the runs' names")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--save", metavar="NAME", help="write benchmarks/results/NAME.md")
    options = parser.parse_args()
    winners = {task: evolve(task, options) for task in options.tasks}
    devices = {w["certificate"]["device"] for w in winners.values() if w and w["certificate"]}
    facts = {
        "device": ", ".join(sorted(devices)) or "none",
        "versions": f"{versions('torch')}, {compiler('nvcc')}",
        "repetitions": "one run each; medians of one sitting [95% interval]",
    }
    rows = [line(task, winner) for task, winner in winners.items()]
    publish(report("The published tasks", rows, facts), options.save)


if __name__ == "__main__":
    main()
