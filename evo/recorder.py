"""Writes a run's file: what happens is committed before anything else is done about it."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from cuda_sandbox.kernel import Kernel
from evo import schema
from evo.codec import encode
from evo.individual import Individual, worth
from evo.records import Answer, Generation, Phase, Proposal, RunInfo, Step
from evo.store import FILE, generation_of
from evo.writer import Writer
from fitness.evaluation import Evaluation
from operators.idea import Idea

_LINE = """
with recursive line (seq) as (
    select seq from individuals where id = ?
    union
    select i.seq from line l join parents p on p.parent = l.seq
        join individuals i on i.seq = p.child and i.operator = 'repair'
) select i.id, exists (
    select 1 from evaluations where digest = k.digest and purpose = 'certify' and status != 'ok'
) from individuals i join kernels k on k.id = i.kernel where i.seq in line order by i.seq
"""


class Recorder(Writer):
    """Records what happens in the search."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        super().__init__(path, connection)
        self.opened_at = self.event  # what has a lower number was recorded by earlier sittings
        self._born: dict[str, int] = {}  # numbers of the individuals of this sitting

    @classmethod
    def create(cls, path: Path, info: RunInfo) -> Self:
        """A new run in folder (or file) ``path``; raises StoreError if it exists."""
        file = path if path.suffix == ".sqlite" else path / FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        recorder = cls(file, schema.create(file))
        recorder.set_info(info)
        return recorder

    def set_info(self, info: RunInfo) -> None:
        """Replace what the run says of itself (``best`` is kept apart: see ``set_best``)."""
        with self.transaction():
            self._set("info", encode(replace(info, best=None)))
            if info.best is not None:
                self._set("best", info.best)

    def set_best(self, identity: str, **detail: Any) -> None:
        """Record that an individual has become the fastest."""
        with self.transaction():
            self._set("best", identity)
            self._event("best", identity, detail)

    def forget_best(self) -> None:
        """Record that no individual is the fastest: the one that was has been demoted."""
        with self.transaction():
            self._db.execute("delete from meta where key = 'best'")

    def add_event(self, kind: str, subject: str = "", **detail: Any) -> None:
        """Record something that happened; ``detail`` holds JSON values."""
        with self.transaction():
            self._event(kind, subject, detail)

    def add_individual(self, individual: Individual) -> None:
        """Record a birth. Its parents must be there; its evaluation is recorded on its own."""
        birth = individual.birth
        with self.transaction():
            seq = self.next()
            kernel = self._kernel(individual.digest, individual.kernel)
            place = (birth.island, birth.generation, birth.operator, birth.author)
            row = (seq, self.elapsed(), individual.id, kernel, *place)
            idea = self._idea(birth.idea)
            base = self._seq_of(individual.id, birth.base) if birth.base else None
            self.insert("individuals", (*row, idea, birth.note, birth.model, base))
            for index, parent in enumerate(birth.parents):
                self.insert("parents", (seq, index, self._seq_of(individual.id, parent)))
        self._born[individual.id] = seq

    def _seq_of(self, child: str, parent: str) -> int:
        if parent in self._born:
            return self._born[parent]
        row = self._db.execute("select seq from individuals where id = ?", (parent,)).fetchone()
        if row is None:
            raise ValueError(f"{child} names a parent {parent} that does not exist")
        return int(row[0])

    def add_evaluation(
        self, digest: str, hardware: str, purpose: str, evaluation: Evaluation
    ) -> None:
        """Record a verdict; one on the same kernel, hardware and purpose is replaced."""
        record = _packed(encode(evaluation))
        with self.transaction():
            row = (self.next(), self.elapsed(), digest, hardware, purpose, evaluation.status)
            query = "insert or replace into evaluations values (?, ?, ?, ?, ?, ?, ?, ?)"
            self._db.execute(query, (*row, worth(evaluation, self.baseline), record))

    def add_answer(self, answer: Answer) -> None:
        """Record an author's answer, before it is used."""
        contents, *sources = answer.parts
        with self.transaction():
            blobs = json.dumps([self.blob(source) for source in sources])
            row = (answer.key, self.next(), self.elapsed(), answer.author, contents, blobs)
            self.insert("answers", row)

    def add_proposals(self, proposals: Sequence[Proposal]) -> None:
        """Record ideas as they were had."""
        with self.transaction():
            for one in proposals:
                what = (one.key, one.place, self._idea(one.idea), one.parent)
                place = (one.island, one.generation)
                self.insert("proposals", (self.next(), self.elapsed(), *place, *what))

    def has(self, identity: str) -> bool:
        """Whether an individual of that id was born."""
        return bool(self.rows("select 1 from individuals where id = ?", (identity,)))

    def demoted(self, digest: str) -> bool:
        """Whether a kernel was tried for a certificate on some hardware and failed."""
        query = "select 1 from evaluations where digest=? and purpose='certify' and status != 'ok'"
        return bool(self.rows(query, (digest,)))

    def has_event(self, kind: str, subject: str) -> bool:
        """Whether something of that kind has happened to ``subject``."""
        query = "select 1 from events where kind = ? and subject = ?"
        return bool(self.rows(query, (kind, subject)))

    def standing(self, identity: str) -> tuple[str, ...]:
        """The individual of that id; where it failed its certificate, those that mend it."""
        (_, demoted), *mends = self.rows(_LINE, (identity,))
        return tuple(one for one, failed in mends if not failed) if demoted else (identity,)

    def answer(self, key: str) -> tuple[str, ...] | None:
        """An author's answer in its parts, if it is on record."""
        query = "select contents, sources from answers where key = ?"
        row = self._db.execute(query, (key,)).fetchone()
        return None if row is None else (row[0], *self._parts(row[1]))

    def start_generation(self, generation: Generation) -> None:
        """Record a generation's start; its migrants are taken out of the island's mailbox."""
        island, number = generation.island, generation.number
        horizon, migrants = json.dumps(generation.horizon), json.dumps(generation.migrants)
        with self.transaction():
            row = (island, number, self.next(), horizon, migrants, "[]", None)
            self.insert("generations", row)
            query = (
                "update migrations set taken_in = ? "
                "where target = ? and individual = ? and taken_in is null"
            )
            for migrant in generation.migrants:
                self._db.execute(query, (number, island, migrant))

    def generation(self, island: int, number: int) -> Generation | None:
        """One generation, if it was started."""
        query = (
            "select island, number, horizon, migrants, survivors from generations"
            " where island = ? and number = ?"
        )
        row = self._db.execute(query, (island, number)).fetchone()
        return None if row is None else generation_of(*row)

    def waiting(self, target: int) -> tuple[str, ...]:
        """Migrants in an island's mailbox, in the order of arrival, each once."""
        query = "select individual from migrations where target=? and taken_in is null order by seq"
        return tuple(dict.fromkeys(row[0] for row in self._db.execute(query, (target,))))

    def add_phase(self, island: int, number: int, steps: Sequence[Step]) -> Phase:
        """Add a phase to the plan of a generation that was started."""
        phase = Phase(tuple(steps), self.event)
        rows = [
            [one.seen, [[step.operator, step.parents, step.slot] for step in one.steps]]
            for one in (*self.plan(island, number), phase)
        ]
        query = "update generations set plan = ? where island = ? and number = ?"
        with self.transaction():
            self._db.execute(query, (json.dumps(rows, separators=(",", ":")), island, number))
        return phase

    def close_generation(
        self,
        island: int,
        number: int,
        survivors: Sequence[str],
        migrants: Iterable[tuple[str, int]],
    ) -> None:
        """Record who survived and, in the same breath, which copies go to which island."""
        query = "update generations set survivors = ? where island = ? and number = ?"
        with self.transaction():
            self._db.execute(query, (json.dumps(list(survivors)), island, number))
            for individual, target in migrants:
                row = (self.next(), self.elapsed(), individual, island, target, number, None)
                self.insert("migrations", row)

    def _set(self, key: str, value: str) -> None:
        self._db.execute("insert or replace into meta values (?, ?)", (key, value))

    def _event(self, kind: str, subject: str, detail: dict[str, Any]) -> None:
        row = (self.next(), self.elapsed(), kind, subject, json.dumps(detail))
        self.insert("events", row)

    def _kernel(self, digest: str, kernel: Kernel) -> int:
        source = self.blob(kernel.source)
        row = (digest, kernel.language, json.dumps(kernel.flags), source)
        return self._unique("kernels", "digest, language, flags, source", "digest, source", row)

    def _idea(self, idea: Idea | None) -> int | None:
        if idea is None:
            return None
        columns = "text, category, author, model"
        row = (idea.text, idea.category, idea.author, idea.model)
        return self._unique("ideas", columns, columns, row)

    def _unique(self, table: str, columns: str, key: str, row: tuple[Any, ...]) -> int:
        # "do update" (of nothing) because "do nothing" returns no row
        first = key.split(",")[0]
        query = (
            f"insert into {table} ({columns}) values ({', '.join('?' * len(row))}) "
            f"on conflict ({key}) do update set {first} = {first} returning id"
        )
        (identity,) = self._db.execute(query, row).fetchone()
        return int(identity)


def _packed(text: str) -> bytes:
    return zlib.compress(text.encode(), 6)
