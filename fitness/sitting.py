"""One sitting: a kernel, its rivals and PyTorch timed in turns, under conditions on record."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CandidateFailure, CompileReport
from cuda_sandbox.slot import timing_slot
from fitness.baselines import BETTER
from fitness.conditions import on_record
from fitness.contents import Bank
from fitness.evaluation import Baseline, Interval
from fitness.hardware import slot
from fitness.timing import Effort, interleave, interval, ratio
from fitness.trial import Trial

if TYPE_CHECKING:
    from fitness.judge import Judge

_EFFORT = Effort(least=31, most=200, seconds=6.0, width=0.005)

AGAIN = "kernel again"
"""An A/A control: the same kernel twice tells what a ratio of 1 looks like here."""

_SITTINGS = 3

_SWITCH_MS = 0.0015
"""A call right behind another process's takes up to 0.001 ms longer on a GPU (H200, five modes)."""

_SLACK = "not of this sitting: PyTorch has been faster"

Calls = dict[str, Callable[[], float]]


@dataclass(frozen=True, slots=True)
class Sitting:
    """What came of it: times (ms) and ratios to the kernel's, by name; who could not take part."""

    time_ms: Mapping[str, Interval]
    speedup: Mapping[str, Interval]
    rounds: int
    absent: Mapping[str, str]
    clocks: Mapping[str, Any]

    @property
    def summary(self) -> str:
        """How many rounds, and how quiet it was."""
        again = self.speedup[AGAIN]
        control = f"A/A control {again.median:.4f} [{again.low:.4f}, {again.high:.4f}]"
        return f"{self.rounds} rounds, {control}"

    def slack(self, known: Mapping[str, Baseline]) -> dict[str, str]:
        """The modes in which PyTorch was slower than it has been known to be, and by how much.

        Others were using the machine: no ratio to such a time means anything.
        """
        return {
            mode: f"{_SLACK}: {self.time_ms[mode].median:.4g} ms, not {base.time_ms.median:.4g} ms"
            for mode, base in known.items()
            if mode in self.time_ms and base.time_ms.median < self._best_ms(mode)
        }

    def _best_ms(self, mode: str) -> float:
        """The least time of which that in this sitting can be the quiet one."""
        return BETTER * (self.time_ms[mode].median - _SWITCH_MS)

    def without_slack(self, known: Mapping[str, Baseline]) -> Sitting:
        """The same less the modes in which PyTorch was slow."""
        slack = self.slack(known)
        return dataclasses.replace(
            self,
            time_ms={name: one for name, one in self.time_ms.items() if name not in slack},
            speedup={name: one for name, one in self.speedup.items() if name not in slack},
            absent={**self.absent, **slack},
        )

    def figures(self) -> dict[str, Any]:
        """For a certificate."""
        return {
            "time_ms": {name: dataclasses.asdict(one) for name, one in self.time_ms.items()},
            "speedup": {name: dataclasses.asdict(one) for name, one in self.speedup.items()},
            "rounds": self.rounds,
            "absent": dict(self.absent),
        }


def quietest(sitting: Callable[[], Sitting], known: Mapping[str, Baseline]) -> Sitting:
    """A sitting in which PyTorch shows its best; after three without one the best of those."""
    held: list[Sitting] = []
    while len(held) < _SITTINGS:
        held.append(sitting())
        if not held[-1].slack(known):
            break
    best = min(held, key=lambda one: (len(one.slack(known)), one.time_ms["kernel"].median))
    return best.without_slack(known)


@contextlib.contextmanager
def seated(
    judge: Judge, trial: Trial, bank: Bank, rivals: Mapping[str, tuple[Kernel, CompileReport]]
) -> Iterator[Callable[[], Sitting]]:
    """The kernel in ``trial``, ``rivals`` and every baseline that is known, ready to be timed.

    Each call holds one sitting. Raises CandidateFailure where the kernel itself fails; a rival or
    a baseline that fails is absent.
    """
    absent: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        calls: Calls = {"kernel": _warm(trial, bank)}
        modes = judge.baselines.known()
        for mode in modes:
            # torch.compile may fail where its figure is known from elsewhere: one ratio less
            with _unless_it_fails(mode, absent, Exception):
                calls[mode] = stack.enter_context(judge.baselines.ready(mode))
        for name, rival in rivals.items():
            with _unless_it_fails(name, absent, CandidateFailure):
                calls[name] = _rival(judge, rival, bank, stack)
        for mode in modes & calls.keys():
            with _unless_it_fails(mode, absent, Exception):
                calls[mode]()  # slow ones have got ready beside each other
        calls = {name: call for name, call in calls.items() if name not in absent}
        calls[AGAIN] = calls["kernel"]

        def sit() -> Sitting:
            with timing_slot(slot(judge.device)):
                with on_record(judge.device) as conditions:
                    times = _in_turns(judge, calls, absent)
                missing = trial.compare_clocks(bank.timed)
            return _sitting(times, missing, absent, conditions.as_json())

        yield sit


def _sitting(
    times: dict[str, list[float]],
    missing: float,
    absent: Mapping[str, str],
    clocks: Mapping[str, Any],
) -> Sitting:
    """``missing``: what the kernel's clock was found to miss of each call, in ms."""
    for name in ("kernel", AGAIN):
        times[name] = [told + missing for told in times[name]]
    return Sitting(
        time_ms={name: interval(taken) for name, taken in times.items()},
        speedup={n: ratio(taken, times["kernel"]) for n, taken in times.items() if n != "kernel"},
        rounds=len(times["kernel"]),
        absent=dict(absent),
        clocks=clocks,
    )


def _in_turns(judge: Judge, calls: Calls, absent: dict[str, str]) -> dict[str, list[float]]:
    """All calls in turns; again without the one that failed, if that is not the kernel."""
    failed: list[str] = []

    def noted(name: str) -> float:
        try:
            return calls[name]()
        except Exception as error:
            absent[name] = f"not run: {_first_line(error)}"
            failed.append(name)
            raise

    while True:
        try:
            turns = {name: functools.partial(noted, name) for name in calls}
            return interleave(turns, _EFFORT, judge.rng)
        except Exception:
            if failed[-1] in ("kernel", AGAIN):
                raise
            del calls[failed[-1]]


def _rival(
    judge: Judge,
    rival: tuple[Kernel, CompileReport],
    bank: Bank,
    stack: contextlib.ExitStack,
) -> Callable[[], float]:
    arena = judge.new_arena()
    stack.callback(arena.close)
    return _warm(stack.enter_context(judge.trial(*rival, arena)), bank)


def _warm(trial: Trial, bank: Bank) -> Callable[[], float]:
    contents = bank.timed
    for _ in range(3):
        trial.timed(contents)
    return lambda: trial.timed(contents)


@contextlib.contextmanager
def _unless_it_fails(name: str, absent: dict[str, str], kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind as error:
        absent[name] = f"not run: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
