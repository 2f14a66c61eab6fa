"""The tables of a run's file, and the check that it is one of ours and of this version."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from cuda_sandbox.errors import UserError

VERSION = 2
APPLICATION = 0x6B65766F  # "kevo", in the file's header

TABLES = """
create table meta (key text primary key, value text not null) without rowid;
create table blobs (id integer primary key, digest blob not null unique, data blob not null);
create table kernels (
    id integer primary key, digest text not null, language text not null, flags text not null,
    source integer not null references blobs, unique (digest, source)
);
create table ideas (
    id integer primary key, text text not null, category text not null, author text not null,
    model text not null, unique (text, category, author, model)
);
create table proposals (
    seq integer primary key, at real not null, island integer not null,
    generation integer not null, key text not null, place integer not null,
    idea integer not null references ideas, parent text not null
);
create index proposals_by_place on proposals (island, generation);
create table individuals (
    seq integer primary key, at real not null, id text not null unique,
    kernel integer not null references kernels, island integer not null,
    generation integer not null, operator text not null, author text not null,
    idea integer references ideas, note text not null, model text not null,
    base integer references individuals
);
create index individuals_by_base on individuals (base);
create index individuals_by_kernel on individuals (kernel);
create index individuals_by_place on individuals (island, generation);
create table parents (
    child integer not null references individuals, place integer not null,
    parent integer not null references individuals, primary key (child, place)
) without rowid;
create index parents_by_parent on parents (parent);
create table evaluations (
    seq integer primary key, at real not null, digest text not null, hardware text not null,
    purpose text not null, status text not null, speedup real, record blob not null,
    unique (digest, hardware, purpose)
);
create table answers (
    key text primary key, seq integer not null, at real not null, author text not null,
    contents text not null, sources text not null
) without rowid;
create table calls (
    key text primary key, seq integer not null, at real not null, author text not null,
    model text not null, provider text not null, purpose text not null, digest text not null,
    parents text not null, prompt text not null, schema integer references blobs,
    state text not null, reply integer references blobs, finish text not null,
    served text not null, note text not null, held text not null, attempts integer not null,
    input integer not null, cached integer not null, output integer not null,
    reasoning integer not null, dollars real not null, guessed integer not null,
    guessed_dollars real not null, closed real
) without rowid;
create index calls_by_digest on calls (digest);
create index calls_by_state on calls (state);
create table migrations (
    seq integer primary key, at real not null, individual text not null, source integer not null,
    target integer not null, sent_in integer not null, taken_in integer
);
create index migrations_by_target on migrations (target, taken_in);
create table generations (
    island integer not null, number integer not null, seq integer not null,
    horizon text not null, migrants text not null, plan text not null, survivors text,
    primary key (island, number)
) without rowid;
create table events (
    seq integer primary key, at real not null, kind text not null, subject text not null,
    detail text not null
);
"""

SEQUENCED = (  # the tables whose rows are numbered, all together
    *("individuals", "evaluations", "answers", "calls", "proposals"),
    *("migrations", "generations", "events"),
)


class StoreError(UserError):
    """A run's file cannot be used; the message says which, why and what to do."""


def create(path: Path) -> sqlite3.Connection:
    """A new file with empty tables; raises StoreError if ``path`` exists."""
    if path.exists():
        raise StoreError(f"{path} exists already")
    connection = _connect(f"file:{_quoted(path)}?mode=rwc")
    connection.execute("pragma journal_mode = wal")
    connection.executescript(
        f"begin; pragma application_id = {APPLICATION}; pragma user_version = {VERSION};"
        f"{TABLES} commit;"
    )
    return connection


def connect(path: Path, *, write: bool = False) -> sqlite3.Connection:
    """Open an existing file and check what it is; raises StoreError."""
    if not path.is_file():
        raise StoreError(f"{path} does not exist: there is no run here")
    try:
        connection = _open(path, write)
        _check(path, connection)
    except sqlite3.DatabaseError as error:
        raise StoreError(f"{path} cannot be read as a run: {error}") from error
    return connection


def settle(connection: sqlite3.Connection) -> None:
    """Leave a single plain file behind, if nobody else is reading it just now."""
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.execute("pragma busy_timeout = 100")
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("pragma journal_mode = delete")


def _open(path: Path, write: bool) -> sqlite3.Connection:
    if write:
        connection = _connect(f"file:{_quoted(path)}?mode=rw")
        connection.execute("pragma journal_mode = wal")
        return connection
    try:
        connection = _connect(f"file:{_quoted(path)}?mode=ro")
        connection.execute("select count(*) from sqlite_master").fetchone()
    except sqlite3.OperationalError:
        # in a folder that we may not write to, WAL's side files cannot be made
        connection = _connect(f"file:{_quoted(path)}?immutable=1")
    return connection


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30.0)
    # a process that is killed loses nothing in WAL; only a power failure may cost the last commits
    connection.execute("pragma synchronous = normal")
    connection.execute("pragma cache_size = -16000")  # 16 MB: what a long run reads again and again
    return connection


def _quoted(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _check(path: Path, connection: sqlite3.Connection) -> None:
    (application,) = connection.execute("pragma application_id").fetchone()
    (version,) = connection.execute("pragma user_version").fetchone()
    if application != APPLICATION:
        raise StoreError(f"{path} is no run of kernelevo: it is another program's SQLite file")
    if version != VERSION:
        raise StoreError(
            f"{path} has format {version}, this kernelevo reads format {VERSION}: use the version "
            f"of kernelevo that made it, or begin another run from its YAML file with --new"
        )
