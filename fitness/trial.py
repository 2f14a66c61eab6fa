"""One candidate in its worker: called on contents it cannot know, timed by two clocks."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from cuda_sandbox.report import CandidateFailure, Status
from cuda_sandbox.sandbox import Worker
from fitness.arena import Arena
from fitness.clocks import Reading, suspicion
from fitness.contents import TimedContent
from fitness.timing import Effort, sample
from fitness.witness import Usage, usage

_ROUNDS = 4
"""On suspicion we look again: a busy host delays honest answers too, but not in every round."""


class Trial:
    """A worker bound to an arena. Methods raise CandidateFailure where the candidate fails."""

    def __init__(self, worker: Worker, arena: Arena, rng: random.Random, threads: int) -> None:
        self._worker = worker
        self._threads = threads
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
        self.compare_clocks(contents)
        return times

    def compare_clocks(self, contents: Sequence[TimedContent]) -> None:
        """Raise CandidateFailure(HACK) if the judge's clock saw more time than the worker tells."""
        for _ in range(_ROUNDS):
            empty = [self._read(self._worker.run_empty, contents[0].leaves) for _ in range(7)]
            complaint = suspicion(self._readings, empty)
            if not complaint:
                return
            self._readings.clear()
            for _ in range(15):
                self.timed(contents)
        raise CandidateFailure(Status.HACK, complaint)

    def _read(
        self, run: Callable[..., list[float]], leaves: Mapping[str, Tensor], *, flush: bool = True
    ) -> Reading:
        """One call by both clocks, on freshly written arguments.

        Freshly written also for a call of nothing: a GPU that switches from our context to the
        worker's takes about 0.2 ms, which is overhead too.
        """
        self._arena.write(leaves)
        on_cpu = self._arena.device.type == "cpu"
        if flush and on_cpu:
            # A request of its own: emptying the caches takes longer than many kernels, and its
            # jitter would drown them in the judge's clock.
            self._worker.run_empty(1, flush=True)
        before = self._witness()
        started = time.perf_counter()
        (worker_ms,) = run(1, flush=flush and not on_cpu)
        judge_ms = (time.perf_counter() - started) * 1e3
        return self._seen(worker_ms, judge_ms, before)

    def _witness(self) -> tuple[Usage, Usage] | None:
        """What the worker and we have used of the CPU; None where the GPU does the work."""
        if self._arena.device.type != "cpu":
            return None
        return usage(self._worker.pid), usage(os.getpid())

    def _seen(
        self, worker_ms: float, judge_ms: float, before: tuple[Usage, Usage] | None
    ) -> Reading:
        now = self._witness()
        if before is None or now is None:
            return Reading(worker_ms, judge_ms)
        worker, judge = (later.since(earlier) for later, earlier in zip(now, before, strict=True))
        return Reading(worker_ms, judge_ms, worker.busy_ms(self._threads), judge.delay_ms)

    def _call(
        self, leaves: Mapping[str, Tensor], *, flush: bool
    ) -> tuple[Reading, tuple[Tensor, ...]]:
        reading = self._read(self._worker.run, leaves, flush=flush)
        with self._worker.frozen():
            self._arena.inspect(leaves)
            return reading, self._arena.outputs()
