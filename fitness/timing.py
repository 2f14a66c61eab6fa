"""Timing: medians with intervals, and repeated calls until the interval is narrow."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fitness.evaluation import Interval

Call = Callable[[], float]
"""Makes one timed call and returns its time in ms."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to go on: at least ``least`` calls, until the interval is narrow or a cap is hit.

    ``width`` is the interval's width relative to the median at which we stop.
    """

    least: int = 15
    most: int = 200
    seconds: float = 0.5
    width: float = 0.005


def interval(samples: Sequence[float]) -> Interval:
    """Median of ``samples`` (ms) with a distribution-free 95% confidence interval.

    The interval is made of two order statistics (binomial, normal approximation), so outliers
    move it little. With fewer than six samples it spans all of them.
    """
    if not samples:
        raise ValueError("no samples to take a median of")
    ordered = sorted(samples)
    count = len(ordered)
    half = 0.98 * math.sqrt(count)
    low = max(0, math.floor(count / 2 - half))
    high = min(count - 1, math.ceil(count / 2 + half) - 1)
    if count < 6:
        low, high = 0, count - 1
    return Interval(statistics.median(ordered), ordered[low], ordered[high])


def _narrow(samples: Sequence[float], width: float) -> bool:
    found = interval(samples)
    return found.high - found.low <= width * found.median


def sample(call: Call, effort: Effort) -> list[float]:
    """Times of ``call`` (ms), repeated as ``effort`` says."""
    return interleave({"": call}, effort, random.Random(0))[""]


def interleave(
    calls: Mapping[str, Call], effort: Effort, rng: random.Random
) -> dict[str, list[float]]:
    """Times (ms) of several calls taken in turns, so that drift strikes all of them alike.

    Each round makes every call once, in a fresh order; sample ``i`` of every list is of round
    ``i``, so that ratios may be taken round by round.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    started = time.monotonic()
    for done in range(1, effort.most + 1):
        for name in rng.sample(list(calls), len(calls)):
            times[name].append(calls[name]())
        if done >= effort.least:
            spent = time.monotonic() - started > effort.seconds
            if spent or all(_narrow(taken, effort.width) for taken in times.values()):
                break
    return times


def ratio(slower: Sequence[float], faster: Sequence[float]) -> Interval:
    """How many times faster: the rounds' ratios ``slower / faster``, median and interval."""
    return interval([a / b for a, b in zip(slower, faster, strict=True)])
