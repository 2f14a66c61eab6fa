"""The file of leases and answers beside a run's record.

It is SQLite with a rollback journal and full synchronisation: what was told is on the disk when
``tell`` returns, and one plain file is all there is. The run only reads it, and never waits for it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from evo.requests.record import LONGEST_LEASE_MINUTES, Lease, RequestError, Told

FILE = "answers.sqlite"
VERSION = 1
APPLICATION = 0x6B65616E  # "kean", in the file's header
PATIENCE_S = 30.0

TABLES = """
create table answers (
    seq integer primary key, request text not null, text text not null, by text not null,
    at text not null, unique (request, text)
);
create table leases (request text primary key, by text not null, until real not null) without rowid;
"""


class Answers:
    """Leases and answers. Use it as a context manager."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    @classmethod
    def open(cls, folder: Path, patience_s: float = PATIENCE_S) -> Self:
        """Those of the run in ``folder``; the file is made if it is not there yet.

        ``patience_s``: how long to wait where somebody else is writing, from now on.
        """
        file = folder / FILE
        try:
            db = sqlite3.connect(file, isolation_level=None, timeout=PATIENCE_S)
            _prepare(db, file)
            db.execute(f"pragma busy_timeout = {int(1000 * patience_s)}")
        except sqlite3.DatabaseError as error:
            raise RequestError(f"{file} cannot be used: {error}") from error
        return cls(db)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def told(self, request: str) -> list[Told]:
        """Answers to a request, the one that counts first; more than one came from two machines."""
        query = "select request, text, by, at from answers where request = ? order by at, text"
        return [Told(*row) for row in self._db.execute(query, (request,))]

    def first(self, requests: Collection[str]) -> dict[str, Told]:
        """The answer that counts to each of ``requests`` that has one."""
        return {one: told[0] for one in requests if (told := self.told(one))}

    def all(self) -> list[Told]:
        """All answers; of several to one request the one told first comes first."""
        query = "select request, text, by, at from answers order by at, text"
        return [Told(*row) for row in self._db.execute(query)]

    def leases(self) -> dict[str, Lease]:
        """The leases that have not expired, by request."""
        query = "select request, by, until from leases where until > ?"
        rows = self._db.execute(query, (time.time(),))
        return {row[0]: Lease(*row) for row in rows}

    def take(self, wanted: Iterable[str], by: str, minutes: float) -> Lease | None:
        """Lease to ``by`` the first of ``wanted`` that is neither answered nor anybody else's.

        What ``by`` holds already comes before everything else, and is renewed.
        """
        with self._transaction():
            held, answered = self.leases(), self._answered()
            left = [one for one in wanted if one not in answered]
            mine = [one for one in left if one in held and held[one].by == by]
            free = [one for one in left if one not in held]
            if not (mine or free):
                return None
            lease = Lease((mine or free)[0], by, time.time() + 60 * minutes)
            self._lease(lease)
            return lease

    def give_back(self, request: str, by: str) -> None:
        """End a lease of ``by``, if it holds one."""
        query = "delete from leases where request = ? and by = ?"
        self._db.execute(query, (request, by))

    def refuse(self, request: str, by: str) -> None:
        """Raises RequestError if there is an answer already, or if it is another's to give."""
        if earlier := self.told(request):
            raise RequestError(_answered_already(earlier[0]))
        lease = self.leases().get(request)
        if lease is not None and lease.by != by:
            raise RequestError(
                f"request {request} is taken by {lease.by} until {lease.ends}: answer another, "
                f"or wait until then. Whoever is {lease.by} says so with --by"
            )

    def tell(self, request: str, text: str, by: str) -> Told:
        """Take an answer in. Raises as ``refuse`` does, but not if the same was told before."""
        with self._transaction():
            for earlier in self.told(request):
                if (earlier.text, earlier.by) == (text, by):
                    return earlier  # whoever tells it again did not hear that it was taken in
            self.refuse(request, by)
            told = Told(request, text, by, datetime.now(UTC).isoformat(timespec="microseconds"))
            self._add(told)
            self._db.execute("delete from leases where request = ?", (request,))
            return told

    def merge(self, answers: Collection[Told], leases: Iterable[Lease]) -> list[Told]:
        """Add what another machine was told and leased; the answers that were not here."""
        with self._transaction():
            new = [one for one in answers if self._add(one)]
            held, now = self.leases(), time.time()
            latest = now + 60 * LONGEST_LEASE_MINUTES
            for lease in leases:
                if lease.request not in held and now < lease.until <= latest:
                    self._lease(lease)
            return new

    def _lease(self, lease: Lease) -> None:
        self._db.execute("insert or replace into leases values (?, ?, ?)", astuple(lease))

    def _answered(self) -> set[str]:
        return {row[0] for row in self._db.execute("select distinct request from answers")}

    def _add(self, told: Told) -> bool:
        query = "insert or ignore into answers (request, text, by, at) values (?, ?, ?, ?)"
        return self._db.execute(query, astuple(told)).rowcount == 1

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")


def _prepare(db: sqlite3.Connection, file: Path) -> None:
    """Make the tables of a new file. Raises RequestError where it is none of ours."""
    db.execute("pragma synchronous = extra")
    if _version(db) == (0, 0):
        db.execute("begin immediate")
        if _version(db) == (0, 0):  # nobody was faster
            for statement in filter(str.strip, TABLES.split(";")):
                db.execute(statement)
            db.execute(f"pragma application_id = {APPLICATION}")
            db.execute(f"pragma user_version = {VERSION}")
        db.execute("commit")
    if _version(db) != (APPLICATION, VERSION):
        raise RequestError(f"{file} is not of this version of kernelevo, or no file of its kind")


def _version(db: sqlite3.Connection) -> tuple[int, int]:
    (application,) = db.execute("pragma application_id").fetchone()
    (version,) = db.execute("pragma user_version").fetchone()
    return application, version


def _answered_already(told: Told) -> str:
    who = f" by {told.by}" if told.by else ""
    return f"request {told.request} was answered{who} at {told.at[:19]}Z: answers are not replaced"
