"""What authors may know of a run: the ideas behind a kernel, and what was tried and how it went."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from cuda_sandbox.kernel import Kernel
from evo.credit import Credits
from evo.individual import Individual
from evo.store import LATEST, Store, unpacked
from fitness.evaluation import Evaluation
from operators.author import Credit, Specimen, Tried
from operators.idea import Category, Idea

LIMIT = 64  # ideas that an author is told of
HORIZONS = 64  # whose latest ideas are kept at hand: more than there are islands, as a rule
REASON = 200  # characters of a failure's reason

_ANCESTRY = """
with recursive line (seq, depth) as (
    select seq, 0 from individuals where id = ?
    union all
    select p.parent, depth + 1 from line join parents p on p.child = line.seq and p.place = 0
)
select d.text, d.category, d.author, d.model from line join individuals i on i.seq = line.seq
    join ideas d on d.id = i.idea order by depth desc
"""
_TRIED = """
select d.text, d.category, d.author, d.model, i.island, i.generation, e.status, e.speedup,
       f.speedup, case when e.status in ('ok', 'hack') then null else e.record end
from individuals i join ideas d on d.id = i.idea join kernels k on k.id = i.kernel
     join evaluations e on e.seq = (
         select max(seq) from evaluations where digest = k.digest and purpose = 'search')
     left join individuals m on m.seq = i.base left join kernels l on l.id = m.kernel
     left join evaluations f on f.seq = (
         select max(seq) from evaluations where digest = l.digest and purpose = 'search')
"""
_HERE = """
where i.base = (select seq from individuals where id = :parent)
order by i.generation desc, i.id limit :limit
"""
_BEHIND = """
where i.seq in (
    with recursive line (seq) as (
        select seq from individuals where id = :parent
        union all
        select p.parent from line join parents p on p.child = line.seq and p.place = 0
    ) select seq from line
) and i.base is not null order by i.seq desc limit :limit
"""
_ON_ISLAND = """
where i.island = :island and i.generation <= :generation
order by i.generation desc, i.id limit :limit
"""
_TUNED = """
select i.note, e.speedup, i.island, i.generation from parents p
join individuals i on i.seq = p.child join kernels k on k.id = i.kernel
join evaluations e on e.seq = (
    select max(seq) from evaluations where digest = k.digest and purpose = 'search')
