"""One candidate in its worker: called on contents it cannot know, timed by two clocks."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from cuda_sandbox.report import CandidateFailure, Status
from cuda_sandbox.sandbox import Worker
from fitness.arena import Arena
from fitness.contents import TimedContent
from fitness.timing import Effort, sample

_CLOCK_SHARE = 0.15
_CLOCK_MS = 0.05
"""How far the judge's clock may read above the worker's: a share of the time, plus jitter."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One call's time in ms: by the worker's clock, and by the judge's around it."""

    worker_ms: float
    judge_ms: float


class Trial:
    """A worker bound to an arena. Methods raise CandidateFailure where the candidate fails."""

    def __init__(self, worker: Worker, arena: Arena, rng: random.Random) -> None:
        self._worker = worker
        self._arena = arena
        self._rng = rng
        self._readings: list[Reading] = []

    def outputs(self, leaves: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        """What the kernel makes of ``leaves``, in one untimed call."""
        return self._call(leaves, flush=False)[1]

    def timed(self, contents: Sequence[TimedContent]) -> float:
        """The time (ms, worker's clock) of one call on a secret choice of ``contents``.

        Its outputs are checked.
        """
        content = self._rng.choice(contents)
        reading, outputs = self._call(content.leaves, flush=True)
        complaint = content.complaint(outputs)
        if complaint:
            raise CandidateFailure(
                Status.HACK,
                f"a timed call gave a wrong result where an untimed one did not: {complaint}",
            )
        self._readings.append(reading)
        return reading.worker_ms

    def sample(self, contents: Sequence[TimedContent], effort: Effort) -> list[float]:
        """Times (ms) of calls on ``contents``, after three to warm up; both clocks compared."""
        for _ in range(3):
            self.timed(contents)
        self._readings.clear()
        times = sample(lambda: self.timed(contents), effort)
        self.compare_clocks(contents[0].leaves)
        return times

    def compare_clocks(self, leaves: Mapping[str, Tensor]) -> None:
        """Raise CandidateFailure(HACK) if the judge's clock saw more time than the worker tells.

        The overhead that both contain is that of a kernel that does nothing, called likewise.
        """
        overhead = statistics.median(self._empty(leaves) for _ in range(7))
        told = statistics.median(reading.worker_ms for reading in self._readings)
        seen = statistics.median(reading.judge_ms for reading in self._readings) - overhead
        if seen > told * (1 + _CLOCK_SHARE) + _CLOCK_MS:
            raise CandidateFailure(
                Status.HACK,
                f"clocks: its process tells {told:.4g} ms a call, the judge's clock {seen:.4g} ms",
            )

    def _empty(self, leaves: Mapping[str, Tensor]) -> float:
        # Written anew as before a real call: a GPU switching from our context to the worker's
        # takes about 0.2 ms, which is overhead too.
        self._arena.write(leaves)
        started = time.perf_counter()
        self._worker.run_empty(1, flush=True)
        return (time.perf_counter() - started) * 1e3

    def _call(
        self, leaves: Mapping[str, Tensor], *, flush: bool
    ) -> tuple[Reading, tuple[Tensor, ...]]:
        self._arena.write(leaves)
        started = time.perf_counter()
        (worker_ms,) = self._worker.run(1, flush=flush)
        judge_ms = (time.perf_counter() - started) * 1e3
        with self._worker.frozen():
            self._arena.inspect(leaves)
            return Reading(worker_ms, judge_ms), self._arena.outputs()
