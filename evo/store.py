"""What a run has done, read from its one SQLite file. Safe while the run is going on."""

from __future__ import annotations

import difflib
import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from cuda_sandbox.kernel import Kernel
from evo import schema
from evo.codec import decode
from evo.individual import Birth, Individual
from evo.records import (
    Call,
    CallState,
    Event,
    Generation,
    Migration,
    Phase,
    Proposal,
    RunInfo,
    Spent,
    Step,
    Verdict,
)
from evo.schema import StoreError
from fitness.evaluation import Evaluation
from operators.idea import Category, Idea
from operators.llm import Prompt, Reply, Usage

FILE = "run.sqlite"
LATEST = (1 << 63) - 1  # no number is above

_INDIVIDUALS = """
select i.seq, i.id, k.digest, k.language, k.flags, b.data, i.island, i.generation, i.operator,
       i.author, d.text, d.category, d.author, d.model, i.note, i.model,
       (select q.id from individuals q where q.seq = i.base),
       (select json_group_array(p.id) from
           (select q.id from parents r join individuals q on q.seq = r.parent
            where r.child = i.seq order by r.place) p),
       (select e.record from evaluations e where e.digest = k.digest and e.purpose = 'search'
        order by e.seq desc limit 1)
from individuals i join kernels k on k.id = i.kernel join blobs b on b.id = k.source
     left join ideas d on d.id = i.idea
"""

_CALLS = """
select key, seq, at, author, model, provider, purpose, parents, prompt, schema, state, reply,
       finish, served, note, attempts, input, cached, output, reasoning, dollars from calls
"""


