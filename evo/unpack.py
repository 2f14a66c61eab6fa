"""Takes in a run that was packed elsewhere; newer work is never overwritten.

Answers of both sides are put together, always. Of the two records the one goes on that holds every
verdict and every paid reply of the other (see :mod:`evo.merging`); where each has some that the
other lacks, nothing is changed. A pack is read as data that anybody may have written: only members
of known names, checked by size, digest, tables and revision before anything is replaced.
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
from evo.merging import Difference, Way, compare
from evo.pack import ANSWERS, MANIFEST, Carried, Manifest, PackError, check_name, identity, revision
from evo.requests.answers import Answers
from evo.requests.record import Told
from evo.store import FILE

MEMBERS = (MANIFEST, FILE, ANSWERS)
LARGEST_MANIFEST = 1 << 16
LARGEST_ANSWERS = 1 << 28
BLOCK = 1 << 20
SPARE = 1 << 28  # bytes of disk to leave free
HOW = {Way.SAME: "same", Way.REPLACE: "updated", Way.KEEP: "kept"}


@dataclass(frozen=True, slots=True)
class Taken:
    """What unpacking did.

    ``how``: ``new``, ``updated``, ``same``, or ``kept`` where the record here went on. ``answers``
    counts those that were not here; ``doubled`` are requests that were answered on both sides.
    """

    folder: Path
    revision: int
    how: str
    answers: int = 0
    doubled: tuple[str, ...] = ()


def unpack(file: Path, name: str | None = None) -> Taken:
    """Take a pack in under ``populations/`` (as run ``name``). Raises PackError, RunBusy."""
    target = runs.populations_dir()
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unpack-", dir=target) as place:
            copy = Path(place) / FILE
            manifest, carried = _extract(file, copy)
            _checked(file, copy, manifest)
            return _take_in(copy, manifest, carried, target / check_name(name or manifest.name))
    except OSError as error:
        raise PackError(f"cannot unpack {file}: {error.strerror or error}") from error


def _extract(file: Path, copy: Path) -> tuple[Manifest, Carried]:
    """Write the pack's database to ``copy``. Only the three known members are ever read."""
    try:
        with tarfile.open(file, "r:gz") as tar:
            return _members(tar, copy)
    except PackError as error:
        raise PackError(f"{file} is not taken in: {error}") from error
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise PackError(f"{file} is no pack of a run, or it is damaged: {error}") from error


def _members(tar: tarfile.TarFile, copy: Path) -> tuple[Manifest, Carried]:
    manifest = Manifest.read(_member(tar, MANIFEST, LARGEST_MANIFEST).read())
    free = shutil.disk_usage(copy.parent).free
    if manifest.size > free - SPARE:
        raise PackError(f"it needs {manifest.size} bytes of disk, and {free} are free")
    _copy(_member(tar, FILE, manifest.size), copy, manifest)
    carried = _carried(_member(tar, ANSWERS, LARGEST_ANSWERS).read(), manifest)
    if (extra := tar.next()) is not None:
        raise PackError(f"it must hold {', '.join(MEMBERS)} and nothing else, not {extra.name!r}")
    return manifest, carried


def _member(tar: tarfile.TarFile, name: str, limit: int) -> IO[bytes]:
    """The next member, which must be the file of that name, of ``limit`` bytes at most."""
    member = tar.next()
    if member is None or member.name != name or not member.isreg():
        found = "nothing" if member is None else repr(member.name)
        raise PackError(f"it must hold {', '.join(MEMBERS)}: {found} is in place of {name}")
    if member.size > limit:
        raise PackError(f"its {name} has {member.size} bytes, more than {limit}")
    reader = tar.extractfile(member)
    assert reader is not None  # it is a regular file
    return reader


def _carried(text: bytes, manifest: Manifest) -> Carried:
    if hashlib.sha256(text).hexdigest() != manifest.answers_digest:
        raise PackError(f"its {ANSWERS} does not match its digest: it was damaged or altered")
    return Carried.read(text)


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


def _take_in(copy: Path, manifest: Manifest, carried: Carried, folder: Path) -> Taken:
    """Answers first: whoever is killed after that loses none, and may take the pack in again."""
    here = folder / FILE
    with runs.locked(folder):
        if not here.exists():
            _merge(folder, carried)
            copy.replace(here)
            return Taken(folder, manifest.revision, "new", len(carried.answers))
        found, ours = _compare(here, copy, manifest, folder.name)
        known = Carried.of(folder).answers
        if found.way is Way.CONFLICT:
            raise PackError(_both(folder.name, found))
        if found.way is Way.KEEP and not set(carried.answers) - set(known):
            raise PackError(_stale(folder.name, found, manifest, ours))
        new = _merge(folder, carried)
        doubled = sorted({one.request for one in new} & {one.request for one in known})
        if found.way is Way.REPLACE:
            _fold(here)
            copy.replace(here)
            ours = manifest.revision
        return Taken(folder, ours, HOW[found.way], len(new), tuple(doubled))


def _merge(folder: Path, carried: Carried) -> list[Told]:
    if not (carried.answers or carried.leases):
        return []
    with Answers.open(folder) as answers:
        return answers.merge(carried.answers, carried.leases)


def _compare(here: Path, copy: Path, manifest: Manifest, name: str) -> tuple[Difference, int]:
    """The difference to the run here, and that one's revision. Raises PackError."""
    try:
        with _attached(here, copy) as db:
            if identity(db) != manifest.run:
                raise PackError(
                    f"another run called {name} is here, begun at another time or on another task: "
                    f"take this one in under another name with --as"
                )
            return compare(db), revision(db)
    except sqlite3.DatabaseError as error:
        raise PackError(f"the run in {here.parent} cannot be read: {error}") from error


def _both(name: str, found: Difference) -> str:
    return (
        f"{name} went on both here and where it was packed: {found.here} records are only here, "
        f"{found.there} only in the pack, verdicts or paid replies among both; nothing was "
        f"changed. Keep both: take it in under another name with --as"
    )


def _stale(name: str, found: Difference, manifest: Manifest, ours: int) -> str:
    return (
        f"the pack is stale: it is at revision {manifest.revision}, {name} here at revision "
        f"{ours} ({found.here} records more), and it brings no new answer; nothing was changed"
    )


@contextmanager
def _attached(here: Path, copy: Path) -> Iterator[sqlite3.Connection]:
    with closing(schema.connect(here, write=True)) as db:
        db.execute("attach database ? as pack", (str(copy),))
        yield db


def _fold(here: Path) -> None:
    """Fold the write-ahead log into the file and remove it: it must not meet the new file."""
    with closing(schema.connect(here, write=True)) as db:
        db.execute("pragma wal_checkpoint(truncate)")
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            here.with_name(here.name + suffix).unlink()
