"""A baseline in a process of its own, which may crash or be killed at its deadline.

What torch.compile makes is code that nobody has checked, and its compilers may run for ever.
Started as ``python -m fitness.baseline_process ANSWERS PARENT``: the first line of its stdin is a
request, each further one an order; ANSWERS is the descriptor of the pipe for one line to each.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import IO, TYPE_CHECKING, Any

from cuda_sandbox.children import die_with, environment, group, wait_for
from fitness.evaluation import Interval, Tier
from fitness.hardware import Ceilings

if TYPE_CHECKING:
    from fitness.baselines import Baselines

_CALL_S = 60.0
_LAST_WORDS_S = 5.0


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


class BaselineProcess:
    """PyTorch in one mode, as it gets ready; see `started`. A call gives the time of one (ms)."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        answers: IO[bytes],
        said: IO[bytes],
        deadline_s: float,
    ) -> None:
        self._child, self._answers, self._said = child, answers, said
        self._deadline_s, self._until = deadline_s, time.monotonic() + deadline_s
        self._ready = False

    def __call__(self) -> float:
        """The time of one call in ms. The first waits until the mode is ready."""
        self.get_ready()
        late = f"a call took more than {_CALL_S:g} s"
        return float(self._answer("time", time.monotonic() + _CALL_S, late)["time_ms"])

    def settled(self) -> Interval:
        """The best showing of PyTorch, as `Baselines.settled` finds it, within the deadline."""
        self.get_ready()
        late = f"not measured within {self._deadline_s:g} s"
        return Interval(**self._answer("settle", self._until, late))

    def get_ready(self) -> None:
        """Wait until it is."""
        if not self._ready:
            self._answer("", self._until, f"not ready within {self._deadline_s:g} s")
            self._ready = True

    def _answer(self, order: str, until: float, late: str) -> dict[str, Any]:
        """Its answer to ``order`` (none: that it is ready). Raises NoFigure."""
        if order:
            assert self._child.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._child.stdin.write(f"{order}\n".encode())
                self._child.stdin.flush()
        if not select.select([self._answers], [], [], max(0.0, until - time.monotonic()))[0]:
            raise NoFigure(late)
        line = self._answers.readline()
        if not line:
            raise NoFigure(self._end())
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise NoFigure(found["error"])
        return found

    def _end(self) -> str:
        code = wait_for(self._child, _LAST_WORDS_S)
        self._said.seek(0)
        tail = self._said.read()[-2000:].decode(errors="replace").strip().splitlines()
        return f"its process ended with {code}: {tail[-1] if tail else 'no word'}"


@contextlib.contextmanager
def started(request: Request, ceilings: Ceilings, deadline_s: float) -> Iterator[BaselineProcess]:
    """A process on its way: what it needs to get ready it may take while others do.

    Its methods raise NoFigure, also where it is not ready ``deadline_s`` from now. At the end it
    and its compilers are killed.
    """
    ours, theirs = os.pipe()
    module = ["-P", "-m", "fitness.baseline_process"]  # -P: a task's folder must not hide ours
    command = [sys.executable, *module, str(theirs), str(os.getpid())]
    with contextlib.ExitStack() as stack:
        answers = stack.enter_context(os.fdopen(ours, "rb"))
        said = stack.enter_context(tempfile.TemporaryFile())
        try:
            options = {"stdin": subprocess.PIPE, "stdout": said, "stderr": said}
            child = stack.enter_context(
                group(command, env=environment(), pass_fds=(theirs,), **options)
            )
        finally:
            os.close(theirs)
        assert child.stdin is not None
        stack.callback(_close, child.stdin)
        asked = asdict(request) | {"ceilings": asdict(ceilings)}
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(f"{json.dumps(asked)}\n".encode())
            child.stdin.flush()
        yield BaselineProcess(child, answers, said, deadline_s)


def _close(pipe: IO[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):
        pipe.close()


def main() -> None:
    """Get ready, then answer orders until there are no more."""
    answers, parent = int(sys.argv[1]), int(sys.argv[2])
    die_with(parent)
    os.set_inheritable(answers, False)  # compilers must not hold it open
    with os.fdopen(answers, "w") as told:
        try:
            for found in _answers(json.loads(sys.stdin.readline())):
                print(json.dumps(found), file=told, flush=True)
        except Exception as error:  # noqa: BLE001  whatever PyTorch throws is the answer
            why = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            print(json.dumps({"error": why}), file=told, flush=True)


def _answers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    baselines = _loaded(request)
    mode = request["mode"]
    with contextlib.redirect_stdout(sys.stderr), baselines.here(mode) as timed:  # autotune talks
        yield {}
        orders: dict[str, Callable[[], dict[str, Any]]] = {
            "time": lambda: {"time_ms": timed()},
            "settle": lambda: asdict(baselines.settled(timed)),
        }
        for line in sys.stdin:
            yield orders[line.strip()]()


def _loaded(request: dict[str, Any]) -> Baselines:
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
    return Baselines(task, tier, request["threads"], Ceilings(**request["ceilings"]))


if __name__ == "__main__":
    main()
