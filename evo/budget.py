"""What a run may use, by generations, evaluations, hours, calls, tokens and dollars.

Whichever is spent first ends the run.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from evo.records import Spent
from evo.sections import Budget as Limits
from operators.llm import Usage


class Budget:
    """Keeps count. Work is granted before it is begun, so that no limit is passed by.

    ``spent`` is what earlier sittings used; ``clock`` gives the seconds of running time over all
    sittings. ``refusals`` counts what was not granted: a generation with refusals is not complete.
    """

    def __init__(self, limits: Limits, spent: Spent, clock: Callable[[], float]) -> None:
        self.limits = limits
        self.refusals = 0
        self._spent = spent
        self._clock = clock
        self._under_way = 0
        self._reserved: list[tuple[str, Usage]] = []
        self._settled = asyncio.Event()
        self._short = ""
        self._searching = True

    def used(self) -> Spent:
        """What has been used so far."""
        return replace(self._spent, seconds=self._clock())

    def close_search(self) -> bool:
        """The search is over; whether hours are left.

        From now on what certificates find may be mended: neither evaluations nor hours are counted,
        but what is paid for stays limited.
        """
        hours = self.limits.hours
        self._searching = False
        return hours is None or self._clock() / 3600 < hours

    def in_flight(self) -> Mapping[str, int]:
        """How many calls are under way to each model."""
        return Counter(model for model, _ in self._reserved)

    def exhausted(self) -> str | None:
        """Which limit is reached, in words; None while there is something left."""
        limits, used = self.limits, self._spent
        reached = {
            "evaluations": (self._of_search(limits.evaluations), used.evaluations),
            "hours": (self._of_search(limits.hours), self._clock() / 3600),
            "calls": (limits.calls, used.calls),
            "tokens": (limits.tokens, used.tokens),
            "dollars": (limits.dollars, used.dollars),
        }
        for name, (limit, use) in reached.items():
            # a free author on a budget of 0 dollars goes on: nothing is being spent
            if limit is not None and use >= limit and (limit > 0 or use > 0):
                return f"the budget of {limit:g} {name} is spent"
        return self._short or None

    def allows_generation(self, number: int) -> bool:
        """Whether an island may begin generation ``number``; the first, 0, holds the ports."""
        limit = self.limits.generations
        return (limit is None or number <= limit) and self.exhausted() is None

    def grant_answer(self) -> bool:
        """Whether an author may be asked; not if nothing that it wrote could be judged."""
        return self._answer(self._worthwhile())

    def grant_evaluation(self) -> bool:
        """Whether one more kernel may be judged; it counts from now on.

        After the search always: what mends a kernel is paid for by then.
        """
        granted = self._answer(not self._searching or self._worthwhile())
        self._under_way += granted
        return granted

    def evaluated(self, committed: bool) -> None:
        """A granted evaluation has ended; ``committed`` if it brought a verdict."""
        self._under_way -= 1
        if committed:
            self._spent = replace(self._spent, evaluations=self._spent.evaluations + 1)

    async def reserve(self, estimate: Usage, model: str) -> bool:
        """Set ``estimate`` aside for a call, the most that it may cost; whether there is as much.

        Estimates are many times what calls cost in the end. So where only what is set aside for
        others stands in the way, it waits until they have ended.
        """
        while self.exhausted() is None and not self._lacks(estimate, ()):
            if not self._lacks(estimate, [held for _, held in self._reserved]):
                self._reserved.append((model, estimate))
                return True
            await self._settled.wait()
        self._short = self._short or self._lacks(estimate, ())
        return self._answer(granted=False)

    def settle(self, estimate: Usage, model: str, usage: Usage | None) -> None:
        """A call has ended that ``estimate`` was set aside for; ``usage`` None: it was free."""
        self._reserved.remove((model, estimate))
        if usage is not None:
            was = self._spent
            self._spent = replace(
                was,
                calls=was.calls + 1,
                tokens=was.tokens + usage.tokens,
                dollars=was.dollars + usage.dollars,
            )
        self._settled.set()
        self._settled = asyncio.Event()

    def _lacks(self, estimate: Usage, reserved: Sequence[Usage]) -> str:
        """What is not there for a call beside those ``reserved``, in words; empty if all is."""
        limits, used = self.limits, self._spent
        tokens = used.tokens + sum(one.tokens for one in reserved)
        dollars = used.dollars + sum(one.dollars for one in reserved)
        needs = {
            "calls": (limits.calls, used.calls + len(reserved), 1),
            "tokens": (limits.tokens, tokens, estimate.tokens),
            "dollars": (limits.dollars, dollars, estimate.dollars),
        }
        for name, (limit, use, need) in needs.items():
            if limit is not None and use + need > limit:
                left = f"{max(0, limit - use):.6g} of {limit:g} {name} are left"
                return f"{left}, and a call may need {need:.6g}"
        return ""

    def _of_search(self, limit: float | None) -> float | None:
        """A limit of the search alone."""
        return limit if self._searching else None

    def _worthwhile(self) -> bool:
        """Whether there is something left, and room for one more verdict."""
        limit = self._of_search(self.limits.evaluations)
        room = limit is None or self._spent.evaluations + self._under_way < limit
        return room and self.exhausted() is None

    def _answer(self, granted: bool) -> bool:
        self.refusals += not granted
        return granted
