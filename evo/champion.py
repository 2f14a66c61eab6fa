"""The fastest kernel of a run: replaced only by a significant win."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from evo.codec import decode
from evo.individual import Individual, beats
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
        """Crown an individual if it is accepted and beats the one that holds the crown."""
        if not individual.fitness.valid:
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
    """The best of all, whatever the order in which islands happened to finish.

    They are taken in the order of generation, island and slot, each beating the one before only
    significantly; ``demoted`` digests are left out.
    """
    best: Contender | None = None
    for one in ranked:
        fit = one.digest not in demoted
        if fit and (best is None or beats(one.evaluation, best.evaluation)):
            best = one
    return best


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
