"""One candidate in its worker: called on contents it cannot know, timed by two clocks."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from cuda_sandbox.report import CandidateFailure, Status
from cuda_sandbox.sandbox import Worker
from fitness.arena import Arena
from fitness.clocks import Reading, suspicion, understated_ms
from fitness.contents import TimedContent
from fitness.hardware import cache_bytes
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
        self._glimpse: tuple[Tensor, ...] = ()
        self._ballast: ctypes.Array[ctypes.c_char] | None = None

    def outputs(self, leaves: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        """What the kernel makes of ``leaves``, in one untimed call."""
        return self._call(leaves, flush=False)[1]

    def timed(self, contents: Sequence[TimedContent]) -> float:
        """The time (ms, worker's clock) of one call on arguments made of one of ``contents``.

        Nobody has seen those arguments before. The outputs are checked.
        """
        content = self._rng.choice(contents).fresh(self._rng)
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
        missing = self.compare_clocks(contents)
        return [told + missing for told in times]

    def compare_clocks(self, contents: Sequence[TimedContent]) -> float:
        """What the worker's times lack (ms): see `understated_ms`.

        Raises CandidateFailure(HACK) if the judge's clock saw more time than the worker tells.
        """
        for _ in range(_ROUNDS):
            empty = [self._read(self._worker.run_empty, contents[0].leaves) for _ in range(7)]
            complaint = suspicion(self._readings, empty)
            if not complaint:
                return understated_ms(self._readings, empty)
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
        on_cpu = self._arena.device.type == "cpu"
        with self._unseen():
            self._arena.write(leaves)
            if flush and on_cpu:
                # Not in the worker: emptying the caches takes longer than many kernels, and its
                # jitter would drown them in the judge's clock.
                self._evict()
            before = self._witness()
            started = time.perf_counter()
        (worker_ms,) = run(1, flush=flush and not on_cpu)
        judge_ms = (time.perf_counter() - started) * 1e3
        self._glimpse = self._arena.glimpse()
        return self._seen(worker_ms, judge_ms, before)

    def _unseen(self) -> contextlib.AbstractContextManager[None]:
        """Until the clock runs, nobody may look at the arguments and start on the work.

        CPU only: stopping a process does not stop what it has given a GPU to do.
        """
        on_cpu = self._arena.device.type == "cpu"
        return self._worker.frozen() if on_cpu else contextlib.nullcontext()

    def _evict(self) -> None:
        if self._ballast is None:
            self._ballast = ctypes.create_string_buffer(2 * cache_bytes(self._arena.device))
        ctypes.memset(self._ballast, self._rng.randrange(256), len(self._ballast))

    def _witness(self) -> tuple[Usage, Usage] | None:
        """What the worker and we have used of the CPU; None where the GPU does the work."""
        if self._arena.device.type != "cpu":
            return None
        try:
            return usage(self._worker.pid), usage(os.getpid())
        except (OSError, ValueError) as error:  # it answered and died
            reason = "the process ended although a call had been answered"
            raise CandidateFailure(Status.CRASHED, reason) from error

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
            self._arena.inspect(leaves, self._glimpse)
            return reading, self._arena.outputs()
