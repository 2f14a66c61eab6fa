"""One candidate in its worker: called on contents it cannot know, timed by two clocks."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from torch import Tensor

from cuda_sandbox.report import CandidateFailure, Status
from cuda_sandbox.sandbox import Worker
from fitness.arena import Arena, same_bytes
from fitness.clocks import Reading, Rows, suspicion, told_ms, understated_ms
from fitness.contents import TimedContent
from fitness.hardware import cache_bytes
from fitness.overhead import Overhead
from fitness.pulse import DeviceShared, Pulse
from fitness.timing import Effort, sample
from fitness.witness import Usage, usage

_RESTS_S = (0.0, 0.05, 0.1, 0.2)
"""On suspicion we look again, after a rest: a busy host, or another program on the device, delays
honest answers too, but not in every round."""

Answer = TypeVar("Answer")

_LEAST_READINGS, _ROWS = 7, 3
_LATE_S = 0.03
_GLANCE = 0.2
"""Share of batches after which we look whether the device really is idle."""

_LOOKS = 5
_REST_S, _LONG_REST_S = 0.05, 0.2
"""How often, and after which rest, a device that was found busy is looked at again."""


class Trial:
    """A worker bound to an arena. Methods raise CandidateFailure where the candidate fails, and
    DeviceShared where nothing can be said of it.

    ``pulse`` tells whether the device is idle between calls; None where that is known. ``anew``
    opens another trial of the same kernel on the same arena, in a process of its own. ``overhead``
    goes by around calls on a GPU; ``in_rows``: they may be made one right behind the other.
    ``idle_ms`` is the CPU time that a call of nothing takes at most.
    """

    def __init__(
        self,
        worker: Worker,
        arena: Arena,
        rng: random.Random,
        threads: int,
        *,
        pulse: Pulse | None = None,
        anew: Callable[[], contextlib.AbstractContextManager[Trial]] | None = None,
        overhead: Overhead | None = None,
        in_rows: bool = True,
        idle_ms: float = math.inf,
    ) -> None:
        self.anew = anew
        self._worker = worker
        self._threads = threads
        self._idle_ms = idle_ms
        self._arena = arena
        self._rng = rng
        self._pulse = pulse
        self._overhead = overhead
        self._in_rows = in_rows and overhead is not None
        self._readings: list[Reading] = []
        self._ballast: ctypes.Array[ctypes.c_char] | None = None

    def outputs(self, leaves: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        """What the kernel makes of ``leaves``, in one untimed call."""
        run = functools.partial(self._worker.run, 1, flush=False)
        _, glimpses = self._read(run, [leaves], evict=False)
        with self._worker.frozen():
            self._arena.inspect(leaves, glimpses[0])
            outputs = self._arena.outputs()
            complaint = self._arena.unwritten()
        if complaint:
            raise self.late(outputs) or CandidateFailure(Status.INCORRECT, complaint)
        return outputs

    def late(self, outputs: Sequence[Tensor]) -> CandidateFailure | None:
        """The failure of a kernel that goes on writing; ``outputs`` are those of its last call."""
        self._worker.let_run(_LATE_S)
        with self._worker.frozen():
            now = self._arena.outputs()
        if all(map(same_bytes, outputs, now)):
            return None
        return CandidateFailure(Status.HACK, "wrote to its outputs after launch had returned")

    def asked(self, question: Callable[[Worker], Answer]) -> Answer:
        """What the worker itself says: evidence, never truth."""
        return question(self._worker)

    def timed(self, contents: Sequence[TimedContent]) -> float:
        """The time (ms, worker's clock) of one call on arguments made of one of ``contents``.

        Nobody has seen those arguments before. The outputs are checked.
        """
        reading = self._checked(contents, 1, self._call(self._worker.run))
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

        Raises CandidateFailure(HACK) if the judge's clock saw more time than the worker tells, and
        DeviceShared if that may have been others' doing.
        """
        compare = self._hold_rows if self._in_rows else self._hold_calls
        complaint = ""
        for rest_s in _RESTS_S:
            time.sleep(rest_s)
            while len(self._readings) < _LEAST_READINGS:
                self.timed(contents)
            complaint, missing = compare(contents)
            if not complaint:
                return missing
            self._readings.clear()
        if self._alone():
            raise CandidateFailure(Status.HACK, complaint)
        raise DeviceShared(
            f"{self._arena.device} is too busy with something else for a kernel to be timed; end "
            "that, and call again"
        )

    def _alone(self) -> bool:
        """Whether nobody but the candidate can have disturbed what was measured; it is ended."""
        self._worker.close()  # what it has left running must not pass for another's work
        return self._overhead is None or self._overhead.undisturbed()

    def _hold_calls(self, contents: Sequence[TimedContent]) -> tuple[str, float]:
        """Single calls by both clocks: a complaint, and what the worker's lacks."""
        empty = [self._empty(contents) for _ in range(_LEAST_READINGS)]
        readings, most = self._readings, self._idle_ms
        return suspicion(readings, empty, most), understated_ms(readings, empty, most)

    def _empty(self, contents: Sequence[TimedContent]) -> Reading:
        """A call of nothing, with all that comes before and after one of the kernel.

        A worker that rested as long answers as late.
        """
        content = self._rng.choice(contents).fresh(self._rng)
        reading, _ = self._read(self._call(self._worker.run_empty), [content.leaves])
        with self._worker.frozen():
            content.complaint(self._arena.outputs())
        return reading

    def _hold_rows(self, contents: Sequence[TimedContent]) -> tuple[str, float]:
        """Calls in a row by the judge's clock: a complaint; nothing is lacking.

        In a short row each call has arguments of its own. A long one is the more exact, but a
        kernel may know most of its arguments, so its time is never reported.
        """
        assert self._overhead
        long = Rows.length(self._readings)
        told, around = told_ms(self._readings), self._overhead.ms()
        for calls in sorted({min(long, len(self._arena)), long}):
            row = [self._row(contents, calls) for _ in range(_ROWS)]
            if complaint := Rows(told, around, calls, row).complaint():
                return complaint, 0.0
        return "", 0.0

    def _row(self, contents: Sequence[TimedContent], calls: int) -> float:
        """The time (ms, judge's clock) of so many calls on the sets of buffers in turns."""
        run = functools.partial(self._worker.run_bare, calls)
        return self._checked(contents, min(calls, len(self._arena)), run).judge_ms

    def _call(self, run: Callable[..., list[float]]) -> Callable[[], list[float]]:
        """A call as it is timed: with cold caches, which on a CPU the judge sees to."""
        return functools.partial(run, 1, flush=not self._on_cpu)

    def _checked(
        self, contents: Sequence[TimedContent], sets: int, run: Callable[[], list[float]]
    ) -> Reading:
        """Fresh arguments in so many sets of buffers, ``run``, and what it left there checked."""
        batch = [self._rng.choice(contents).fresh(self._rng) for _ in range(sets)]
        reading, glimpses = self._read(run, [content.leaves for content in batch])
        busy = self._glance()
        with self._worker.frozen():
            for at, (content, glimpse) in enumerate(zip(batch, glimpses, strict=True)):
                self._check(at, content, glimpse)
        if busy:
            self._explain_work(contents)
        return reading

    def _glance(self) -> bool:
        """Now and then see whether the device is still busy, as it must not be after an answer."""
        pulse = self._pulse
        return pulse is not None and self._rng.random() < _GLANCE and pulse.disturbed()

    def _explain_work(self, contents: Sequence[TimedContent]) -> None:
        """Whose work it is that a device was found busy with; outputs are written anew.

        It is held against the kernel only if it goes with its calls, or with its process, again
        and again: other programs may use the device now and then. Raises DeviceShared if the device
        is busy all the time even without the worker.
        """
        pulse = self._pulse
        assert pulse
        at_rest = []
        for _ in range(_LOOKS):  # in turns, so that a burst of other work fits neither
            content = self._rng.choice(contents).fresh(self._rng)
            self._read(self._call(self._worker.run), [content.leaves])
            if not pulse.disturbed():
                return
            at_rest.append(_disturbed_after(_REST_S, pulse))
        if any(at_rest):
            self._worker.close()
            at_rest = [_disturbed_after(_LONG_REST_S, pulse) for _ in range(_LOOKS)]
        if not any(at_rest) and self._alone():
            reason = "the device was still at work after launch's work had ended"
            raise CandidateFailure(Status.HACK, reason)
        raise DeviceShared(
            f"{self._arena.device} is kept busy by something else; end that, and call again"
        )

    def _check(self, at: int, content: TimedContent, glimpse: tuple[Tensor, ...]) -> None:
        self._arena.inspect(content.leaves, glimpse, at)
        if complaint := content.complaint(self._arena.outputs(at)):
            raise CandidateFailure(
                Status.HACK,
                f"a timed call gave a wrong result where an untimed one did not: {complaint}",
            )

    @property
    def _on_cpu(self) -> bool:
        return self._arena.device.type == "cpu"

    def _read(
        self,
        run: Callable[[], list[float]],
        batch: Sequence[Mapping[str, Tensor]],
        *,
        evict: bool = True,
    ) -> tuple[Reading, list[tuple[Tensor, ...]]]:
        """``run`` by both clocks, with ``batch`` just written into the sets of buffers.

        Also the outputs' glimpses, taken as soon as the last call has returned. The worker stands
        still before and after: nobody can look at the arguments and start on the work. Freshly
        written also for a call of nothing: a GPU that switches from our context to the worker's
        takes about 0.2 ms, which is overhead too.
        """
        with self._worker.frozen():
            for at, leaves in enumerate(batch):
                self._arena.write(leaves, at)
            if evict and self._on_cpu:
                # Not in the worker: emptying the caches takes longer than many kernels, and its
                # jitter would drown them in the judge's clock.
                self._evict()
            before = self._witness()
        started = time.perf_counter()
        times = run()
        judge_ms = (time.perf_counter() - started) * 1e3
        with self._worker.frozen() if self._on_cpu else contextlib.nullcontext():
            glimpses = [self._arena.glimpse(at) for at in range(len(batch))]
            return self._seen(times, judge_ms, before), glimpses

    def _evict(self) -> None:
        if self._ballast is None:
            self._ballast = ctypes.create_string_buffer(2 * cache_bytes(self._arena.device))
        ctypes.memset(self._ballast, self._rng.randrange(256), len(self._ballast))

    def _witness(self) -> tuple[Usage, Usage] | None:
        """What the worker and we have used of the CPU; None where the GPU does the work."""
        if not self._on_cpu:
            return None
        try:
            return usage(self._worker.pid), usage(os.getpid())
        except (OSError, ValueError) as error:  # it answered and died
            reason = "the process ended although a call had been answered"
            raise CandidateFailure(Status.CRASHED, reason) from error

    def _seen(
        self, times: Sequence[float], judge_ms: float, before: tuple[Usage, Usage] | None
    ) -> Reading:
        now = self._witness()
        told = times[0] if times else 0.0
        if before is None or now is None:
            return Reading(told, judge_ms)
        worker, judge = (later.since(earlier) for later, earlier in zip(now, before, strict=True))
        return Reading(told, judge_ms, worker.busy_ms(self._threads), judge.delay_ms)


def _disturbed_after(rest_s: float, pulse: Pulse) -> bool:
    time.sleep(rest_s)
    return pulse.disturbed()
