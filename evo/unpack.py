"""Takes in a run that was packed elsewhere; newer work is never overwritten.

A pack is taken in only where it holds everything that the run here holds: one that is older, or
that went another way since, is refused. It is read as data that anybody may have written: only two
members of known names, checked by size, digest, tables and revision before anything is replaced.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
import sqlite3
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cuda_sandbox.errors import UserError
from evo import runs, schema
from evo.pack import MANIFEST, Manifest, PackError, check_name, identity, revision
from evo.store import FILE

LARGEST_MANIFEST = 1 << 16
BLOCK = 1 << 20
SPARE = 1 << 28  # bytes of disk to leave free
# What identifies a record that is written once and never changed
RECORDS = {
    "individuals": "seq, at, id",
    "events": "seq, at, kind, subject, detail",
    "calls": "seq, at, key",
    "migrations": "seq, at, individual, source, target",
    "generations": "seq, island, number",
    "evaluations": "digest, hardware, purpose",  # a verdict may be replaced by a newer one
}


@dataclass(frozen=True, slots=True)
class Taken:
    """What unpacking did: ``how`` is ``new``, ``updated`` or ``same``."""

    folder: Path
    revision: int
    how: str


def unpack(file: Path, name: str | None = None) -> Taken:
    """Take a pack in under ``populations/`` (as run ``name``). Raises PackError, RunBusy."""
    target = runs.populations_dir()
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unpack-", dir=target) as place:
            copy = Path(place) / FILE
            manifest = _extract(file, copy)
            _checked(file, copy, manifest)
            return _take_in(copy, manifest, target / check_name(name or manifest.name))
    except OSError as error:
        raise PackError(f"cannot unpack {file}: {error.strerror or error}") from error


def _extract(file: Path, copy: Path) -> Manifest:
    """Write the pack's database to ``copy``. Only the two known members are ever read."""
    try:
        with tarfile.open(file, "r:gz") as tar:
            return _members(tar, copy)
    except PackError as error:
        raise PackError(f"{file} is not taken in: {error}") from error
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise PackError(f"{file} is no pack of a run, or it is damaged: {error}") from error


def _members(tar: tarfile.TarFile, copy: Path) -> Manifest:
    first, second = tar.next(), tar.next()
    if first is None or second is None or tar.next() is not None:
        raise PackError(f"it must hold {MANIFEST} and {FILE}, and nothing else")
    if [first.name, second.name] != [MANIFEST, FILE] or not (first.isreg() and second.isreg()):
        raise PackError(f"it holds {first.name!r} and {second.name!r}, not {MANIFEST} and {FILE}")
    if first.size > LARGEST_MANIFEST:
        raise PackError(f"its {MANIFEST} has {first.size} bytes")
    manifest = Manifest.read(_reader(tar, first).read())
    if second.size != manifest.size:
        raise PackError(f"its {FILE} has {second.size} bytes, not {manifest.size} as stated")
    free = shutil.disk_usage(copy.parent).free
    if manifest.size > free - SPARE:
        raise PackError(f"it needs {manifest.size} bytes of disk, and {free} are free")
    _copy(_reader(tar, second), copy, manifest)
    return manifest


def _reader(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    reader = tar.extractfile(member)
    assert reader is not None  # it is a regular file
    return reader


def _copy(reader: IO[bytes], copy: Path, manifest: Manifest) -> None:
    digest = hashlib.sha256()
    with copy.open("wb") as file:
        while block := reader.read(BLOCK):
            digest.update(block)
            file.write(block)
    if digest.hexdigest() != manifest.digest:
        raise PackError("its content does not match its digest: it was damaged or altered")


def _checked(file: Path, copy: Path, manifest: Manifest) -> None:
    try:
        _inspect(copy, manifest)
    except (sqlite3.DatabaseError, ValueError, KeyError, TypeError, UserError) as error:
        raise PackError(f"{file} is not taken in: {error}") from error


def _inspect(copy: Path, manifest: Manifest) -> None:
    """Raises PackError unless the database is whole, has our tables and nothing else."""
    with closing(schema.connect(copy, write=True)) as db:
        expected, found = _objects(_fresh()), _objects(db)
        names = sorted({*found, *expected})
        if odd := [name for name in names if found.get(name) != expected.get(name)]:
            raise PackError(f"its database is not a run's: it differs in {', '.join(odd)}")
        (state,) = db.execute("pragma quick_check").fetchone()
        if state != "ok":
            raise PackError(f"its database is damaged: {state}")
        if (revision(db), identity(db)) != (manifest.revision, manifest.run):
            raise PackError(f"its database is not the one that its {MANIFEST} describes")
        db.execute("pragma journal_mode = wal")  # as every run's


def _fresh() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    db.executescript(schema.TABLES)
    return db


def _objects(db: sqlite3.Connection) -> dict[str, tuple[str, str | None]]:
    """Tables, indexes, views and triggers by their names, each with its definition."""
    rows = db.execute("select name, type, sql from sqlite_master")
    return {name: (kind, sql) for name, kind, sql in rows}


def _take_in(copy: Path, manifest: Manifest, folder: Path) -> Taken:
    here = folder / FILE
    with runs.locked(folder):
        if not here.exists():
            copy.replace(here)
            return Taken(folder, manifest.revision, "new")
        try:
            how = _compare(here, copy, manifest, folder.name)
        except sqlite3.DatabaseError as error:
            raise PackError(f"the run in {folder} cannot be read: {error}") from error
        if how == "updated":
            _fold(here)
            copy.replace(here)
        return Taken(folder, manifest.revision, how)


def _compare(here: Path, copy: Path, manifest: Manifest, name: str) -> str:
    """Raises PackError if anything that the run here holds is not in the pack."""
    with _attached(here, copy) as db:
        if identity(db) != manifest.run:
            raise PackError(
                f"another run called {name} is here, begun at another time or on another task: "
                f"take this one in under another name with --as"
            )
        lost, gained = _difference(db, "main", "pack"), _difference(db, "pack", "main")
        ours = revision(db)
    if lost and gained:
        raise PackError(
            f"{name} went on both here and where it was packed: {lost} records are only here, "
            f"{gained} only in the pack. Keep both: take it in under another name with --as"
        )
    if lost:
        raise PackError(
            f"the pack is stale: it is at revision {manifest.revision}, {name} here at revision "
            f"{ours} ({lost} records more); nothing was changed"
        )
    return "updated" if gained or manifest.revision > ours else "same"


@contextmanager
def _attached(here: Path, copy: Path) -> Iterator[sqlite3.Connection]:
    with closing(schema.connect(here, write=True)) as db:
        db.execute("attach database ? as pack", (str(copy),))
        yield db


def _difference(db: sqlite3.Connection, held: str, missing: str) -> int:
    """How many records one database holds that the other lacks."""
    return sum(
        db.execute(
            f"select count(*) from (select {columns} from {held}.{table} "
            f"except select {columns} from {missing}.{table})"
        ).fetchone()[0]
        for table, columns in RECORDS.items()
    )


def _fold(here: Path) -> None:
    """Fold the write-ahead log into the file and remove it: it must not meet the new file."""
    with closing(schema.connect(here, write=True)) as db:
        db.execute("pragma wal_checkpoint(truncate)")
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            here.with_name(here.name + suffix).unlink()
