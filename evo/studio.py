"""Where authors work: draws who is asked, tells what may be known, records every answer first."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cuda_sandbox.kernel import Kernel
from evo.champion import place
from evo.desk import Desk
from evo.memory import Memory
from evo.recorder import Recorder
from evo.records import Answer, Proposal
from evo.switchboard import Switchboard
from operators.author import Author, Branch, Brief, Draft, NoFamily
from operators.idea import Category, Idea
from operators.llm import Model
from operators.variation import Order, Written

Ask = Callable[[Author, Desk], Awaitable[Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class Staff:
    """The authors with their weights, and the run's seed."""

    authors: tuple[Author, ...]
    weights: tuple[float, ...]
    seed: int

    @property
    def models(self) -> tuple[Model, ...]:
        """All models that the authors may ask."""
        return tuple(model for author in self.authors for model in getattr(author, "models", ()))

    def order(self, rng: random.Random) -> list[Author]:
        """All authors, the one drawn by weight first."""
        first = rng.choices(self.authors, self.weights)[0]
        return [first, *(author for author in self.authors if author is not first)]

    def of(self, name: str, rng: random.Random) -> list[Author]:
        """All authors, the one called ``name`` first."""
        named = [author for author in self.authors if author.name == name]
        return [*named, *(author for author in self.order(rng) if author not in named)]


@dataclass(frozen=True, slots=True)
class Question:
    """What authors are asked: ``key`` names it in the run, ``branch`` is one of its answers."""

    order: Order
    key: str
    branch: Branch | None = None

    @property
    def place(self) -> str:
        """Names the answer."""
        return f"{self.key}/{self.branch.number}" if self.branch else self.key

    @property
    def parents(self) -> tuple[str, ...]:
        """The individuals that it is about."""
        return tuple(parent.id for parent in self.order.parents)


