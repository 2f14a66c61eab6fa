"""The end of a run: the best is certified, and one that fails goes back to the authors."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from cuda_sandbox.kernel import Kernel
from evo.champion import contenders, final
from evo.docket import Docket
from evo.individual import Individual, beats
from evo.island import Island
from evo.world import World
from fitness.evaluation import Evaluation
from operators.author import NoFamily
from operators.llm import Unusable

MOST_CERTIFIED = 10
"""So many of the fastest are tried for a certificate: where all fail, it is not by chance."""
MENDING_S = 15 * 60.0
"""How long a model may take to mend one: nobody sits by at the end of a run."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A kernel with its certificate."""

    individual: Individual
    certificate: Evaluation


class Finale:
    """Certifies the fastest as the record stands; what it does is on record, and done once.

    One that fails, other than as a cheat, is demoted and mended as one that fails its verdict is,
    and what mends it is tried next. ``patient`` where people are to answer: no time is set then.
    """

    def __init__(
        self, world: World, docket: Docket, hardware: str, islands: Sequence[Island], patient: bool
    ) -> None:
        self.failed = 0
        self.without_verdict: Individual | None = None
        self._world = world
        self._recorder = world.recorder
        self._docket = docket
        self._ranked = contenders(world.recorder, hardware)
        self._islands = islands
        self._patience = None if patient else MENDING_S
        self._tried: set[str] = set()
        self._deserted = False

    async def seal(self) -> Sealed | None:
        """The winner; None where nobody was certified, or the machine failed (see the fields)."""
        sealed: Sealed | None = None
        for _ in range(MOST_CERTIFIED):
            best = self._next(sealed)
            if best is None or self.without_verdict:
                break
            sealed = await self._try(best) or sealed
        return sealed

    def _next(self, sealed: Sealed | None) -> Individual | None:
        """The fastest that was not tried; beside one with a certificate only if it beats that."""
        best = final(self._ranked, self._tried)
        incumbent = sealed.individual.evaluation if sealed else None
        if best is None or (incumbent and not beats(best.evaluation, incumbent)):
            return None
        found = self._recorder.individual(best.id)
        found.judged(best.evaluation, self._world.config.fitness.baseline)
        return found

    async def _try(self, one: Individual) -> Sealed | None:
        """Itself with its certificate, or what mends it."""
        self._tried.add(one.digest)
        self._world.watch.say(f"certifying {one.id}")
        certificate = await self._docket.certify(one.kernel, one.digest, self._rivals(one))
        if certificate is None:
            self.without_verdict = one
            return None
        if certificate.correct:
            return Sealed(one, certificate)
        self.failed += 1
        self._demote(one, certificate)
        mended = await self._mended(one, certificate)
        return await self._try(mended) if mended else None

    def _rivals(self, one: Individual) -> tuple[Kernel, ...]:
        """The accepted ones among its parents."""
        parents = (self._recorder.individual(parent) for parent in one.birth.parents)
        return tuple(parent.kernel for parent in parents if parent.fitness.valid)

    def _demote(self, loser: Individual, certificate: Evaluation) -> None:
        reason = f"{certificate.status}: {certificate.reason}"
        if not self._recorder.has_event("demoted", loser.id):
            self._recorder.add_event("demoted", loser.id, reason=reason)
        self._recorder.forget_best()
        self._world.watch.say(f"{loser.id} was not certified ({reason})")

    async def _mended(self, loser: Individual, certificate: Evaluation) -> Individual | None:
        """One that is accepted and new; None where nobody is asked, or nobody can mend it."""
        attempts = self._attempts(loser)
        if attempts <= 0 or self._deserted:
            return None
        island = self._islands[loser.birth.island]
        try:
            async with asyncio.timeout(self._patience):
                mended = await island.mend(loser, certificate, attempts)
        except (TimeoutError, Unusable, NoFamily) as error:
            self._deserted = True
            self._world.watch.say(f"{loser.id} is not mended: {error or 'no answer in time'}")
            return None
        if mended is None or not mended.fitness.valid or mended.digest in self._tried:
            return None
        return mended

    def _attempts(self, loser: Individual) -> int:
        """How many are left since the first in its line that failed a certificate."""
        line, step, used = loser, 0, 0
        while line.birth.operator == "repair":
            line, step = self._recorder.individual(line.birth.parents[0]), step + 1
            used = step if self._recorder.demoted(line.digest) else used
        return self._world.config.variation.repairs - used
