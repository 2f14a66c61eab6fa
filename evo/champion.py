"""The fastest kernel of a run: replaced only by a significant win."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from evo.codec import decode
from evo.individual import Individual
from evo.recorder import Recorder
from evo.store import unpacked
from evo.survival import beaten
from evo.watch import Watch
from fitness.evaluation import Evaluation


class Champion:
    """Holds the best so far, and records each change."""

    def __init__(self, recorder: Recorder, watch: Watch) -> None:
        self._recorder = recorder
        self._watch = watch
        self.individual: Individual | None = None

    def restore(self, individual: Individual) -> None:
        """Take on the best of an earlier sitting, as judged on this hardware."""
        self.individual = individual if individual.fitness.valid else None

    def consider(self, individual: Individual) -> None:
        """Crown an individual if it is accepted and beats the one that holds the crown.

        None that has failed its certificate in an earlier sitting.
        """
        if not individual.fitness.valid or self._recorder.demoted(individual.digest):
            return
        if self.individual is None or beaten(individual, self.individual):
            self.individual = individual
            (speedup,) = individual.fitness.values
            self._recorder.set_best(individual.id, speedup=speedup)
            self._watch.best(individual)


@dataclass(frozen=True, slots=True)
class Contender:
    """As much of an accepted individual as a ranking needs."""

    id: str
    digest: str
    evaluation: Evaluation


def contenders(recorder: Recorder, hardware: str) -> list[Contender]:
    """All accepted individuals, as judged on this hardware, in the order of their places."""
    rows = recorder.rows(_ACCEPTED, (hardware,))
    found = [
        Contender(identity, digest, decode(Evaluation, unpacked(record)))
        for identity, digest, record in rows
    ]
    return sorted(found, key=lambda one: place(one.id))


def final(ranked: Iterable[Contender], demoted: Collection[str]) -> Contender | None:
    """The one to certify: whose interval's upper end is lowest, so that no lucky median wins.

    The earliest of equals; ``demoted`` digests are left out. The order in which islands happened
    to finish does not matter.
    """
    fit = (one for one in ranked if one.digest not in demoted and one.evaluation.time_ms)
    return min(fit, key=_upper_end, default=None)


def _upper_end(one: Contender) -> float:
    assert one.evaluation.time_ms is not None
    return one.evaluation.time_ms.high


def place(identity: str) -> tuple[int, ...]:
    """Generation, island, slot and attempt at repair of an individual's id, as numbers."""
    match = re.fullmatch(r"(\d+)-(\d+)-(\d+)(?:r(\d+))?", identity)
    assert match is not None, identity
    island, generation, slot, attempt = map(int, match.groups(default="0"))
    return generation, island, slot, attempt


_ACCEPTED = """
select i.id, k.digest, e.record from individuals i join kernels k on k.id = i.kernel
    join evaluations e on e.digest = k.digest and e.hardware = ? and e.purpose = 'search'
where e.speedup is not null
"""