class Store:
    """Reads a run. Open it with ``Store.open(folder_or_file)``; use it as a context manager."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._db = connection

    @classmethod
    def open(cls, path: Path) -> Self:
        """The run in ``path``, a run's folder or its file; raises StoreError."""
        file = path / FILE if path.is_dir() else path
        return cls(file, schema.connect(file))

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def info(self) -> RunInfo:
        """Name, configuration, task, state, winner, as they stand now."""
        meta = dict(self._db.execute("select key, value from meta where key in ('info', 'best')"))
        info = json.loads(meta["info"])
        info["best"] = meta.get("best")
        return decode(RunInfo, json.dumps(info))

    def individuals(self) -> Iterator[Individual]:
        """All individuals in the order of their birth, each with its latest evaluation."""
        return self._individuals("order by i.seq")

    def individual(self, identity: str) -> Individual:
        """The individual of that id; raises StoreError naming the nearest ids."""
        for found in self._individuals("where i.id = ?", identity):
            return found
        known = [row[0] for row in self._db.execute("select id from individuals order by seq")]
        near = difflib.get_close_matches(identity, known) or known[-3:]
        hint = f"; there are {', '.join(near)}" if near else ": it has no individuals yet"
        raise StoreError(f"{self.path.parent.name} has no individual {identity!r}{hint}")

    def born(self, island: int, generation: int) -> Iterator[Individual]:
        """The individuals of one generation of an island, in the order of their birth."""
        clause = "where i.island = ? and i.generation = ? order by i.seq"
        return self._individuals(clause, island, generation)

    def _individuals(self, clause: str, *values: Any) -> Iterator[Individual]:
        baseline = self.baseline
        for row in self._db.execute(_INDIVIDUALS + clause, values):
            yield _individual(row, baseline)

    @cached_property
    def baseline(self) -> str:
        """Which speedup is the fitness: ``eager``, ``compile`` or ``best``."""
        (text,) = self._db.execute("select value from meta where key = 'info'").fetchone()
        baseline: str = json.loads(text)["demand"]["baseline"]
        return baseline

    def evaluation(
        self, digest: str, hardware: str, purpose: str, seen: int = LATEST
    ) -> Evaluation | None:
        """The verdict on a kernel on one kind of hardware, if there is one.

        ``seen``: only if its number is not above that.
        """
        query = (
            "select record from evaluations where digest = ? and hardware = ? and purpose = ?"
            " and seq <= ?"
        )
        row = self._db.execute(query, (digest, hardware, purpose, seen)).fetchone()
        return None if row is None else decode(Evaluation, unpacked(row[0]))

    def verdicts(self, of: str | None = None) -> Iterator[Verdict]:
        """All verdicts in their order, or those on the kernel of digest ``of``."""
        query = "select seq, at, digest, hardware, purpose, record from evaluations"
        clause, values = (" where digest = ?", (of,)) if of else ("", ())
        for row in self._db.execute(f"{query}{clause} order by seq", values):
            seq, at, digest, hardware, purpose, record = row
            evaluation = decode(Evaluation, unpacked(record))
            yield Verdict(seq, at, digest, hardware, purpose, evaluation)

    def certificate(self, identity: str) -> Evaluation | None:
        """The latest certifying verdict on an individual; raises StoreError for an unknown id."""
        verdicts = list(self.verdicts(self.individual(identity).digest))
        found = [verdict.evaluation for verdict in verdicts if verdict.purpose == "certify"]
        return found[-1] if found else None

    def demoted_ids(self) -> frozenset[str]:
        """Individuals whose kernel was tried for a certificate on some hardware and failed."""
        query = (
            "select i.id from evaluations e join kernels k on k.digest = e.digest"
            " join individuals i on i.kernel = k.id"
            " where e.purpose = 'certify' and e.status != 'ok'"
        )
        return frozenset(row[0] for row in self._db.execute(query))

    def generations(self) -> list[Generation]:
        """All generations in the order in which they started."""
        query = "select island, number, horizon, migrants, survivors from generations order by seq"
        return [generation_of(*row) for row in self._db.execute(query)]

    def plan(self, island: int, number: int) -> list[Phase]:
        """The phases planned so far for a generation that was started."""
        query = "select plan from generations where island = ? and number = ?"
        (text,) = self._db.execute(query, (island, number)).fetchone()
        return [
            Phase(tuple(Step(name, tuple(parents), slot) for name, parents, slot in steps), seen)
            for seen, steps in json.loads(text)
        ]

    def migrations(self) -> list[Migration]:
        """All copies sent from island to island, in the order of sending."""
        query = "select individual, source, target, sent_in, taken_in from migrations order by seq"
        return [Migration(*row) for row in self._db.execute(query)]

    def calls(self, state: str | None = None, provider: str | None = None) -> Iterator[Call]:
        """All requests to models and people in their order, or those of a state or a provider."""
        clause = "where ifnull(?1, state) = state and ifnull(?2, provider) = provider order by seq"
        for row in self._db.execute(_CALLS + clause, (state, provider)):
            yield self._call(row)

    def call(self, key: str) -> Call | None:
        """The request of that place in the run, if it was made."""
        row = self._db.execute(_CALLS + "where key = ?", (key,)).fetchone()
        return None if row is None else self._call(row)

    def _call(self, row: tuple[Any, ...]) -> Call:
        key, seq, at, author, model, provider, purpose, parents, prompt, schema, *rest = row
        state, reply, finish, served, note, attempts, *usage = rest
        system, *parts = self._parts(prompt)
        form = None if schema is None else json.loads(self._text(schema))
        cost = Usage(*usage)
        answer = None if reply is None else Reply(self._text(reply), cost, served, finish)
        asked = Prompt(system, tuple(parts), purpose, form)
        kin = ids(parents)
        origin = (key, seq, at, author, model, provider)
        return Call(*origin, asked, kin, CallState(state), answer, cost, attempts, note)

    def guessed(self) -> tuple[int, float]:
        """Of what was spent: tokens and dollars of calls whose outcome is unknown, at most."""
        query = "select total(guessed), total(guessed_dollars) from calls"
        tokens, dollars = self._db.execute(query).fetchone()
        return int(tokens), dollars

    def contents_of_answers(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The key of each author's answer, with its table of contents."""
        for key, contents in self._db.execute("select key, contents from answers order by seq"):
            yield key, json.loads(contents)

    def proposals(self) -> list[Proposal]:
        """Every idea that was had, carried out or not, in the order of recording."""
        query = (
            "select p.key, p.place, d.text, d.category, d.author, d.model, p.parent, p.island,"
            " p.generation from proposals p join ideas d on d.id = p.idea order by p.seq"
        )
        return [_proposal(*row) for row in self._db.execute(query)]

    def events(self) -> Iterator[Event]:
        """All that happened beside births and verdicts: starts, stops, bests, faults, devices."""
        query = "select seq, at, kind, subject, detail from events order by seq"
        for seq, at, kind, subject, detail in self._db.execute(query):
            yield Event(seq, at, kind, subject, json.loads(detail))

    def statuses(self) -> dict[str, int]:
        """How many kernels were judged with which status."""
        query = "select status, count(*) from evaluations where purpose = 'search' group by status"
        return dict(self._db.execute(query))

    def spent(self) -> Spent:
        """Evaluations of the search, seconds of running time, tokens, dollars and calls so far."""
        query = "select count(*) from evaluations where purpose = 'search'"
        (count,) = self._db.execute(query).fetchone()
        query = (
            "select total(input + output + reasoning), total(dollars), total(attempts) from calls"
        )
        tokens, dollars, calls = self._db.execute(query).fetchone()
        return Spent(count, self.seconds(), int(tokens), dollars, int(calls))

    def seconds(self) -> float:
        """Running time so far: the sum over all sittings, up to their last record."""
        latest = 0.0
        for table in ("individuals", "evaluations", "events"):
            row = self._db.execute(f"select at from {table} order by seq desc limit 1").fetchone()
            latest = max(latest, row[0] if row else 0.0)
        return latest

    def rows(
        self, query: str, values: Mapping[str, Any] | Sequence[Any] = ()
    ) -> list[tuple[Any, ...]]:
        """The rows of a query of your own over the tables of ``evo.schema``."""
        return self._db.execute(query, values).fetchall()

    def _parts(self, blobs: str) -> tuple[str, ...]:
        return tuple(self._text(blob) for blob in json.loads(blobs))

    def _text(self, blob: int) -> str:
        (data,) = self._db.execute("select data from blobs where id = ?", (blob,)).fetchone()
        return unpacked(data)


def unpacked(data: bytes) -> str:
    """Text from its compressed form in the store."""
    return zlib.decompress(data).decode()


def ids(text: str) -> tuple[str, ...]:
    """Individuals' ids from their JSON list in the store."""
    return tuple(json.loads(text))


def generation_of(
    island: int, number: int, horizon: str, migrants: str, survivors: str | None
) -> Generation:
    """The record of one row of the table ``generations``."""
    alive = None if survivors is None else ids(survivors)
    return Generation(island, number, tuple(json.loads(horizon)), ids(migrants), alive)


def _proposal(
    key: str, place: int, text: str, category: str, author: str, model: str, *rest: Any
) -> Proposal:
    return Proposal(key, place, Idea(text, Category(category), author, model), *rest)


def _individual(row: tuple[Any, ...], baseline: str) -> Individual:
    _, identity, digest, language, flags, source, island, generation, operator, author, *rest = row
    text, category, thinker, thought_with, note, model, base, parents, record = rest
    idea = None if text is None else Idea(text, Category(category), thinker, thought_with)
    birth = Birth(island, generation, operator, author, ids(parents), idea, note, model, base or "")
    kernel = Kernel(unpacked(source), language, tuple(json.loads(flags)))
    individual = Individual(identity, kernel, digest, birth)
    if record is not None:
        individual.judged(decode(Evaluation, unpacked(record)), baseline)
    return individual
