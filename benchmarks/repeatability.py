"""Whether a speedup measured again in another process is the same: at 1 ms, 0.1 ms and 0.02 ms.

    python benchmarks/repeatability.py cuda [--processes 10] [--save repeatability_h200]
    python benchmarks/repeatability.py cpu  [--processes 3]

Where kernelevo is not installed: PYTHONPATH=. python3 benchmarks/repeatability.py ...

Every process has judges of its own and measures kernel and PyTorch anew, in turns, as certification
does. All get ready side by side; then they measure one after the other. The spread is the largest
less the smallest of all processes' speedups, over their median.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import SOFTMAX, publish, report, versions
from common import compiler as compiler_version

HERE = Path(__file__).parent
LIMIT = 0.01
MATMUL = """
import torch

class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b

def get_inputs():
    return [torch.randn({rows}, {columns}), torch.randn({columns}, {columns})]

def get_init_inputs():
    return []
"""


@dataclass(frozen=True)
class Case:
    """A task of about this time, and the kernel for it."""

    name: str
    kernel: str
    task: str


CASES = {
    "cuda": (
        Case("1 ms", "matmul.cu", MATMUL.format(rows=2560, columns=2560)),
        Case("0.1 ms", "softmax.cu", SOFTMAX.format(rows=800, columns=65536)),
        Case("0.02 ms", "softmax.cu", SOFTMAX.format(rows=132, columns=65536)),
    ),
    "cpu": (
        Case("10 ms", "matmul.cpp", MATMUL.format(rows=512, columns=512)),
        Case("1 ms", "softmax.cpp", SOFTMAX.format(rows=64, columns=4096)),
    ),
}
LANGUAGES = {"cuda": "cuda", "cpu": "cpp"}


def measure(device: str, folder: Path) -> None:
    """One process: get every case ready, say so, wait for a line, measure, print the figures."""
    from cuda_sandbox.compiler import Compiler
    from cuda_sandbox.kernel import Kernel
    from fitness.evaluation import Demand
    from fitness.judge import Judge
    from fitness.sitting import seated

    with Compiler() as compiler, ExitStack() as stack:
        ready = []
        for index, case in enumerate(CASES[device]):
            judge = Judge(folder / f"case{index}.py", Demand(), device, compiler=compiler)
            stack.callback(judge.close)
            kernel = Kernel((HERE / "kernels" / case.kernel).read_text(), LANGUAGES[device])
            compiled = compiler.submit(kernel, judge.signature, judge.arch).result()
            trial = stack.enter_context(judge.trial(kernel, compiled, judge.arena))
            judge.examine(trial, judge.bank)
            assert judge.bank.timed
            ready.append((judge, trial))
        print(json.dumps({"device": judge.name}), flush=True)
        sys.stdin.readline()
        for judge, trial in ready:
            with seated(judge, trial, judge.bank, {}) as sit:
                found = sit()
            print(json.dumps(found.figures() | {"clocks": dict(found.clocks)}), flush=True)


class Measurer:
    """A process of the same program that measures when it is told to."""

    def __init__(self, device: str, folder: Path) -> None:
        command = [sys.executable, __file__, device, "--folder", str(folder)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ready(self) -> str:
        """Wait until it is; the device's name."""
        return str(self._line()["device"])

    def go(self, cases: int) -> list[dict[str, Any]]:
        """Its figures, a record for each case."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return [self._line() for _ in range(cases)]

    def end(self) -> None:
        """Leave nothing behind."""
        self._process.kill()
        self._process.wait()

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a measuring process ended with {self._process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found


def spread(values: list[float]) -> float:
    """Largest less smallest, over the median."""
    return (max(values) - min(values)) / statistics.median(values)


def row(case: Case, figures: list[dict[str, Any]]) -> tuple[str, str]:
    """A case's line of the table."""
    mine = [one["time_ms"]["kernel"]["median"] for one in figures]
    theirs = [one["time_ms"]["eager"]["median"] for one in figures]
    ratios = [one["speedup"]["eager"]["median"] for one in figures]
    again = [one["speedup"]["kernel again"]["median"] for one in figures]
    verdict = "within" if spread(ratios) <= LIMIT else "NOT within"
    listed = " ".join(f"{ratio:.4f}" for ratio in ratios)
    return case.name, (
        f"{case.kernel} {statistics.median(mine):.4g} ms (spread {spread(mine):.2%}), eager "
        f"{statistics.median(theirs):.4g} ms ({spread(theirs):.2%}); speedup "
        f"{statistics.median(ratios):.4f}, **spread {spread(ratios):.2%}**, {verdict} {LIMIT:.0%}; "
        f"A/A {min(again):.4f} to {max(again):.4f}; {listed}"
    )


def compare(device: str, processes: int) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """The table's rows and the facts."""
    began = time.monotonic()
    cases = CASES[device]
    with tempfile.TemporaryDirectory() as name:
        for index, case in enumerate(cases):
            Path(name, f"case{index}.py").write_text(case.task)
        measurers = [Measurer(device, Path(name)) for _ in range(processes)]
        try:
            device_name = {one.ready() for one in measurers}
            prepared = time.monotonic()
            found = [one.go(len(cases)) for one in measurers]
        finally:
            for one in measurers:
                one.end()
    rows = [row(case, [each[index] for each in found]) for index, case in enumerate(cases)]
    facts = {
        "device": ", ".join(device_name),
        "clocks": "; ".join(sorted({one["clocks"]["summary"] for each in found for one in each})),
        "repetitions": f"{processes} processes; up to 200 rounds each",
        "took": f"{prepared - began:.0f} s to get ready, {time.monotonic() - prepared:.0f} s to "
        "measure",
    }
    return rows, facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device", choices=CASES)
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--save", metavar="NAME", help="write benchmarks/results/NAME.md")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        measure(options.device, options.folder)
        return
    rows, facts = compare(options.device, options.processes)
    tool = "nvcc" if options.device == "cuda" else "g++"
    facts["versions"] = f"{versions('torch')}, {compiler_version(tool)}"
    publish(report("The same speedup in another process", rows, facts), options.save)


if __name__ == "__main__":
    main()
