"""Writes into a run's file: one transaction for all that is written in a turn of the event loop."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from evo import schema
from evo.store import FILE, Store


class Writer(Store):
    """The one writer of a run. ``seq`` numbers everything written; ``at`` is running time in s."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        super().__init__(path, connection)
        latest = " union all ".join(f"select max(seq) as seq from {t}" for t in schema.SEQUENCED)
        (seq,) = connection.execute(f"select max(seq) from ({latest})").fetchone()
        self._seq: int = seq or 0
        self._commit_due = False
        self._began = time.monotonic() - self.seconds()

    @classmethod
    def open(cls, path: Path) -> Self:
        """The run in ``path``, to go on with it; raises StoreError."""
        file = path / FILE if path.is_dir() else path
        return cls(file, schema.connect(file, write=True))

    def close(self) -> None:
        """Commit, leave one plain file behind, and close it."""
        self.commit()
        schema.settle(self._db)
        super().close()

    @property
    def event(self) -> int:
        """The number of the last thing written."""
        return self._seq

    def elapsed(self) -> float:
        """Seconds of running time, over all sittings, until now."""
        return time.monotonic() - self._began

    def pause(self, seconds: float) -> None:
        """Do not count the last ``seconds`` as running time: only people were waited for."""
        self._began += seconds

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write through the connection it yields; what fails is taken back as a whole."""
        if not self._db.in_transaction:
            self._db.execute("begin immediate")
        try:
            yield self._db
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
            self.commit()
            return
        if not self._commit_due:
            self._commit_due = True
            loop.call_soon(self.commit)

    def commit(self) -> None:
        """Put on the disk what was written so far."""
        self._commit_due = False
        if self._db.in_transaction:
            self._db.execute("commit")

    def next(self) -> int:
        """The number of the thing to be written now."""
        self._seq += 1
        return self._seq

    def insert(self, table: str, row: tuple[Any, ...]) -> None:
        """Write a row, within a transaction."""
        self._db.execute(f"insert into {table} values ({', '.join('?' * len(row))})", row)

    def blob(self, text: str) -> int:
        """The number of a text, which is written if it was not there, within a transaction."""
        data = text.encode()
        digest = hashlib.blake2b(data, digest_size=16).digest()
        query = "select id from blobs where digest = ?"
        row = self._db.execute(query, (digest,)).fetchone()
        if row is None:
            query = "insert into blobs (digest, data) values (?, ?) returning id"
            row = self._db.execute(query, (digest, zlib.compress(data, 6))).fetchone()
        return int(row[0])
