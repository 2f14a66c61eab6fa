"""The seam between the search and whoever has ideas and writes kernels."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cuda_sandbox.kernel import Kernel
from fitness.description import TaskDescription
from fitness.evaluation import Demand, Evaluation
from operators.idea import Idea


@dataclass(frozen=True, slots=True)
class Brief:
    """What is asked for: the task, the language, the demand and the device's facts.

    ``header`` is the generated header; ``facts`` are lines such as ``132 SMs``, ``227 KB shared
    memory per block`` for a person or a model to read.
    """

    task: TaskDescription
    language: str
    demand: Demand
    header: str
    facts: tuple[str, ...] = ()


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
    """An individual as an author sees it; ``ancestry``: the ideas behind it, oldest first."""

    id: str
    kernel: Kernel
    evaluation: Evaluation
    ancestry: tuple[Idea, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A kernel that an author wrote, with the idea it carries out."""

    kernel: Kernel
    idea: Idea


class NoFamily(Exception):
    """The author cannot serve this task; the message says why and names the alternatives."""


class Author(Protocol):
    """Has ideas and writes kernels. Every method may answer with fewer items than asked, or none.

    Given the same arguments and the same state of ``rng`` an author should answer the same;
    one that cannot (a model) has its replies recorded and replayed.
    """

    name: str

    async def port(self, brief: Brief, count: int, rng: random.Random) -> list[Draft]:
        """Up to ``count`` plain first kernels. Raises NoFamily if the task is not served."""
        ...

    async def ideate(
        self, brief: Brief, parent: Specimen, tried: Sequence[Tried], count: int, rng: random.Random
    ) -> list[Idea]:
        """Up to ``count`` ideas for ``parent``, none of which was ``tried`` here."""
        ...

    async def implement(
        self, brief: Brief, parent: Specimen, idea: Idea, branches: int, rng: random.Random
    ) -> list[Draft]:
        """Up to ``branches`` different implementations of ``idea`` on top of ``parent``."""
        ...

    async def cross(
        self, brief: Brief, parents: tuple[Specimen, Specimen], rng: random.Random
    ) -> list[Draft]:
        """Kernels that join what is good in both parents."""
        ...

    async def repair(self, brief: Brief, failed: Specimen, rng: random.Random) -> list[Draft]:
        """Kernels that mend ``failed`` by its status, reason and log."""
        ...
