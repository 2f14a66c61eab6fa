"""What a run may use: generations, evaluations, hours, tokens, dollars; the first spent ends it."""

from __future__ import annotations

from collections.abc import Callable

from evo.config import Budget as Limits
from evo.records import Spent


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

    def used(self) -> Spent:
        """What has been used so far."""
        spent = self._spent
        return Spent(spent.evaluations, self._clock(), spent.tokens, spent.dollars)

    def exhausted(self) -> str | None:
        """Which limit is reached, in words; None while there is something left."""
        limits, used = self.limits, self.used()
        reached = {
            "evaluations": (limits.evaluations, used.evaluations),
            "hours": (limits.hours, used.seconds / 3600),
            "tokens": (limits.tokens, used.tokens),
            "dollars": (limits.dollars, used.dollars),
        }
        for name, (limit, use) in reached.items():
            # a free author on a budget of 0 dollars goes on: nothing is being spent
            if limit is not None and use >= limit and (limit > 0 or use > 0):
                return f"the budget of {limit:g} {name} is spent"
        return None

    def allows_generation(self, number: int) -> bool:
        """Whether an island may begin generation ``number``; the first, 0, holds the ports."""
        limit = self.limits.generations
        return (limit is None or number <= limit) and self.exhausted() is None

    def grant_call(self) -> bool:
        """Whether an author may be asked; not if nothing that it wrote could be judged."""
        return self._answer(self.exhausted() is None and self._room())

    def grant_evaluation(self) -> bool:
        """Whether one more kernel may be judged; it counts from now on."""
        granted = self._answer(self.exhausted() is None and self._room())
        self._under_way += granted
        return granted

    def evaluated(self, committed: bool) -> None:
        """A granted evaluation has ended; ``committed`` if it brought a verdict."""
        self._under_way -= 1
        self._add(evaluations=int(committed))

    def called(self, tokens: int, dollars: float) -> None:
        """A call to an author has been paid for."""
        self._add(tokens=tokens, dollars=dollars)

    def _room(self) -> bool:
        limit = self.limits.evaluations
        return limit is None or self._spent.evaluations + self._under_way < limit

    def _add(self, evaluations: int = 0, tokens: int = 0, dollars: float = 0.0) -> None:
        was = self._spent
        self._spent = Spent(
            was.evaluations + evaluations, was.seconds, was.tokens + tokens, was.dollars + dollars
        )

    def _answer(self, granted: bool) -> bool:
        self.refusals += not granted
        return granted
