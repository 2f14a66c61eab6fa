"""What every benchmark prints beside its figures: device, versions, command, repetitions."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

RESULTS = Path(__file__).parent / "results"

SOFTMAX = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)

def get_inputs():
    return [torch.randn({rows}, {columns})]

def get_init_inputs():
    return []
"""


def processor() -> str:
    """The CPU's name and the cores that this process may use."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {len(os.sched_getaffinity(0))} cores"


def compiler(name: str) -> str:
    """The first line of a compiler's ``--version`` that names its release."""
    said = subprocess.run([name, "--version"], capture_output=True, text=True).stdout.splitlines()
    return next((line for line in said if "release" in line), said[0] if said else name)


def versions(*packages: str) -> str:
    """Python's version and those of ``packages``."""
    numbers = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    return ", ".join([f"Python {platform.python_version()}", *numbers])


def spread(values: Sequence[float], unit: str = "s") -> str:
    """Median, minimum and maximum for a table's cell."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.3f} {unit} ({low:.3f} to {high:.3f})"


def report(title: str, rows: Sequence[tuple[str, str]], facts: dict[str, str]) -> str:
    """A small Markdown page: the facts, then a table of two columns."""
    command = " ".join(["python", *sys.argv])
    facts = {"date": date.today().isoformat(), "command": f"`{command}`", **facts}
    lines = [f"# {title}", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    lines += ["", "| what | result |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in rows]
    return "\n".join(lines) + "\n"


def publish(page: str, name: str | None) -> None:
    """Print the page; with a name also write it to ``benchmarks/results/NAME.md``."""
    print(page)
    if name:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.md").write_text(page, encoding="utf-8")
