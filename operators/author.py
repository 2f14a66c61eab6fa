"""The seam between the search and whoever has ideas and writes kernels."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cuda_sandbox.kernel import Kernel
from fitness.description import TaskDescription
from fitness.evaluation import Demand, Evaluation
from fitness.hardware import Ceilings
from operators.idea import Idea
from operators.llm import Model, Prompt, Reply


@dataclass(frozen=True, slots=True)
class Brief:
    """What is asked for: the task, the language, the demand and the device's facts.

    ``header`` is the generated header; ``facts`` are lines such as ``132 SMs``, ``227 KB shared
    memory per block`` for a person or a model to read. ``arch`` is what the compiler builds for,
    ``peak`` what the device's clocks and widths allow at most; None where that is not known.
    """

    task: TaskDescription
    language: str
    demand: Demand
    header: str
    facts: tuple[str, ...] = ()
    arch: str = ""
    peak: Ceilings | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """An idea tried earlier and its outcome: ``gain`` is child's / parent's speedup, or None.

    ``here``: it was tried on this very parent, and should not be proposed for it again; otherwise
    it was tried on another kernel of the run.
    """

    idea: Idea
    outcome: str
    gain: float | None
    here: bool = True


@dataclass(frozen=True, slots=True)
class Specimen:
    """An individual as an author sees it; ``ancestry``: the ideas behind it, oldest first.

    ``tuned`` are other values of its tunables that were tried: what changed, and the speedup, None
    where that kernel failed. ``origin``: of one that failed, the kernel that works and was changed.
    """

    id: str
    kernel: Kernel
    evaluation: Evaluation
    ancestry: tuple[Idea, ...] = ()
    tuned: tuple[tuple[str, float | None], ...] = ()
    origin: Kernel | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A kernel that an author wrote, with the idea it carries out.

    ``model`` is the name of the model that wrote it; empty where none did.
    """

    kernel: Kernel
    idea: Idea
    model: str = ""


@dataclass(frozen=True, slots=True)
class Credit:
    """What one model has brought so far: a draw of models may follow it.

    ``calls`` and ``dollars`` are what it was asked and cost; ``children`` were judged; ``gains``
    are those of them that are significantly faster than their parent, each as child's / parent's
    speedup.
    """

    calls: int = 0
    dollars: float = 0.0
    children: int = 0
    gains: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """Which of several answers to one question is wanted: ``number`` (from 0) ``of`` how many.

    The branches of a question are asked for one by one, all at once, and are to differ. Their
    desks draw the same chances, so that a branch can tell what the others got.
    """

    number: int
    of: int


class Desk(Protocol):
    """What an author works with during one call: its place in the run, chance, and the models."""

    @property
    def key(self) -> str:
        """The call's place in the run, such as ``0-3-12/mutation/ideate``."""
        ...

    @property
    def rng(self) -> random.Random:
        """Chance, seeded by the run and the key."""
        ...

    async def ask(self, place: str, prompt: Prompt, model: Model) -> Reply | None:
        """The model's reply to ``prompt``: the recorded one, if ``place`` under ``key`` has one.

        None: no answer will come (the budget, a refusal, a lost call).
        """
        ...

    def credit(self) -> Mapping[str, Credit]:
        """What each model has brought, by its name, as far as the place may know of it."""
        ...


class NoFamily(Exception):
    """The author cannot serve this task; the message says why and names the alternatives."""


class Author(Protocol):
    """Has ideas and writes kernels. Every method may answer with fewer items than asked, or none.

    Given the same arguments and a desk of the same key an author answers the same: chance comes
    from the desk, and so do the replies of models, which it records and gives again.
    """

    name: str

    async def port(self, brief: Brief, branch: Branch, desk: Desk) -> Draft | None:
        """A plain first kernel. Raises NoFamily if the task is not served."""
        ...

    async def ideate(
        self, brief: Brief, parent: Specimen, tried: Sequence[Tried], count: int, desk: Desk
    ) -> list[Idea]:
        """Up to ``count`` ideas for ``parent``, none of which was ``tried`` here."""
        ...

    async def implement(
        self, brief: Brief, parent: Specimen, idea: Idea, branch: Branch, desk: Desk
    ) -> Draft | None:
        """An implementation of ``idea`` on top of ``parent``."""
        ...

    async def cross(
        self, brief: Brief, parents: tuple[Specimen, Specimen], branch: Branch, desk: Desk
    ) -> Draft | None:
        """A kernel that joins what is good in both parents."""
        ...

    async def repair(self, brief: Brief, failed: Specimen, desk: Desk) -> Draft | None:
        """A kernel that mends ``failed`` by its status, reason and log."""
        ...
