"""Who looks on while a run goes on; this one looks away."""

from __future__ import annotations

from collections.abc import Sequence

from evo.budget import Budget
from evo.individual import Individual
from evo.records import Generation


class Watch:
    """Is told what happens. Subclass it and override what is of interest."""

    def follow(self, budget: Budget, statuses: dict[str, int]) -> None:
        """The sitting begins: its budget, and how kernels were judged in earlier sittings."""

    def begun(self, generation: Generation) -> None:
        """A generation has begun."""

    def judged(self, individual: Individual) -> None:
        """An individual has got its verdict."""

    def closed(self, generation: Generation, survivors: Sequence[Individual]) -> None:
        """A generation is over; the best survivor comes first."""

    def best(self, individual: Individual) -> None:
        """There is a new best."""

    def asks(self, count: int) -> None:
        """So many requests to people and agents are open now."""

    def waits(self) -> None:
        """Nothing goes on until one of those requests is answered."""

    def silent(self, outages: Sequence[str]) -> None:
        """All that models are waited for now, a line for each that does not answer."""

    def say(self, message: str) -> None:
        """Something that a person should know."""
