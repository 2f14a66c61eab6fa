"""A baseline measured in a process of its own, which is killed at its deadline.

Started as ``python -m fitness.baseline_process ANSWER PARENT`` with a request on stdin.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from cuda_sandbox.children import die_with, environment, group, wait_for
from fitness.evaluation import Interval, Tier
from fitness.hardware import Ceilings


class NoFigure(Exception):
    """The mode could not be measured; the message says why."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to measure: the task's file, device, threads, a name of `fitness.modes.MODES`."""

    task: str
    device: str
    threads: int
    mode: str
    tier: Tier | None


def measure(request: Request, ceilings: Ceilings, deadline_s: float) -> Interval:
    """The time of PyTorch in a mode. Raises NoFigure, also where it takes too long."""
    with tempfile.TemporaryDirectory(prefix="kernelevo-") as folder:
        answer = Path(folder, "answer.json")
        with Path(folder, "said").open("w+b") as said:
            code = _run(asdict(request) | {"ceilings": asdict(ceilings)}, answer, said, deadline_s)
            said.seek(0)
            tail = said.read()[-2000:].decode(errors="replace").strip().splitlines()
        if code is None:
            raise NoFigure(f"not ready within {deadline_s:g} s")
        if not answer.exists():
            raise NoFigure(f"its process ended with {code}: {tail[-1] if tail else 'no word'}")
        found: dict[str, Any] = json.loads(answer.read_text())
    if "error" in found:
        raise NoFigure(found["error"])
    return Interval(**found)


def _run(request: dict[str, Any], answer: Path, said: IO[bytes], deadline_s: float) -> int | None:
    """The child's exit code; None if it and its compilers had to be killed."""
    module = ["-P", "-m", "fitness.baseline_process"]  # -P: a task's folder must not hide ours
    command = [sys.executable, *module, str(answer), str(os.getpid())]
    pipes = {"stdin": subprocess.PIPE, "stdout": said, "stderr": said}
    with group(command, env=environment(), **pipes) as child:
        assert child.stdin is not None
        with contextlib.suppress(BrokenPipeError), child.stdin:
            child.stdin.write(json.dumps(request).encode())
        return wait_for(child, deadline_s)


def main() -> None:
    """Measure, and write the interval or the error."""
    answer, parent = Path(sys.argv[1]), int(sys.argv[2])
    die_with(parent)
    request: dict[str, Any] = json.load(sys.stdin)
    found: dict[str, Any]
    try:
        found = _measured(request)
    except Exception as error:  # noqa: BLE001  whatever PyTorch throws is the answer
        found = {"error": f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"}
    answer.write_text(json.dumps(found))


def _measured(request: dict[str, Any]) -> dict[str, Any]:
    import torch

    from fitness.baselines import Baselines
    from fitness.stopwatch import steady_heap
    from fitness.task import load

    steady_heap()
    device = torch.device(request["device"])
    if device.type == "cuda":
        torch.cuda.set_device(device)
    torch.set_num_threads(request["threads"])
    task = load(request["task"], request["device"])
    tier = None if request["tier"] is None else Tier(request["tier"])
    ceilings = Ceilings(**request["ceilings"])
    with contextlib.redirect_stdout(sys.stderr):  # max-autotune talks
        return asdict(Baselines(task, tier, request["threads"], ceilings).time(request["mode"]))


if __name__ == "__main__":
    main()
