"""A desk whose models answer what a test tells them. For tests only."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from operators.author import Credit
from operators.llm import Model, Prompt, Reply, Usage

Answer = Callable[[str, Prompt, Model], str | None]


@dataclass
class ScriptedDesk:
    """Every question is kept in ``asked`` and answered by ``answer``; without one, by nobody."""

    seed: int = 1
    key: str = "0-1-0/mutation"
    answer: Answer | None = None
    credits: Mapping[str, Credit] = field(default_factory=dict)
    asked: list[tuple[str, Prompt, Model]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    async def ask(self, place: str, prompt: Prompt, model: Model) -> Reply | None:
        self.asked.append((place, prompt, model))
        text = self.answer(place, prompt, model) if self.answer else None
        return None if text is None else Reply(text, Usage(), model.name, "stop")

    def credit(self) -> Mapping[str, Credit]:
        return self.credits
