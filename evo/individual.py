"""The individual: a kernel with its birth, its verdict and a DEAP fitness."""

from __future__ import annotations

from dataclasses import dataclass, field

from deap import base

from cuda_sandbox.kernel import Kernel
from fitness.evaluation import Evaluation
from operators.idea import Idea


class Fitness(base.Fitness):  # type: ignore[misc]  # deap carries no types
    """Speedup over the configured baseline; larger is better; invalid until accepted."""

    weights = (1.0,)


@dataclass(frozen=True, slots=True)
class Birth:
    """Where an individual came from. ``operator`` is a file name under operators/variation/.

    ``parents`` are ids (none for a port). ``author`` is who wrote the source.
    """

    island: int
    generation: int
    operator: str
    author: str
    parents: tuple[str, ...]
    idea: Idea | None


@dataclass(slots=True)
class Individual:
    """A member of a population; ``id`` is ``ISLAND-GENERATION-SLOT``, unique in its run."""

    id: str
    kernel: Kernel
    digest: str
    birth: Birth
    evaluation: Evaluation | None = None
    fitness: Fitness = field(default_factory=Fitness)