where p.parent = (select seq from individuals where id = :parent) and i.operator = 'tuning'
order by i.seq limit :limit
"""
_KNOWN = """
select i.island, min(i.generation) from kernels k join individuals i on i.kernel = k.id
where k.digest = ? group by i.island
"""


class Memory:
    """Answers within a horizon: for each island the last generation that may be known of.

    So an answer depends on what is recorded for the generation that asks, not on how far the other
    islands happen to be. Where another run is repeated, that is the one which paid for the replies
    (``costs``), and whose ``profiles`` count if its verdicts do.
    """

    def __init__(
        self, store: Store, costs: Store | None = None, profiles: Store | None = None
    ) -> None:
        self._store = store
        self._profiles = profiles or store
        self._credits = Credits(store, costs or store)
        self._latest: dict[tuple[int, ...], list[Tried]] = {}

    def specimen(
        self, individual: Individual, horizon: tuple[int, ...], seen: int = LATEST
    ) -> Specimen:
        """An individual as authors see it within a horizon; it must have been judged.

        Its profile is there if it was on record by ``seen``.
        """
        assert individual.evaluation is not None
        rows = self._store.rows(_ANCESTRY, (individual.id,))
        ancestry = tuple(_idea(row) for row in rows)
        evaluation = self._profiled(individual.digest, individual.evaluation, seen)
        tuned, origin = self._tuned(individual, horizon), self._origin(individual)
        return Specimen(individual.id, individual.kernel, evaluation, ancestry, tuned, origin)

    def _origin(self, individual: Individual) -> Kernel | None:
        """The kernel that one was made of which fails; not where what was made of it may too."""
        found = individual.evaluation
        if found is None or found.correct or found.certificate or not individual.birth.base:
            return None
        return self._store.individual(individual.birth.base).kernel

    def _tuned(
        self, individual: Individual, horizon: tuple[int, ...]
    ) -> tuple[tuple[str, float | None], ...]:
        """Other values of its constants, or of its original's where it is itself one of those."""
        birth = individual.birth
        original = birth.parents[0] if birth.operator == "tuning" else individual.id
        values = {"parent": original, "limit": LIMIT}
        rows = self._store.rows(_TUNED, values)
        return tuple(row[:2] for row in rows if row[3] <= horizon[row[2]])

    def _profiled(self, digest: str, evaluation: Evaluation, seen: int) -> Evaluation:
        found = self._profiles.evaluation(digest, evaluation.device, "profile", seen)
        return replace(evaluation, bottleneck=found.bottleneck) if found else evaluation

    def credit(self, horizon: tuple[int, ...]) -> Mapping[str, Credit]:
        """What each model has brought, by its name."""
        return self._credits.within(horizon)

    def known(self, digest: str, horizon: tuple[int, ...]) -> bool:
        """Whether a kernel of this digest was born within the horizon."""
        rows = self._store.rows(_KNOWN, (digest,))
        return any(generation <= horizon[island] for island, generation in rows)

    def tried(self, parent: str, horizon: tuple[int, ...]) -> tuple[Tried, ...]:
        """Ideas tried on ``parent``, those behind it, then the latest of elsewhere.

        Each comes once, with its best outcome.
        """
        values = {"parent": parent, "limit": LIMIT}
        here = [
            row for row in self._store.rows(_TRIED + _HERE, values) if row[5] <= horizon[row[4]]
        ]
        behind = self._store.rows(_TRIED + _BEHIND, values)
        told = {attempt.idea.text: attempt for attempt in _digested(here, here=True)}
        for attempt in (*_digested(behind, here=False), *self._elsewhere(horizon)):
            told.setdefault(attempt.idea.text, attempt)
        return tuple(told.values())[:LIMIT]

    def _elsewhere(self, horizon: tuple[int, ...]) -> list[Tried]:
        """The latest of all islands: the same for all parents of a generation, so read once."""
        if horizon not in self._latest:
            rows: list[tuple[Any, ...]] = []
            for island, generation in enumerate(horizon):
                place = {"island": island, "generation": generation, "limit": LIMIT // len(horizon)}
                rows += self._store.rows(_TRIED + _ON_ISLAND, place)
            if len(self._latest) == HORIZONS:
                del self._latest[next(iter(self._latest))]
            self._latest[horizon] = _digested(rows, here=False)
        return self._latest[horizon]


def _digested(rows: Iterable[tuple[Any, ...]], here: bool) -> list[Tried]:
    best: dict[tuple[str, str], Tried] = {}
    for row in rows:
        attempt = _attempt(row, here)
        before = best.setdefault(row[:2], attempt)
        if (attempt.gain or 0.0) > (before.gain or 0.0):
            best[row[:2]] = attempt
    return list(best.values())


def _attempt(row: tuple[Any, ...], here: bool) -> Tried:
    status, speedup, before, record = row[6:]
    gain = speedup / before if speedup and before else None
    outcome = status  # alone for a cheat, who is not told how it was found out
    if record is not None and (reason := _reason(record)):
        outcome = f"{status}: {reason[:REASON]}"
    return Tried(_idea(row), outcome, gain, here)


@lru_cache(maxsize=4096)  # the latest are told to one author after another
def _reason(record: bytes) -> str:
    return str(json.loads(unpacked(record))["reason"])


def _idea(row: tuple[Any, ...]) -> Idea:
    return _idea_of(*row[:4])


@lru_cache(maxsize=4096)
def _idea_of(text: str, category: str, author: str, model: str) -> Idea:
    return Idea(text, Category(category), author, model)
