"""Two clocks on the same calls: whether the worker's tells the truth."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_SHARE = 0.15
JITTER_MS = 0.1
"""How far the judge's clock may read above the worker's: a share of the time, plus jitter."""

_ACCOUNT_MS = 0.01
"""How exact the CPU's account is."""

_ROW_SHARE, _ROW_MS, _LONGEST_ROW = 0.05, 6.0, 1024
"""How far calls in a row may be above what one is told to take, and how long such a row is."""

_BETWEEN_MS = 0.003
"""What may go by between two of a GPU's calls: graphs with branches are not launched without."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One call in ms: by the worker's clock, by the judge's around it, and what the system saw.

    ``busy_ms`` is the least time in which the worker can have used the CPU as it did, None where a
    GPU does the work and nobody keeps such an account; ``delay_ms`` what the judge waited for a
    CPU.
    """

    worker_ms: float
    judge_ms: float
    busy_ms: float | None = None
    delay_ms: float = 0.0

    @property
    def hidden_ms(self) -> float:
        """What the worker's clock does not tell: overhead, if all is well."""
        return self.judge_ms - self.worker_ms


def suspicion(calls: Sequence[Reading], empty: Sequence[Reading], idle_ms: float = math.inf) -> str:
    """Why the worker's clock on ``calls`` cannot be believed; empty if it can.

    ``empty`` are calls of a kernel that does nothing: what they take is overhead, of which CPU time
    beyond ``idle_ms`` is not believed: work on waking up, before any call, would cancel out. Low
    quantiles are compared, since delays come and go while a false clock stays.
    """
    told, limit = told_ms(calls), _limit(calls)
    hidden = _low([call.hidden_ms for call in calls]) - _low([call.hidden_ms for call in empty])
    busy = _busier(calls, empty, idle_ms)
    worked = busy is not None and busy > told + limit
    # Others may have kept the judge waiting; where nobody keeps an account that is no excuse.
    excused = busy is not None and not _quiet(calls, empty)
    if not worked and (hidden <= limit or excused):
        return ""
    return _complaint(told, told + max(hidden, (busy or 0.0) - told))


def _quiet(calls: Sequence[Reading], empty: Sequence[Reading]) -> bool:
    """Whether nothing but the candidate can have kept the judge waiting longer than it may."""
    limit = _limit(calls)
    delay = _low([call.delay_ms for call in calls])
    return spread([call.hidden_ms for call in empty]) <= limit and delay <= limit / 4


def understated_ms(
    calls: Sequence[Reading], empty: Sequence[Reading], idle_ms: float = math.inf
) -> float:
    """What must be added to the worker's times for them to cover the CPU time it has used.

    A clock may be wrong by a little without any suspicion, which is much for a small kernel. The
    CPU's account is exact enough for that, also on a busy machine; 0 for a clock that is right.
    """
    used = _busier(calls, empty, idle_ms)
    if used is None:
        return 0.0
    gap = used - _low([call.worker_ms for call in calls])
    return gap if gap > _ACCOUNT_MS else 0.0


def told_ms(calls: Sequence[Reading]) -> float:
    """What the worker says that a call takes."""
    return statistics.median(call.worker_ms for call in calls)


@dataclass(frozen=True, slots=True)
class Rows:
    """Calls on a GPU one right behind the other, by the judge's clock alone.

    ``row`` are times (ms) of ``calls`` in a row, of which ``around`` goes by around them; the
    worker has no say in either. Its calls are warm there and hardly anything lies between them, so
    a call with cold caches, ``told`` to take so long, takes rather longer than the mean of a row.
    """

    told: float
    around: float
    calls: int
    row: Sequence[float]

    @staticmethod
    def length(alone: Sequence[Reading]) -> int:
        """How many calls make a row that is long beside what goes by around it.

        What the judge saw of single calls bounds a row that a liar asks for.
        """
        seen = statistics.median(call.judge_ms for call in alone)
        least = max(told_ms(alone), _ROW_MS / _LONGEST_ROW)
        return math.ceil(min(_ROW_MS / least, max(1.0, 100 * _ROW_MS / seen)))

    def complaint(self) -> str:
        """Why a call cannot have taken what was told; empty if it can. Delays only add to a row."""
        mean = (min(self.row) - self.around) / self.calls
        slack = self.told * _ROW_SHARE + _BETWEEN_MS + JITTER_MS / self.calls
        return _complaint(self.told, mean) if mean > self.told + slack else ""


def _complaint(told: float, seen: float) -> str:
    return f"clocks: its process tells {told:.4g} ms a call, the judge's clock {seen:.4g} ms"


def _limit(calls: Sequence[Reading]) -> float:
    """How much more than the worker tells the judge's clock may show."""
    return told_ms(calls) * _SHARE + JITTER_MS


def _busier(calls: Sequence[Reading], empty: Sequence[Reading], idle_ms: float) -> float | None:
    """The CPU time of a call beyond that of an empty one; None where there is no account."""
    used, overhead = (
        [call.busy_ms for call in readings if call.busy_ms is not None]
        for readings in (calls, empty)
    )
    return _low(used) - min(_low(overhead), idle_ms) if used and overhead else None


def spread(values: Sequence[float]) -> float:
    """How far ``values`` lie apart, a fifth of them at either end left out."""
    ordered = sorted(values)
    few = len(ordered) // 5
    return ordered[-1 - few] - ordered[few]


def _low(values: Sequence[float]) -> float:
    """The value that a fifth of ``values`` lie below."""
    return sorted(values)[len(values) // 5]
