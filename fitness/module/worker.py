"""A module's worker, as the judge holds it: like every other, and it tells what it found."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import time
from pathlib import Path
from typing import Any

from cuda_sandbox.buffers import Buffers
from cuda_sandbox.process import Process
from cuda_sandbox.protocol import Flag, Kind, Op, Request
from cuda_sandbox.report import CandidateFailure, Status
from cuda_sandbox.sandbox import SandboxError, Worker
from fitness.evaluation import Execution
from fitness.module import libraries, linked, written
from fitness.module.berths import Berth, Berths
from fitness.module.building import Folder
from fitness.module.jail import Place, worker_program
from fitness.module.runner.orders import KERNEL

_MOST_TEXT = 1 << 18
_MOST_NAMES = 100
_MOST_LETTERS = 300
_UNCAPTURED = "not captured: "
_IMPORTS_S = 10.0  # torch's own compiler takes seconds to import


class _Host:
    """Stands for a backend: which program is started."""

    def __init__(self, place: Place, built: Path) -> None:
        self._place, self._built = place, built

    def program(self, device: str, cache: Path) -> Any:
        """The worker's program."""
        del device
        return worker_program(self._place, self._built, cache)


class ModuleWorker(Worker):
    """The process of one module, which was prepared in ``folder``; one of ``berths``, if any waits.

    Where a call cannot be captured, the process is replaced by one that calls the module anew
    each time: a broken capture leaves traces.
    """

    def __init__(
        self, place: Place, folder: Folder, berths: Berths, buffers: Buffers, **options: Any
    ) -> None:
        self._place, self._folder, self._berths = place, folder, berths
        self._berth: Berth | None = None
        self._captures = place.is_cuda
        self._sets: tuple[Buffers, ...] = ()
        self._own: tuple[str, ...] = ()
        self._weights = ""
        self._uncaptured = ""
        host = _Host(place, folder.built)
        super().__init__(host, folder.told, buffers, device=place.device, **options)

    def __enter__(self) -> ModuleWorker:
        try:
            super().__enter__()
        except CandidateFailure as failure:  # nothing of the candidate's was in it yet
            raise SandboxError(f"a module's process did not start: {failure.reason}") from failure
        return self

    def __exit__(self, *raised: object) -> None:
        error = raised[1] if len(raised) > 1 else None
        if isinstance(error, CandidateFailure) and error.status is Status.INCORRECT and self._own:
            error.reason += (
                f" (ModelNew holds {', '.join(self._own)}, made before it was given its weights)"
            )
        super().__exit__(*raised)

    def close(self) -> None:
        """Kill the worker; may be called twice."""
        super().close()
        if self._berth is not None:
            self._berth.close()

    def _start(self, room: int) -> Process:
        self._berth = self._berths.take(self._place, self._cpus)
        berth = self._berth
        process = berth.board(self._folder) if berth else super()._start(room)
        self._serial = secrets.randbits(32)
        order = Request(Op.LOAD, flags=Flag.CAPTURE if self._captures else Flag.NONE)
        with contextlib.suppress(BrokenPipeError):  # it is gone: that is seen when it is to answer
            process.control.send(order.pack(self._serial))
        return process

    def bind(self, *more: Buffers) -> None:
        """Hand the buffers over, and hear what became of the weights."""
        self._sets = more
        self._deadline_s += _IMPORTS_S
        loaded = self._receive(time.monotonic() + self._deadline_s, "its start")
        self._expect(loaded, Kind.DONE)
        self._deadline_s -= _IMPORTS_S
        super().bind(*more)
        told = self._tell(Op.FACTS)
        self._weights = _line(told.get("weights"))
        self._own = _names(told.get("own"))

    def run(self, calls: int, *, flush: bool) -> list[float]:
        """Call the module; see `Worker.run`."""
        try:
            return super().run(calls, flush=flush)
        except CandidateFailure as failure:
            if self._uncaptured or not failure.reason.startswith(_UNCAPTURED):
                raise
            self._uncaptured = failure.reason.removeprefix(_UNCAPTURED).partition(" (during")[0]
        self._start_anew()
        return super().run(calls, flush=flush)

    def execution(self) -> Execution:
        """How it runs and what ran in one call: the candidate's own process says so."""
        told = self._tell(Op.TRACE)
        kernels, operators = _names(told.get("kernels")), _names(told.get("operators"))
        source = (self._folder.told / KERNEL).read_text(encoding="utf-8", errors="replace")
        extensions = (*linked.own(self._folder.built), *written.compiles(source))
        return Execution(
            mode="graph" if told.get("mode") == "graph" else "calls",
            ran=kernels or operators,
            foreign=tuple(
                dict.fromkeys(
                    (
                        *libraries.foreign(kernels),
                        *libraries.computing(operators),
                        *libraries.mathematical(_names(told.get("loads"))),
                        *linked.foreign(self._folder.built),
                        *written.foreign(source),
                    )
                )
            ),
            own=libraries.own(kernels) if self._place.is_cuda else extensions,
            weights=self._weights,
            uncaptured=self._uncaptured,
            unseen=_line(told.get("unseen", "")),
        )

    def _death(self, doing: str) -> CandidateFailure:
        """With the last line that Python printed."""
        failure = super()._death(doing)
        lines = [line for line in self.output.splitlines() if line.strip()]
        if lines:
            failure.reason += f": {_line(lines[-1])}"
        return failure

    def _start_anew(self) -> None:
        self.close()
        self._captures = False
        self._resting = False
        self.__enter__()
        self.bind(*self._sets)

    def _tell(self, op: Op) -> dict[str, Any]:
        """A text of the worker's, as the object that it ought to be."""
        resting = self._resting
        deadline = time.monotonic() + self._deadline_s
        reply = self._send(Request(op), deadline, "telling what ran", wanted=Kind.TEXT)
        data = reply.payload[: reply.count]
        while reply.a > 0 and len(data) < _MOST_TEXT:
            reply = self._expect(self._receive(deadline, "telling what ran"), Kind.TEXT)
            data += reply.payload[: reply.count]
        if resting:
            self._rest()
        try:
            told = json.loads(data)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise CandidateFailure(Status.HACK, "forged: what it tells of its call is no answer")
        return told


def _names(told: Any) -> tuple[str, ...]:
    """Names out of a candidate's process: few, short and printable."""
    return tuple(map(_line, told[:_MOST_NAMES])) if isinstance(told, list) else ()


def _line(told: Any) -> str:
    return re.sub(r"[^\x20-\x7e]+", " ", str(told))[:_MOST_LETTERS]
