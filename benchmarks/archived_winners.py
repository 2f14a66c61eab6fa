"""Winners kept under populations/archive/ certified again on this machine.

    python benchmarks/archived_winners.py [--device cuda] [--winners published-softmax ...]
                                          [--sanitizer-seconds 120] [--save h200_winners]

Each goes through ``kernelevo certify`` on its archived task, source and demand, beside PyTorch in
every mode that applies, and is compared with its archived certificate. All ratios of a line are of
one sitting, in which the kernel and PyTorch took turns.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from common import compiler, publish, report, versions

ROOT = Path(__file__).resolve().parents[1]
ARCHIVE = ROOT / "populations" / "archive"
SUFFIX = {"cuda": ".cu", "cpu": ".cpp"}


def winners(device: str) -> list[str]:
    """The archived winners in the language of ``device``."""
    suffix = SUFFIX[device.partition(":")[0]]
    return sorted(path.parent.name for path in ARCHIVE.glob(f"*/kernel{suffix}"))


def certify(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Today's certificate of a winner, as `kernelevo certify --json` gives it."""
    folder = ARCHIVE / name
    demand = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))["fitness"]
    earlier = folder / "certificate.json"
    known = json.loads(earlier.read_text(encoding="utf-8"))["certification"]["certificate"]
    asked = (
        ["--tolerance", str(demand["tolerance"])]
        if demand["tolerance"]
        else ["--tier", demand["tier"]]
    )
    kernel = folder / f"kernel{SUFFIX[options.device.partition(':')[0]]}"
    command = [sys.executable, "-m", "evo", "certify", str(folder / "task.py"), str(kernel)]
    command += ["--device", options.device, *asked, "--earlier", str(earlier), "--json"]
    command += ["--sanitizer-seconds", str(options.sanitizer_seconds)]
    command += [f"--flag={flag}" for flag in known.get("kernel", {}).get("flags", [])]
    print(f"{name}: certifying", file=sys.stderr)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def line(found: dict[str, Any]) -> str:
    """A winner's row of the table."""
    if found.get("verdict") != "certified":
        return f"not certified: {found.get('reason') or found.get('error')}"
    figures = found["figures"]
    words = [f"{_span(figures['time_ms']['kernel'], 4)} ms"]
    ratios = figures["speedup"]
    words += [
        f"{_span(ratios[mode], 4, 100)}% of {mode}" for mode in found["baselines"] if mode in ratios
    ]
    precision = found["precision"]
    words.append(f"tier {precision['tier']}, error {precision['error']:.2g}")
    said = found["checks"].items()
    words += [f"{check} {result}" for check, result in said if not result.startswith("passed")]
    words += [f"{mode}: {why}" for mode, why in figures["absent"].items()]
    words.append(found["comparison"]["summary"])
    return "; ".join(words)


def _span(interval: dict[str, float], digits: int, times: float = 1.0) -> str:
    median, low, high = (times * interval[name] for name in ("median", "low", "high"))
    return f"{median:.{digits}g} [{low:.{digits}g}, {high:.{digits}g}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda", help="cpu, cuda or cuda:N")
    parser.add_argument("--winners", nargs="+", metavar="NAME", help="default: all for the device")
    parser.add_argument("--sanitizer-seconds", type=float, default=120.0)
    parser.add_argument("--save", metavar="NAME", help="write benchmarks/results/NAME.md")
    options = parser.parse_args()
    rows, devices = [], set()
    for name in options.winners or winners(options.device):
        found = certify(name, options)
        rows.append((name, line(found)))
        devices.add(found.get("environment", {}).get("device", ""))
        print(": ".join(rows[-1]), file=sys.stderr)
    facts = {
        "device": ", ".join(sorted(filter(None, devices))) or "none",
        "versions": f"{versions('torch')}, {compiler('g++')}",
        "repetitions": "one sitting each; medians [95% interval]",
    }
    publish(report("Archived winners, certified again", rows, facts), options.save)


if __name__ == "__main__":
    main()
