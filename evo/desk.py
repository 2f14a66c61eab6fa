"""The desk that an author works at: its place in the run, chance, and the way to the models."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from evo.ledger import Asked
from operators.author import Credit
from operators.llm import Model, Prompt, Reply


class OverBudget(Exception):
    """A call was not made because the budget does not allow it."""


@dataclass(slots=True)
class Desk:
    """See `operators.author.Desk`. ``cut_short``: the budget did not allow all that was asked.

    ``author`` works at it, on the individuals ``parents``. ``know`` tells what each model brought.
    """

    key: str
    rng: random.Random
    author: str
    parents: tuple[str, ...]
    put_through: Callable[[Asked], Awaitable[Reply | None]]
    know: Callable[[], Mapping[str, Credit]]
    cut_short: bool = False

    async def ask(self, place: str, prompt: Prompt, model: Model) -> Reply | None:
        """The recorded reply, or that of the model; None if no answer will come."""
        key = f"{self.key}/{self.author}/{place}"
        try:
            return await self.put_through(Asked(key, self.author, self.parents, prompt, model))
        except OverBudget:
            self.cut_short = True
            return None

    def credit(self) -> Mapping[str, Credit]:
        """What each model has brought, as far as may be known here."""
        return self.know()
