"""The individual: a kernel with its birth, its verdict and a DEAP fitness."""

from __future__ import annotations

import math
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

    ``parents`` are ids (none for a port). ``author`` is who wrote the source, ``model`` the name of
    the model that did, if any. ``note`` says in a line what an operator without an idea did, such
    as ``TILE 64 -> 128``. ``base`` is the kernel that the step began with, which what came of it is
    measured by: of a repair not the parent, which failed, but that one's base.
    """

    island: int
    generation: int
    operator: str
    author: str
    parents: tuple[str, ...]
    idea: Idea | None
    note: str = ""
    model: str = ""
    base: str = ""


@dataclass(slots=True, eq=False)
class Individual:
    """A member of a population; ``id`` is ``ISLAND-GENERATION-SLOT``, unique in its run.

    A repair's slot is that of the kernel it mends with ``r1``, ``r2``, ... behind it.
    """

    id: str
    kernel: Kernel
    digest: str
    birth: Birth
    evaluation: Evaluation | None = None
    fitness: Fitness = field(default_factory=Fitness)

    def judged(self, evaluation: Evaluation, baseline: str) -> None:
        """Take ``evaluation`` on; the fitness is valid only if it is worth something."""
        self.evaluation = evaluation
        value = worth(evaluation, baseline)
        if value is None:
            del self.fitness.values
        else:
            self.fitness.values = (value,)


def worth(evaluation: Evaluation, baseline: str) -> float | None:
    """Speedup over ``baseline`` of an accepted kernel; None if not accepted, or no sane number."""
    value = evaluation.speedup.get(baseline)
    if not evaluation.correct or value is None or not math.isfinite(value) or value <= 0:
        return None
    return value


def beats(challenger: Evaluation, incumbent: Evaluation) -> bool:
    """Whether the challenger's time lies wholly below the incumbent's, on the same device."""
    if challenger.device != incumbent.device or not challenger.correct:
        return False
    if challenger.time_ms is None or incumbent.time_ms is None:
        return False
    return challenger.time_ms.high < incumbent.time_ms.low
