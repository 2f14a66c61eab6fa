"""What islands have in common."""

from __future__ import annotations

from dataclasses import dataclass

from deap import base

from evo.budget import Budget
from evo.champion import Champion
from evo.config import RunConfig
from evo.memory import Memory
from evo.recorder import Recorder
from evo.timeline import Timeline
from evo.watch import Watch


@dataclass(frozen=True, slots=True)
class World:
    """A run's collaborators, made once by the engine and handed to each island.

    ``header`` is the task's generated header, of which kernels' digests depend; ``profiling``
    whether kernels that may become elite are profiled, for those who write on from them.
    """

    config: RunConfig
    header: str
    toolbox: base.Toolbox
    recorder: Recorder
    memory: Memory
    budget: Budget
    timeline: Timeline
    champion: Champion
    watch: Watch
    profiling: bool = False
