"""A run as it would be: its plan, what it may cost, and the first prompts. Nothing is asked."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from deap import base

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from evo.config import RunConfig
from evo.generation import Planner
from evo.individual import Birth, Individual
from evo.machine import DeviceMissing, Machine, survey
from evo.sitting import staff
from evo.studio import Staff
from fitness.description import TaskDescription
from fitness.evaluation import Evaluation, Interval
from operators.author import Author, Branch, Brief, Credit, Specimen
from operators.chance import chance
from operators.idea import Category, Idea
from operators.llm import Model, Price, Prompt, Reply, Usage
from operators.llm.estimate import about, at_most

REPLY_TOKENS = {"ideas": 4_000, "kernel": 10_000}  # reasoning included; others count as kernels
FAILING = 0.4  # share of written kernels that are assumed to fail, and to be mended
PARENT_LINES = 150  # of the kernel that later prompts are assumed to show: 2,000 tokens or so
FREE = Price(0, 0, 0, 0)
IDEA = Idea("an idea of a sentence or two, as long as they are", Category.MEMORY, "llm")

Asking = Sequence[tuple[Author, float]]  # authors that ask, each with its share of the work


@dataclass(slots=True)
class Listener:
    """A desk that nobody answers: it keeps what it is asked. See `operators.author.Desk`."""

    key: str = "rehearsal"
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    asked: list[tuple[Prompt, Model]] = field(default_factory=list)

    async def ask(self, place: str, prompt: Prompt, model: Model) -> Reply | None:
        """Keep the question."""
        del place
        self.asked.append((prompt, model))
        return None

    def credit(self) -> Mapping[str, Credit]:
        """Nothing was brought yet."""
        return {}


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of one purpose: how many, and what one is likely to need, and may need at most."""

    purpose: str
    count: float
    likely: Usage
    most: Usage


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a run is going to do, as far as that is known before.

    ``steps`` counts acts of variation by operator, ports one by one, in ``generations``;
    ``prompts`` are the first, each with its model. ``note`` says what is missing here.
    """

    generations: int
    steps: Mapping[str, int]
    evaluations: float
    calls: tuple[Calls, ...]
    prompts: tuple[tuple[Prompt, Model], ...]
    note: str = ""

    @property
    def likely(self) -> Usage:
        """All calls together, as they are likely to be."""
        return _sum([(one.count, one.likely) for one in self.calls])

    @property
    def most(self) -> Usage:
        """All calls together, at their upper estimates."""
        return _sum([(one.count, one.most) for one in self.calls])


def rehearse(config: RunConfig, task: TaskDescription) -> Rehearsal:
    """Plan a run as its seed will, and ask its authors for prompts that nobody answers.

    Raises NoFamily where no author serves the task.
    """
    machine, note = _machine(config)
    brief = Brief(
        task,
        machine.language,
        config.fitness.demand,
        task.signature.header(machine.language),
        machine.facts,
        machine.arch,
        machine.peak,
    )
    return asyncio.run(_rehearsed(config, brief, staff(config), note))


def _machine(config: RunConfig) -> tuple[Machine, str]:
    """This machine; without the device that is wanted, a GPU of which nothing is known."""
    try:
        return survey(config.devices, config.require, config.cpu.threads), ""
    except DeviceMissing as missing:
        note = f"{missing}; the run's prompts will state the device's facts"
        return Machine((), "cuda", config.require or "a GPU", "", ()), note


async def _rehearsed(config: RunConfig, brief: Brief, crew: Staff, note: str) -> Rehearsal:
    ports, first = await _ports(config, brief, crew)
    generations = config.budget.generations
    last = 1 if generations is None else generations
    steps = _steps(config, ports, last)
    counts = _written(config, steps)
    shares = [weight / sum(crew.weights) for weight in crew.weights]
    asking = [(one, share) for one, share in zip(crew.authors, shares, strict=True) if _asks(one)]
    calls = [await _calls(config, brief, asking, *item) for item in counts.items()]
    kernels = sum(count for purpose, count in counts.items() if purpose != "ideas")
    tunings = steps["mutation"] * config.variation.ideas * config.variation.tunings
    variants = steps["tuning"] * config.variation.branches
    total = kernels + tunings + variants
    return Rehearsal(last, steps, total, tuple(c for c in calls if c.count), tuple(first), note)


def _asks(author: Author) -> bool:
    return bool(getattr(author, "models", ()))


async def _ports(
    config: RunConfig, brief: Brief, crew: Staff
) -> tuple[int, list[tuple[Prompt, Model]]]:
    """How many first kernels there will be, and what is asked for them."""
    drafts, asked, count = 0, list[tuple[Prompt, Model]](), config.population.size
    for number in range(count):
        desk = Listener("0-0-0/port/port")
        desk.rng.seed(f"{config.seed}/{desk.key}")  # as it will be, so that the models are those
        author = crew.order(desk.rng)[0]
        drafts += await author.port(brief, Branch(number, count), desk) is not None
        asked += desk.asked
    return max(1, drafts + len(asked)), asked


def _steps(config: RunConfig, ports: int, last: int) -> Counter[str]:
    """The acts of variation of all islands and generations: operators are drawn by the seed."""
    toolbox = base.Toolbox()
    toolbox.register("select", lambda pool, count: pool[:count])
    planner = Planner(config, toolbox)
    pool = [_member(number) for number in range(config.population.size)]
    found: Counter[str] = Counter(port=ports * config.population.islands)
    for island in range(config.population.islands):
        with chance(f"{config.seed}/{island}/0/plan 1") as rng:
            steps = planner.filling(rng, pool[:ports], ports)
        for number in range(1, last + 1):
            with chance(f"{config.seed}/{island}/{number}/plan 0") as rng:
                steps += planner.offspring(rng, pool)
        found.update(step.operator for step in steps)
    return found


def _member(number: int) -> Individual:
    birth = Birth(0, 0, "port", "", (), None)
    return Individual(f"0-0-{number}", Kernel(f"int member{number};", "cpp"), "", birth)


def _written(config: RunConfig, steps: Counter[str]) -> dict[str, float]:
    """How many answers are asked for, by purpose, from authors of any kind."""
    settings = config.variation
    found: dict[str, float] = {
        "port": steps["port"],
        "ideas": steps["mutation"],
        "kernel": steps["mutation"] * settings.ideas * settings.branches,
        "crossover": steps["crossover"] * settings.branches,
    }
    kernels = sum(count for purpose, count in found.items() if purpose != "ideas")
    tries = sum(FAILING**attempt for attempt in range(1, settings.repairs + 1))
    return found | {"repair": kernels * tries}


async def _calls(
    config: RunConfig, brief: Brief, asking: Asking, purpose: str, count: float
) -> Calls:
    """The calls for so many answers, with what each needs in the mean over authors and models."""
    likely, most = list[tuple[float, Usage]](), list[tuple[float, Usage]]()
    for author, share in asking:
        models: tuple[Model, ...] = author.models  # type: ignore[attr-defined]
        weights = sum(model.weight for model in models)
        for prompt in await _example(config, brief, author, purpose):
            for model in models:
                part = share * model.weight / weights
                likely.append((part, _likely(prompt, model)))
                most.append((part, at_most(prompt, model)))
    shares = sum(share for _, share in asking)
    if not (shares and likely):
        return Calls(purpose, 0.0, Usage(), Usage())
    return Calls(purpose, count * shares, _mean(likely), _mean(most))


def _likely(prompt: Prompt, model: Model) -> Usage:
    if model.provider == "ask":
        return Usage()
    output = REPLY_TOKENS.get(prompt.purpose, REPLY_TOKENS["kernel"])
    return (model.price or FREE).usage(about(prompt), 0, min(output, model.max_output_tokens), 0)


async def _example(config: RunConfig, brief: Brief, author: Author, purpose: str) -> list[Prompt]:
    """A prompt of that purpose, about a kernel of usual size."""
    desk, parent, branch = Listener(), _specimen(brief, Status.OK), Branch(0, 1)
    match purpose:
        case "port":
            await author.port(brief, branch, desk)
        case "ideas":
            await author.ideate(brief, parent, (), config.variation.ideas, desk)
        case "kernel":
            await author.implement(brief, parent, IDEA, branch, desk)
        case "crossover":
            await author.cross(brief, (parent, parent), branch, desk)
        case _:
            await author.repair(brief, _specimen(brief, Status.INCORRECT), desk)
    return [prompt for prompt, _ in desk.asked[:1]]


def _specimen(brief: Brief, status: Status) -> Specimen:
    source = "    total += input[row * columns + column] * weight[column];\n" * PARENT_LINES
    time = Interval(1.0, 0.9, 1.1) if status is Status.OK else None
    verdict = Evaluation(status, "", time_ms=time, device="example")
    return Specimen("0-0-0", Kernel(source, brief.language), verdict, (IDEA,))


def _mean(parts: Sequence[tuple[float, Usage]]) -> Usage:
    whole = sum(weight for weight, _ in parts)
    return _sum([(weight / whole, usage) for weight, usage in parts])


def _sum(parts: Sequence[tuple[float, Usage]]) -> Usage:
    def total(name: str) -> float:
        return float(sum(weight * getattr(usage, name) for weight, usage in parts))

    input, cached, output, reasoning = (
        round(total(name)) for name in ("input", "cached", "output", "reasoning")
    )
    return Usage(input, cached, output, reasoning, total("dollars"))
