"""A run as the reports read it: one consistent look at the store, as plain records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

from cuda_sandbox.errors import UserError
from evo.efforts import base_of
from evo.individual import Individual
from evo.lineage import best, build, mothers
from evo.records import Migration, Proposal, RunInfo, Spent
from fitness.evaluation import Evaluation

if TYPE_CHECKING:
    from evo.lineage import Graph
    from evo.store import Store


class NoSuchKernel(UserError):
    """The id is not in the run."""


@dataclass(frozen=True)
class RunView:
    """What a run holds. ``individuals`` are in the order of their birth.

    ``certificate`` is the certifying verdict on the winner, once there is one; ``busy`` whether a
    process is at the run now; ``demoted`` are the ids of those that failed their certificate.
    """

    info: RunInfo
    individuals: tuple[Individual, ...]
    migrations: tuple[Migration, ...] = ()
    spent: Spent | None = None
    certificate: Evaluation | None = None
    busy: bool = False
    proposals: tuple[Proposal, ...] = ()
    demoted: frozenset[str] = frozenset()

    @classmethod
    def read(cls, store: Store, *, busy: bool = False) -> Self:
        """Everything the reports need, as the store stands now; a run is called as its folder."""
        info = replace(store.info, name=store.path.resolve().parent.name)
        return cls(
            info=info,
            individuals=tuple(store.individuals()),
            migrations=tuple(store.migrations()),
            spent=store.spent(),
            certificate=store.certificate(info.winner) if info.winner else None,
            busy=busy,
            proposals=tuple(store.proposals()),
            demoted=store.demoted_ids(),
        )

    @cached_property
    def by_id(self) -> dict[str, Individual]:
        """Individuals by their id."""
        return {individual.id: individual for individual in self.individuals}

    @cached_property
    def winner(self) -> str | None:
        """The certified winner, else the best so far; None while no kernel is correct."""
        standing = (one for one in self.individuals if one.id not in self.demoted)
        return self.info.winner or self.info.best or best(standing)

    @cached_property
    def path(self) -> list[Individual]:
        """From the port to the winner, along the mothers."""
        return mothers(self.individuals, self.winner)

    @cached_property
    def graph(self) -> Graph:
        """The lineage (see :mod:`evo.lineage`)."""
        sealed = {self.info.winner: "passed"} if self.info.winner else {}
        certificates = dict.fromkeys(self.demoted, "failed") | sealed
        return build(self.individuals, self.migrations, self.winner, self.proposals, certificates)

    @property
    def state(self) -> str:
        """``running``, ``stopped``, ``failed``, ``finished``; ``interrupted`` if it was killed."""
        return self.info.standing(busy=self.busy)

    @property
    def baseline(self) -> str:
        """What the speedup is against: ``eager``, ``compile`` or ``best``."""
        return self.info.demand.baseline

    @property
    def devices(self) -> list[str]:
        """Names of the devices that verdicts were reached on, in order of appearance."""
        verdicts = (each.evaluation for each in self.individuals)
        return list(dict.fromkeys(one.device for one in verdicts if one and one.device))

    def individual(self, name: str) -> Individual:
        """The individual with that id; ``winner`` names the winner. Raises NoSuchKernel."""
        if name == "winner":
            if self.winner is None:
                raise NoSuchKernel(
                    f"run {self.info.name!r} has no winner yet: no kernel was accepted"
                )
            name = self.winner
        if name not in self.by_id:
            raise NoSuchKernel(
                f"run {self.info.name!r} has no kernel {name!r}; ids look like "
                f"{', '.join(list(self.by_id)[:3]) or '0-0-0'}, or say 'winner' "
                f"('kernelevo lineage {self.info.name} -o lineage.html' shows them all)"
            )
        return self.by_id[name]

    def mother(self, individual: Individual) -> Individual | None:
        """The first parent, if there is one."""
        parents = individual.birth.parents
        return self.by_id.get(parents[0]) if parents else None

    def base(self, individual: Individual) -> Individual | None:
        """What it is measured by: the first parent, or of a repair or tuning that one's base."""
        return self.by_id.get(base_of(individual))

    def children(self, individual: Individual) -> list[Individual]:
        """Everyone who names ``individual`` among its parents."""
        return [each for each in self.individuals if individual.id in each.birth.parents]
