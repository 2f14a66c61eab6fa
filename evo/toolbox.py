"""The only wiring: a ``deap.base.Toolbox`` registered from the configuration."""

from __future__ import annotations

from dataclasses import replace

from deap import base

from evo import migration
from evo.config import RunConfig
from evo.docket import Docket
from evo.individual import Fitness, Individual
from evo.studio import Studio
from operators import selection
from operators.variation import tuning

_TOPOLOGIES = {"ring": migration.ring}


def build(config: RunConfig, studio: Studio, docket: Docket) -> base.Toolbox:
    """Register everything that a generation calls."""
    toolbox = base.Toolbox()
    toolbox.register("clone", clone)
    toolbox.register("port", studio.port)
    toolbox.register("ideate", studio.ideate)
    toolbox.register("implement", studio.implement)
    toolbox.register("mate", studio.mate)
    toolbox.register("repair", studio.repair)
    toolbox.register("tune", tuning.retune)
    toolbox.register("evaluate", docket.evaluate)
    toolbox.register("profile", docket.profile)
    population = config.population
    scheme = population.selection
    toolbox.register("select", selection.scheme(scheme.name, scheme.arguments))
    move = population.migration
    toolbox.register(
        "migrate",
        _TOPOLOGIES[move.topology],
        islands=population.islands,
        every=move.every,
        count=move.count,
    )
    return toolbox


def clone(individual: Individual) -> Individual:
    """A copy with a fitness of its own; what is frozen is shared."""
    return replace(individual, fitness=Fitness(individual.fitness.values))
