"""Two clocks on the same calls: whether the worker's tells the truth."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_SHARE = 0.15
_JITTER_MS = 0.1
"""How far the judge's clock may read above the worker's: a share of the time, plus jitter."""

_ACCOUNT_MS = 0.01
"""How exact the CPU's account is."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One call in ms: by the worker's clock, by the judge's around it, and what the system saw.

    ``busy_ms`` is the least time in which the worker can have used the CPU as it did, and
    ``delay_ms`` what the judge waited for a CPU; both are zero where a GPU does the work. Of a
    batch of ``calls`` the mean: the judge looks at the clock only before and after all of them.
    """

    worker_ms: float
    judge_ms: float
    busy_ms: float = 0.0
    delay_ms: float = 0.0
    calls: int = 1

    @property
    def hidden_ms(self) -> float:
        """What the worker's clock does not tell: overhead, if all is well."""
        return self.judge_ms - self.worker_ms


def suspicion(calls: Sequence[Reading], empty: Sequence[Reading]) -> str:
    """Why the worker's clock on ``calls`` cannot be believed; empty if it can.

    ``empty`` are calls of a kernel that does nothing: what they take is overhead. Low quantiles
    are compared, since delays come and go while a false clock stays.
    """
    told = statistics.median(call.worker_ms for call in calls)
    limit = told * _SHARE + _JITTER_MS / calls[0].calls
    hidden = _low([call.hidden_ms for call in calls]) - _low([call.hidden_ms for call in empty])
    if hidden <= limit:
        return ""
    busy = _low([call.busy_ms for call in calls]) - _low([call.busy_ms for call in empty])
    if busy <= told + limit and not _quiet(calls, empty, limit):
        return ""  # others were using the machine, and the CPU time fits what was told
    return (
        f"clocks: its process tells {told:.4g} ms a call, "
        f"the judge's clock {told + max(hidden, busy - told):.4g} ms"
    )


def disagreement(alone: Sequence[Reading], row: Sequence[Reading]) -> str:
    """Why times told of single calls cannot be, beside those of many in a row; empty if they can.

    The judge's clock is held against the latter, since it is exact enough for those only.
    """
    if not row:
        return ""
    told, again = (statistics.median(call.worker_ms for call in calls) for calls in (alone, row))
    if told + again * _SHARE + _JITTER_MS / row[0].calls >= again:
        return ""
    return (
        f"clocks: its process tells {told:.4g} ms of a call alone, "
        f"{again:.4g} ms of one among {row[0].calls} in a row"
    )


def understated_ms(calls: Sequence[Reading], empty: Sequence[Reading]) -> float:
    """What must be added to the worker's times for them to cover the CPU time it has used.

    A clock may be wrong by a little without any suspicion, which is much for a small kernel. The
    CPU's account is exact enough for that, also on a busy machine; 0 for a clock that is right.
    """
    used = _low([call.busy_ms for call in calls]) - _low([call.busy_ms for call in empty])
    gap = used - _low([call.worker_ms for call in calls])
    return gap if gap > _ACCOUNT_MS else 0.0


def _quiet(calls: Sequence[Reading], empty: Sequence[Reading], limit: float) -> bool:
    """Whether nothing but the candidate can have kept the judge waiting that long."""
    overhead = sorted(call.hidden_ms for call in empty)
    few = len(overhead) // 5
    spread = overhead[-1 - few] - overhead[few]
    return spread <= limit and _low([call.delay_ms for call in calls]) <= limit / 4


def _low(values: Sequence[float]) -> float:
    """The value that a fifth of ``values`` lie below."""
    return sorted(values)[len(values) // 5]