class Studio:
    """The authors as the toolbox calls them. An answer that is on record is given again.

    Where the budget does not grant one, or not all the calls for it, nothing is recorded.
    """

    def __init__(
        self,
        brief: Brief,
        staff: Staff,
        recorder: Recorder,
        memory: Memory,
        switchboard: Switchboard,
    ) -> None:
        self._brief = brief
        self._staff = staff
        self._recorder = recorder
        self._memory = memory
        self._switchboard = switchboard

    async def port(self, order: Order, branch: Branch) -> Written | None:
        """A plain first kernel. Raises NoFamily if no author serves the task."""
        return await self._draft(
            Question(order, f"{order.key}/port", branch),
            lambda author, desk: author.port(self._brief, branch, desk),
        )

    async def ideate(self, order: Order) -> list[Idea]:
        """Ideas for the one parent."""
        (parent,), count = order.parents, order.counts.ideas
        tried = self._memory.tried(parent.id, order.horizon)
        reply = await self._reply(
            Question(order, f"{order.key}/ideate"),
            lambda author, desk: author.ideate(self._brief, parent, tried, count, desk),
            _ideas_to_parts,
            propose=True,
        )
        return [_idea(data) for data in json.loads(reply[0])["ideas"][:count]] if reply else []

    def _propose(self, question: Question, ideas: Sequence[Idea]) -> None:
        """Put ideas on record, whatever becomes of them."""
        (parent,), (generation, island, *_) = question.parents, place(question.key.split("/")[0])
        where = (parent, island, generation)
        self._recorder.add_proposals(
            [Proposal(question.key, number, idea, *where) for number, idea in enumerate(ideas)]
        )

    async def implement(
        self, order: Order, place: int, idea: Idea, branch: Branch
    ) -> Written | None:
        """An implementation of an idea on the one parent; whoever had it is asked first."""
        (parent,) = order.parents
        return await self._draft(
            Question(order, f"{order.key}/implement/{place}", branch),
            lambda author, desk: author.implement(self._brief, parent, idea, branch, desk),
            asked_first=idea.author,
        )

    async def mate(self, order: Order, branch: Branch) -> Written | None:
        """A kernel that joins two parents."""
        mother, father = order.parents
        return await self._draft(
            Question(order, f"{order.key}/cross", branch),
            lambda author, desk: author.cross(self._brief, (mother, father), branch, desk),
        )

    async def repair(self, order: Order) -> Written | None:
        """A kernel that mends the one parent, which failed."""
        (failed,) = order.parents
        return await self._draft(
            Question(order, f"{order.key}/repair"),
            lambda author, desk: author.repair(self._brief, failed, desk),
        )

    async def _draft(
        self,
        question: Question,
        ask: Callable[[Author, Desk], Awaitable[Draft | None]],
        asked_first: str = "",
    ) -> Written | None:
        async def at_most_one(author: Author, desk: Desk) -> Sequence[Draft]:
            draft = await ask(author, desk)
            return [draft] if draft else []

        reply = await self._reply(question, at_most_one, _drafts_to_parts, asked_first)
        return next(iter(_drafts_from_parts(reply)), None) if reply else None

    async def _reply(
        self,
        question: Question,
        ask: Ask,
        to_parts: Callable[[str, Sequence[Any]], tuple[str, ...]],
        asked_first: str = "",
        propose: bool = False,
    ) -> tuple[str, ...] | None:
        recorded = self._recorder.answer(question.place)
        if recorded is not None:
            return recorded
        if not self._switchboard.budget.grant_answer():
            return None
        found = await self._first_answer(question, ask, asked_first)
        if found is None:
            return None
        name, answer = found
        reply = to_parts(name, answer)
        self._recorder.add_answer(Answer(question.place, name, reply))
        if propose:
            self._propose(question, answer)
        return reply

    async def _first_answer(
        self, question: Question, ask: Ask, asked_first: str
    ) -> tuple[str, Sequence[Any]] | None:
        """Ask one author after the other until one has an answer; None: the budget ended it."""
        # chance for each question: one that is answered from the record draws nothing
        rng = random.Random(f"{self._staff.seed}/{question.key}")
        staff, refusals = self._staff, list[NoFamily]()
        queue = staff.of(asked_first, rng) if asked_first else staff.order(rng)
        for author in queue:
            desk = self._desk(question, rng, author)
            try:
                answer = await ask(author, desk)
            except NoFamily as refusal:
                refusals.append(refusal)
                continue
            if desk.cut_short:
                return None
            if answer:
                return author.name, answer
        if len(refusals) == len(queue):
            raise refusals[0]
        return queue[0].name, []

    def _desk(self, question: Question, rng: random.Random, author: Author) -> Desk:
        horizon = question.order.horizon
        return Desk(
            question.place,
            rng,
            author.name,
            question.parents,
            self._switchboard.reply,
            lambda: self._memory.credit(horizon),
        )


def _ideas_to_parts(name: str, ideas: Sequence[Idea]) -> tuple[str, ...]:
    return (json.dumps({"author": name, "ideas": [_idea_data(idea) for idea in ideas]}),)


def _drafts_to_parts(name: str, drafts: Sequence[Draft]) -> tuple[str, ...]:
    """A table of contents, then the sources: as parts of their own they are stored only once."""
    rows = [
        {
            "language": d.kernel.language,
            "flags": d.kernel.flags,
            "idea": _idea_data(d.idea),
            "model": d.model,
        }
        for d in drafts
    ]
    sources = (draft.kernel.source for draft in drafts)
    return (json.dumps({"author": name, "drafts": rows}), *sources)


def _drafts_from_parts(parts: tuple[str, ...]) -> list[Written]:
    contents = json.loads(parts[0])
    return [
        Written(
            Kernel(source, row["language"], tuple(row["flags"])),
            _idea(row["idea"]),
            contents["author"],
            row["model"],
        )
        for row, source in zip(contents["drafts"], parts[1:], strict=True)
    ]


def _idea_data(idea: Idea) -> list[str]:
    return [idea.text, str(idea.category), idea.author, idea.model]


def _idea(data: list[str]) -> Idea:
    text, category, author, model = data
    return Idea(text, Category(category), author, model)
