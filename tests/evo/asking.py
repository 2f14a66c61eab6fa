"""An author that asks people for everything, and runs of it. For tests only."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cuda_sandbox.kernel import Kernel
from evo.config import RunConfig
from evo.engine import Outcome
from evo.executor import Executor
from evo.requests.board import Board, Entry
from evo.supervision import Waits, supervise
from evo.watch import Watch
from operators.author import Branch, Brief, Desk, Draft, Specimen, Tried
from operators.idea import Category, Idea
from operators.llm import Model, Prompt
from tests.evo.fakes import FakeExecutor, Sitting, configuration

PERSON = Model("a person", "ask")


class Asker:
    """Ideas are lines of an answer, kernels are answers as they are."""

    name = "asker"
    models = (PERSON,)

    async def port(self, brief: Brief, branch: Branch, desk: Desk) -> Draft | None:
        return await self._draft(desk, f"port {branch.number}", "port", "a plain kernel")

    async def ideate(
        self, brief: Brief, parent: Specimen, tried: Sequence[Tried], count: int, desk: Desk
    ) -> list[Idea]:
        text = await self._ask(desk, "ideas", f"{count} ideas for {parent.id}", "ideas")
        return [Idea(line, Category.COMPUTE, self.name) for line in (text or "").splitlines()]

    async def implement(
        self, brief: Brief, parent: Specimen, idea: Idea, branch: Branch, desk: Desk
    ) -> Draft | None:
        question = f"{idea.text} on {parent.id}, branch {branch.number}"
        return await self._draft(desk, question, "kernel", idea.text)

    async def cross(
        self, brief: Brief, parents: tuple[Specimen, Specimen], branch: Branch, desk: Desk
    ) -> Draft | None:
        return await self._draft(desk, "join both", "crossover", "join both")

    async def repair(self, brief: Brief, failed: Specimen, desk: Desk) -> Draft | None:
        return await self._draft(desk, f"mend {failed.id}", "repair", failed.ancestry[-1].text)

    async def _draft(self, desk: Desk, question: str, purpose: str, idea: str) -> Draft | None:
        source = await self._ask(desk, "kernel", question, purpose)
        thought = Idea(idea, Category.COMPUTE, self.name)
        return Draft(Kernel(source, "cpp"), thought) if source else None

    async def _ask(self, desk: Desk, place: str, question: str, purpose: str) -> str | None:
        prompt = Prompt("You write kernels.", (question,), purpose)
        reply = await desk.ask(place, prompt, PERSON)
        return reply.text if reply else None


def asking(**sections: object) -> RunConfig:
    """One island, which asks for one port, then for two ideas in two branches each."""
    settings: dict[str, object] = {
        "population__size": 1,
        "population__elite": 1,
        "population__islands": 1,
        "population__offspring": 4,
        "variation__ideas": 2,
        "variation__branches": 2,
        "variation__repairs": 0,
        "variation__rates": {"mutation": 1, "crossover": 0, "tuning": 0},
        "budget__generations": 1,
    }
    return configuration(**(settings | sections))


@dataclass
class Asking:
    """A run in ``folder`` of an author that asks; ``answer_all`` plays the people."""

    folder: Path
    config: RunConfig = field(default_factory=asking)
    executor: Executor = field(default_factory=lambda: FakeExecutor(failing=0))
    watch: Watch = field(default_factory=Watch)

    def sit(self, until_waiting: bool = True) -> Outcome | Waits:
        """One sitting: how it ended, or what it waits for."""
        sitting = Sitting(self.folder, self.config, Asker(), self.executor, self.watch)  # type: ignore[arg-type]
        with contextlib.closing(sitting.recorder()) as recorder:
            engine = sitting.engine(recorder)
            try:
                return supervise(engine, recorder, self.watch, until_waiting)
            except Waits as waits:
                return waits

    @contextlib.contextmanager
    def board(self) -> Iterator[Board]:
        with Board(self.folder, reader=lambda *_: None) as board:
            yield board

    def open(self) -> list[Entry]:
        with self.board() as board:
            return board.open()

    def answer_all(self, by: str = "") -> int:
        """Answer what is open now; how many requests that was."""
        with self.board() as board:
            entries = board.open()
            for entry in entries:
                board.tell(entry.request.id, answer(entry), by)
            return len(entries)


def answer(entry: Entry) -> str:
    """Two ideas, or a source that no other request is answered with."""
    question = entry.request.prompt.text
    if entry.request.prompt.purpose == "ideas":
        return f"first idea, {entry.request.id}\nsecond idea, {entry.request.id}"
    return f"int answer = 0x{entry.request.id[:7]};  // {question}\n"
