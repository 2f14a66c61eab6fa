"""An author and an executor that answer at once, and runs made of them. For tests only."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from cuda_sandbox.signature import Role, Signature, TensorSpec
from evo.config import RunConfig, check, stored
from evo.engine import Engine, Outcome
from evo.executor import Executor, Job, JobFailed, Purpose
from evo.recorder import Recorder
from evo.records import RunInfo
from evo.studio import Staff
from evo.watch import Watch
from evo.yaml_source import Source
from fitness.description import TaskDescription
from fitness.evaluation import Baseline, Evaluation, Interval
from operators.author import Author, Branch, Brief, Desk, Draft, Specimen, Tried
from operators.idea import Category, Idea

HEADER = "// header"
IDEAS = [f"idea {letter}" for letter in "abcdefghijklmnop"]


def description() -> TaskDescription:
    x = TensorSpec("x", "float32", (4, 4), Role.INPUT)
    out = TensorSpec("out", "float32", (4, 4), Role.OUTPUT)
    return TaskDescription("fake", "class Model: ...\n", Signature("fake", (x,), (out,)), ())


class FakeAuthor:
    """Writes sources that differ in one statement for each idea; ``delay_s`` before each answer."""

    def __init__(self, name: str = "fake", delay_s: float = 0.0, ports: int = 3) -> None:
        self.name = name
        self.delay_s = delay_s
        self.ports = ports
        self.calls: list[tuple[str, object]] = []

    async def _think(self, kind: str, about: object) -> None:
        self.calls.append((kind, about))
        await asyncio.sleep(self.delay_s)

    async def port(self, brief: Brief, branch: Branch, desk: Desk) -> Draft | None:
        await self._think("port", branch)
        idea = Idea("a plain kernel", Category.COMPUTE, self.name)
        numbers = [desk.rng.random() for _ in range(min(branch.of, self.ports))]
        if branch.number >= len(numbers):
            return None
        return self._draft(f"int port = {numbers[branch.number]};", idea)

    async def ideate(
        self, brief: Brief, parent: Specimen, tried: Sequence[Tried], count: int, desk: Desk
    ) -> list[Idea]:
        await self._think("ideate", (parent, tried))
        known = {one.idea.text for one in tried if one.here}
        texts = [text for text in IDEAS if text not in known]
        desk.rng.shuffle(texts)
        return [Idea(text, desk.rng.choice(list(Category)), self.name) for text in texts[:count]]

    async def implement(
        self, brief: Brief, parent: Specimen, idea: Idea, branch: Branch, desk: Desk
    ) -> Draft | None:
        await self._think("implement", idea)
        numbers = [desk.rng.randrange(10**6) for _ in range(branch.of)]
        return self._on_top(parent, f"{idea.text}: {numbers[branch.number]}", idea)

    async def cross(
        self, brief: Brief, parents: tuple[Specimen, Specimen], branch: Branch, desk: Desk
    ) -> Draft | None:
        if branch.number:
            return None
        await self._think("cross", parents)
        idea = Idea("join both", Category.COMPUTE, self.name)
        return self._on_top(parents[0], f"cross {parents[1].id}", idea)

    async def repair(self, brief: Brief, failed: Specimen, desk: Desk) -> Draft | None:
        await self._think("repair", failed)
        idea = failed.ancestry[-1]
        return self._on_top(failed, "repaired", idea)

    def _draft(self, statement: str, idea: Idea) -> Draft:
        tile = "#define TILE 64  // tune: 8 16 32 64 128\n#define ROWS 1  // tune: 1 2 4\n"
        return Draft(Kernel(f"{tile}{statement}\n", "cpp"), idea)

    def _on_top(self, parent: Specimen, text: str, idea: Idea) -> Draft:
        number = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
        return Draft(Kernel(f"{parent.kernel.source}int more = {number};\n", "cpp"), idea)


def verdict(kernel: Kernel, failing: float = 0.3) -> Evaluation:
    """A verdict that depends on the kernel's source alone; a share of ``failing`` is no good."""
    chance = random.Random(kernel.source)
    if chance.random() < failing:
        status = chance.choice([Status.INCORRECT, Status.COMPILE_ERROR, Status.HACK])
        return Evaluation(status, "made up", device="fake")
    lines = kernel.source.count("\n")
    ms = 10 / (1 + 0.2 * lines) * chance.uniform(0.8, 1.2)
    return timed(ms)


def timed(ms: float, spread: float = 0.01, device: str = "fake") -> Evaluation:
    """An accepted kernel's verdict; ``spread`` is the half width of its interval."""
    return Evaluation(
        Status.OK,
        time_ms=Interval(ms, ms * (1 - spread), ms * (1 + spread)),
        baselines={"eager": Baseline(Interval(10, 9.9, 10.1), None)},
        speedup={"eager": 10 / ms},
        device=device,
    )


class FakeExecutor:
    """Judges at once, by ``verdict`` or by what ``answers`` says for a source."""

    def __init__(self, failing: float = 0.3, hardware: str = "fake") -> None:
        self.devices = ("fake:0",)
        self.hardware = hardware
        self.failing = failing
        self.jobs: list[Job] = []

    def judge(self, job: Job) -> Evaluation:
        return verdict(job.kernel, self.failing)

    def submit(self, job: Job) -> Future[Evaluation]:
        self.jobs.append(job)
        future: Future[Evaluation] = Future()
        try:
            future.set_result(self.judge(job))
        except JobFailed as error:
            future.set_exception(error)
        return future

    @property
    def searched(self) -> list[Kernel]:
        return [job.kernel for job in self.jobs if job.purpose is Purpose.SEARCH]

    def heed(self, say: Callable[[str], None]) -> None:
        self.told = say

    def close(self) -> None:
        pass


def configuration(**sections: object) -> RunConfig:
    """A small run; ``population__size=4`` sets ``population.size``."""
    data: dict[str, object] = {
        "name": "fake",
        "task": "fake.py",
        "devices": "cpu",
        "population": {"size": 4, "elite": 2, "islands": 2, "migration": {"every": 1}},
        "budget": {"generations": 3},
    }
    for dotted, value in sections.items():
        table: dict[str, object] = data
        *path, last = dotted.split("__")
        for part in path:
            table = table.setdefault(part, {})  # type: ignore[assignment]
        table[last] = value
    return check(Source("test", data, {}))


@dataclass
class Sitting:
    """One sitting of a run in ``folder``, with fakes that can be looked at afterwards."""

    folder: Path
    config: RunConfig = field(default_factory=configuration)
    author: FakeAuthor = field(default_factory=FakeAuthor)
    executor: Executor = field(default_factory=FakeExecutor)
    watch: Watch = field(default_factory=Watch)
    more: Iterable[Author] = ()

    def recorder(self) -> Recorder:
        if (self.folder / "run.sqlite").exists():
            return Recorder.open(self.folder)
        demand = self.config.fitness.demand
        facts = (description(), demand, "cpp", HEADER, {}, "2025-01-01")
        return Recorder.create(self.folder, RunInfo("fake", stored(self.config), *facts))

    def engine(self, recorder: Recorder) -> Engine:
        info = recorder.info
        brief = Brief(info.task, info.language, info.demand, info.header)
        authors = (self.author, *self.more)
        staff = Staff(authors, (1.0,) * len(authors), self.config.seed)
        return Engine(self.config, brief, staff, self.executor, recorder, self.watch)

    def run(self) -> Outcome:
        recorder = self.recorder()
        try:
            return asyncio.run(self.engine(recorder).run())
        finally:
            recorder.close()
