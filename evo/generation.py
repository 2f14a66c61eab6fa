"""Plans a generation: which operators, on which parents, with which slots for their children."""

from __future__ import annotations

import random
from collections.abc import Sequence

from deap import base

from cuda_sandbox.kernel import Kernel
from evo.config import RunConfig
from evo.individual import Individual
from evo.records import Step
from operators import variation
from operators.variation import Counts

STAND_IN = "tuning"


class Planner:
    """Draws operators by their rates and parents by the configured selection."""

    def __init__(self, config: RunConfig, toolbox: base.Toolbox) -> None:
        settings = config.variation
        self.counts = Counts(
            settings.ideas, settings.branches, config.population.size, settings.tunings
        )
        self._rates = {name: rate for name, rate in settings.rates.items() if rate > 0}
        self._births = config.population.births
        self._toolbox = toolbox

    def ports(self) -> list[Step]:
        """The first step of a population that has nobody."""
        return [Step("port", (), 0)]

    def filling(self, rng: random.Random, ports: Sequence[Individual], used: int) -> list[Step]:
        """Steps on the ports, if there are fewer than the population has places for."""
        missing = self.counts.ports - len(ports)
        slots = max(used, self.counts.ports)
        return self._steps(rng, ports, missing, slots) if ports and missing > 0 else []

    def offspring(self, rng: random.Random, pool: Sequence[Individual]) -> list[Step]:
        """Steps until the children may be as many as the configuration says."""
        return self._steps(rng, pool, self._births, 0)

    def _steps(
        self, rng: random.Random, pool: Sequence[Individual], wanted: int, slot: int
    ) -> list[Step]:
        kinds = {one.id: one.kernel.untuned() for one in pool}
        several = len(set(kinds.values()))
        rates = {
            name: rate
            for name, rate in self._rates.items()
            if several >= variation.operator(name).PARENTS
        }
        steps: list[Step] = []
        end = slot + wanted
        while slot < end:
            (name,) = rng.choices(list(rates), list(rates.values()))
            parents = self._parents(pool, kinds, variation.operator(name).PARENTS)
            steps.append(Step(name, parents, slot))
            slot += variation.operator(name).seats(self.counts)
        return steps

    def _parents(
        self, pool: Sequence[Individual], kinds: dict[str, Kernel], count: int
    ) -> tuple[str, ...]:
        """Parents that differ in more than tuned constants, one selection after the other."""
        rest, parents = list(pool), []
        for _ in range(count):
            (chosen,) = self._toolbox.select(rest, 1)
            rest = [one for one in rest if kinds[one.id] != kinds[chosen.id]]
            parents.append(chosen.id)
        return tuple(parents)

    def stand_in(self, step: Step) -> Step | None:
        """What to do for a step that brought nothing: tune its first parent, if that is wanted."""
        if not step.parents or step.operator == STAND_IN or STAND_IN not in self._rates:
            return None
        return Step(STAND_IN, step.parents[:1], step.slot)
