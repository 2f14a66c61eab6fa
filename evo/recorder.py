"""Writes a run's file: what happens is committed before anything else is done about it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

from cuda_sandbox.kernel import Kernel
from evo import schema
from evo.codec import encode
from evo.individual import Individual, worth
from evo.records import Call, Generation, RunInfo, Step
from evo.store import FILE, Store, generation_of
from fitness.evaluation import Evaluation
from operators.idea import Idea
from operators.llm import Usage

_SEQUENCED = ("individuals", "evaluations", "calls", "migrations", "generations", "events")

FREE = Usage()
_USAGE = attrgetter(*(field.name for field in fields(Usage)))  # astuple copies, and is slow


class Recorder(Store):
    """The one writer of a run. ``seq`` numbers everything written; ``at`` is running time in s."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        super().__init__(path, connection)
        latest = " union all ".join(f"select max(seq) as seq from {name}" for name in _SEQUENCED)
        (seq,) = connection.execute(f"select max(seq) from ({latest})").fetchone()
        self._seq: int = seq or 0
        self._commit_due = False
        self._began = time.monotonic() - self.seconds()

    @classmethod
    def create(cls, path: Path, info: RunInfo) -> Self:
        """A new run in folder (or file) ``path``; raises StoreError if it exists."""
        file = path if path.suffix == ".sqlite" else path / FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        recorder = cls(file, schema.create(file))
        recorder.set_info(info)
        return recorder

    @classmethod
    def open(cls, path: Path) -> Self:
        """The run in ``path``, to go on with it; raises StoreError."""
        file = path / FILE if path.is_dir() else path
        return cls(file, schema.connect(file, write=True))

    def close(self) -> None:
        """Commit, leave one plain file behind, and close it."""
        self._commit()
        schema.settle(self._db)
        super().close()

    @property
    def event(self) -> int:
        """The number of the last thing written."""
        return self._seq

    def elapsed(self) -> float:
        """Seconds of running time, over all sittings, until now."""
        return time.monotonic() - self._began

    def set_info(self, info: RunInfo) -> None:
        """Replace what the run says of itself (``best`` is kept apart: see ``set_best``)."""
        with self._transaction():
            self._set("info", encode(replace(info, best=None)))
            if info.best is not None:
                self._set("best", info.best)

    def set_best(self, identity: str, **detail: Any) -> None:
        """Record that an individual has become the fastest."""
        with self._transaction():
            self._set("best", identity)
            self._event("best", identity, detail)

    def forget_best(self) -> None:
        """Record that no individual is the fastest: the one that was has been demoted."""
        with self._transaction():
            self._db.execute("delete from meta where key = 'best'")

    def add_event(self, kind: str, subject: str = "", **detail: Any) -> None:
        """Record something that happened; ``detail`` holds JSON values."""
        with self._transaction():
            self._event(kind, subject, detail)

    def add_individual(self, individual: Individual) -> None:
        """Record a birth. Its parents must be there; its evaluation is recorded on its own."""
        birth = individual.birth
        with self._transaction():
            seq = self._next()
            kernel = self._kernel(individual.digest, individual.kernel)
            place = (birth.island, birth.generation, birth.operator, birth.author)
            row = (seq, self.elapsed(), individual.id, kernel, *place)
            self._insert("individuals", (*row, self._idea(birth.idea), birth.note))
            for index, parent in enumerate(birth.parents):
                query = "insert into parents select ?, ?, seq from individuals where id = ?"
                if self._db.execute(query, (seq, index, parent)).rowcount != 1:
                    raise ValueError(f"{individual.id} names a parent {parent} that does not exist")

    def add_evaluation(
        self, digest: str, hardware: str, purpose: str, evaluation: Evaluation
    ) -> None:
        """Record a verdict; one on the same kernel, hardware and purpose is replaced."""
        record = _packed(encode(evaluation))
        with self._transaction():
            row = (self._next(), self.elapsed(), digest, hardware, purpose, evaluation.status)
            query = "insert or replace into evaluations values (?, ?, ?, ?, ?, ?, ?, ?)"
            self._db.execute(query, (*row, worth(evaluation, self.baseline), record))

    def add_call(self, call: Call) -> None:
        """Record an author's reply, before it is used."""
        with self._transaction():
            prompt, reply = (
                json.dumps([self._blob(part) for part in parts])
                for parts in (call.prompt, call.reply)
            )
            texts = (call.author, call.model, call.state, prompt, reply)
            usage = _USAGE(call.usage)
            self._insert("calls", (call.key, self._next(), self.elapsed(), *texts, *usage))
        if call.usage != FREE:
            self._commit()  # it has been paid for

    def has(self, identity: str) -> bool:
        """Whether an individual of that id was born."""
        return bool(self.rows("select 1 from individuals where id = ?", (identity,)))

    def demoted(self, digest: str) -> bool:
        """Whether a kernel was tried for a certificate on some hardware and failed."""
        query = "select 1 from evaluations where digest=? and purpose='certify' and status != 'ok'"
        return bool(self.rows(query, (digest,)))

    def reply(self, key: str) -> tuple[str, ...] | None:
        """The reply recorded for a call in its parts, if the call was made."""
        row = self._db.execute("select reply from calls where key = ?", (key,)).fetchone()
        return None if row is None else self._parts(row[0])

    def start_generation(self, generation: Generation) -> None:
        """Record a generation's start; its migrants are taken out of the island's mailbox."""
        island, number = generation.island, generation.number
        horizon, migrants = json.dumps(generation.horizon), json.dumps(generation.migrants)
        with self._transaction():
            row = (island, number, self._next(), horizon, migrants, "[]", None)
            self._insert("generations", row)
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

    def plan(self, island: int, number: int) -> list[tuple[Step, ...]]:
        """The phases planned so far for a generation that was started."""
        query = "select plan from generations where island = ? and number = ?"
        (text,) = self._db.execute(query, (island, number)).fetchone()
        return [
            tuple(Step(operator, tuple(parents), slot) for operator, parents, slot in phase)
            for phase in json.loads(text)
        ]

    def add_phase(self, island: int, number: int, steps: Sequence[Step]) -> None:
        """Add a phase to the plan of a generation that was started."""
        phases = [*self.plan(island, number), tuple(steps)]
        rows = [[[step.operator, step.parents, step.slot] for step in phase] for phase in phases]
        query = "update generations set plan = ? where island = ? and number = ?"
        with self._transaction():
            self._db.execute(query, (json.dumps(rows, separators=(",", ":")), island, number))

    def close_generation(
        self,
        island: int,
        number: int,
        survivors: Sequence[str],
        migrants: Iterable[tuple[str, int]],
    ) -> None:
        """Record who survived and, in the same breath, which copies go to which island."""
        query = "update generations set survivors = ? where island = ? and number = ?"
        with self._transaction():
            self._db.execute(query, (json.dumps(list(survivors)), island, number))
            for individual, target in migrants:
                row = (self._next(), self.elapsed(), individual, island, target, number, None)
                self._insert("migrations", row)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if not self._db.in_transaction:
            self._db.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._db.execute("rollback")
            raise
        self._commit_soon()

    def _commit_soon(self) -> None:
        """Commit at once; under an event loop, with all that is written in the same turn of it.

        A turn takes milliseconds. What a kill within it loses was not yet known to anybody else.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._commit()
            return
        if not self._commit_due:
            self._commit_due = True
            loop.call_soon(self._commit)

    def _commit(self) -> None:
        self._commit_due = False
        if self._db.in_transaction:
            self._db.execute("commit")

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    def _insert(self, table: str, row: tuple[Any, ...]) -> None:
        self._db.execute(f"insert into {table} values ({', '.join('?' * len(row))})", row)

    def _set(self, key: str, value: str) -> None:
        self._db.execute("insert or replace into meta values (?, ?)", (key, value))

    def _event(self, kind: str, subject: str, detail: dict[str, Any]) -> None:
        row = (self._next(), self.elapsed(), kind, subject, json.dumps(detail))
        self._insert("events", row)

    def _kernel(self, digest: str, kernel: Kernel) -> int:
        source = self._blob(kernel.source)
        row = (digest, kernel.language, json.dumps(kernel.flags), source)
        return self._unique("kernels", "digest, language, flags, source", "digest, source", row)

    def _idea(self, idea: Idea | None) -> int | None:
        if idea is None:
            return None
        columns = "text, category, author"
        return self._unique("ideas", columns, columns, (idea.text, idea.category, idea.author))

    def _unique(self, table: str, columns: str, key: str, row: tuple[Any, ...]) -> int:
        # "do update" (of nothing) because "do nothing" returns no row
        first = key.split(",")[0]
        query = (
            f"insert into {table} ({columns}) values ({', '.join('?' * len(row))}) "
            f"on conflict ({key}) do update set {first} = {first} returning id"
        )
        (identity,) = self._db.execute(query, row).fetchone()
        return int(identity)

    def _blob(self, text: str) -> int:
        data = text.encode()
        digest = hashlib.blake2b(data, digest_size=16).digest()
        query = "select id from blobs where digest = ?"
        row = self._db.execute(query, (digest,)).fetchone()
        if row is None:
            query = "insert into blobs (digest, data) values (?, ?) returning id"
            row = self._db.execute(query, (digest, zlib.compress(data, 6))).fetchone()
        return int(row[0])


def _packed(text: str) -> bytes:
    return zlib.compress(text.encode(), 6)
