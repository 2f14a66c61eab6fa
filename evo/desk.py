"""The desk that an author works at: its place in the run, chance, and the way to the models."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from operators.author import Credit
from operators.llm import Model, Prompt, Reply


@dataclass(frozen=True, slots=True)
class PlainDesk:
    """A desk without models; see `operators.author.Desk`."""

    key: str
    rng: random.Random

    async def ask(self, place: str, prompt: Prompt, model: Model) -> Reply | None:  # noqa: ARG002
        """Nobody is there to ask."""
        return None

    def credit(self) -> Mapping[str, Credit]:
        """Nobody was asked."""
        return {}
