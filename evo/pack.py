"""A run as one file to carry to another machine.

A pack is a tar.gz of ``manifest.json``, ``run.sqlite`` (a consistent copy by SQLite's own backup,
so that a run that is going on may be packed too) and ``answers.json``: what people and agents have
told it, used or not yet, and the leases that have not expired. The ``revision`` is the number of
the last thing that the run recorded, which only grows. :mod:`evo.unpack` takes a pack in.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sqlite3
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Self

from cuda_sandbox.errors import UserError
from evo import runs, schema
from evo.requests.answers import FILE as ANSWERS_FILE
from evo.requests.answers import Answers
from evo.requests.record import Lease, RequestError, Told
from evo.store import FILE

MANIFEST = "manifest.json"
ANSWERS = "answers.json"
FORMAT = 2
SEQUENCED = schema.SEQUENCED


class PackError(UserError):
    """The file is no pack, or it must not be taken in."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a pack says of itself. ``digest`` and ``size`` are those of its ``run.sqlite``.

    ``told`` counts its answers; ``answers_digest`` is that of ``answers.json``.
    """

    format: int
    name: str
    run: str
    revision: int
    digest: str
    size: int
    told: int
    answers_digest: str

    @classmethod
    def read(cls, text: bytes) -> Self:
        """From JSON. Raises PackError if it is not one of ours, or its name is no folder name."""
        try:
            fields = json.loads(text)
            if fields["format"] != FORMAT:
                raise PackError(f"it has format {fields['format']}; this kernelevo reads {FORMAT}")
            manifest = cls(**fields)
        except (ValueError, TypeError, KeyError) as error:
            raise PackError(f"its {MANIFEST} cannot be read: {error}") from error
        if not isinstance(manifest.size, int) or not isinstance(manifest.digest, str):
            raise PackError(f"its {MANIFEST} has fields of the wrong type")
        check_name(manifest.name)
        return manifest

    @property
    def file_name(self) -> str:
        """What the pack is called unless it is named: a run's state and answers in short."""
        told = f"-a{self.told}" if self.told else ""
        return f"{self.name}-r{self.revision}{told}.tar.gz"


@dataclass(frozen=True, slots=True)
class Carried:
    """What ``answers.json`` holds."""

    answers: tuple[Told, ...] = ()
    leases: tuple[Lease, ...] = ()

    @classmethod
    def of(cls, folder: Path) -> Self:
        """What the run in ``folder`` was told, and who has taken what."""
        if not (folder / ANSWERS_FILE).exists():
            return cls()
        with Answers.open(folder) as answers:
            return cls(tuple(answers.all()), tuple(answers.leases().values()))

    @classmethod
    def read(cls, text: bytes) -> Self:
        """From JSON that anybody may have written. Raises PackError if it is not ours."""
        try:
            data = json.loads(text)
            answers = tuple(Told(**_fields(row, str, str, str, str)) for row in data["answers"])
            leases = tuple(Lease(**_fields(row, str, str, float)) for row in data["leases"])
        except (ValueError, TypeError, KeyError, AttributeError, RequestError) as error:
            raise PackError(f"its {ANSWERS} cannot be read: {error}") from error
        return cls(answers, leases)

    def json(self) -> bytes:
        """The same answers and leases give the same bytes."""
        return (json.dumps(asdict(self), indent=1) + "\n").encode()


def _fields(row: Mapping[str, Any], *kinds: type) -> dict[str, Any]:
    found = [type(value) for value in row.values()]
    if found != list(kinds):
        raise ValueError(
            f"a row has values of the types {', '.join(one.__name__ for one in found)}"
        )
    return dict(row)


def check_name(name: str) -> str:
    """A run's name that is safe as a folder's. Raises PackError."""
    if fault := runs.name_fault(name):
        raise PackError(fault)
    return name


def revision(db: sqlite3.Connection, schema_name: str = "main") -> int:
    """The number of the last thing recorded; 0 for an empty run."""
    latest = " union all ".join(f"select max(seq) as seq from {schema_name}.{t}" for t in SEQUENCED)
    (number,) = db.execute(f"select max(seq) from ({latest})").fetchone()
    return int(number or 0)


def identity(db: sqlite3.Connection) -> str:
    """Tells runs apart, the same for every copy of one: when it was begun, on which task."""
    (text,) = db.execute("select value from meta where key = 'info'").fetchone()
    info = json.loads(text)
    origin = json.dumps([info["created"], info["task"]["source"]])
    return hashlib.sha256(origin.encode()).hexdigest()[:16]


def pack(folder: Path, output: Path | None = None, *, force: bool = False) -> tuple[Path, Manifest]:
    """Write the run in ``folder`` into one file, ``NAME-rREVISION.tar.gz`` unless named."""
    name = check_name(folder.resolve().name)
    with tempfile.TemporaryDirectory(prefix="kernelevo-") as place:
        copy = Path(place) / FILE
        _backup(folder / FILE, copy)
        carried = Carried.of(folder)  # after the run: so it holds every answer that the run used
        manifest = _manifest(copy, name, carried)
        target = output or Path(manifest.file_name)
        if target.exists() and not force:
            raise PackError(f"{target} is there already: name another file with -o, or say --force")
        try:
            _write(target, copy, manifest, carried.json())
        except OSError as error:
            raise PackError(f"cannot write {target}: {error.strerror}") from error
    return target, manifest


def _backup(source: Path, copy: Path) -> None:
    with closing(schema.connect(source)) as db, closing(sqlite3.connect(copy)) as target:
        db.backup(target)
        target.execute("pragma journal_mode = delete")  # one file is all


def _manifest(copy: Path, name: str, carried: Carried) -> Manifest:
    with closing(schema.connect(copy)) as db:
        number, run = revision(db), identity(db)
    with copy.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    told, told_digest = len(carried.answers), hashlib.sha256(carried.json()).hexdigest()
    return Manifest(FORMAT, name, run, number, digest, copy.stat().st_size, told, told_digest)


def _write(target: Path, copy: Path, manifest: Manifest, answers: bytes) -> None:
    """The same run at the same revision with the same answers gives the same bytes."""
    part = target.with_name(f".{target.name}.part")
    try:
        with (
            part.open("wb") as raw,
            gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as zipped,
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            text = (json.dumps(asdict(manifest), indent=1) + "\n").encode()
            _add(tar, MANIFEST, io.BytesIO(text), len(text))
            with copy.open("rb") as file:
                _add(tar, FILE, file, manifest.size)
            _add(tar, ANSWERS, io.BytesIO(answers), len(answers))
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _add(tar: tarfile.TarFile, name: str, content: IO[bytes], size: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    tar.addfile(member, content)
