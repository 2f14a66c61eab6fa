"""The user's cache folder: compiled objects, our worker programs, and their size limit."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cuda_sandbox.errors import UserError


class BadLimit(UserError, ValueError):
    """KERNELEVO_CACHE_MB holds no size."""


DEFAULT_LIMIT_BYTES = 2 << 30
_GRACE_S = 600.0  # what was used this recently is not evicted: a worker may be about to load it
_PART = ".part-"  # unfinished writes; leftovers of a killed process are swept after the grace time


def cache_dir() -> Path:
    """KERNELEVO_CACHE, else XDG_CACHE_HOME/kernelevo, else ~/.cache/kernelevo (not created)."""
    if own := os.environ.get("KERNELEVO_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kernelevo"


def limit_bytes() -> int:
    """The size limit of compiled objects: KERNELEVO_CACHE_MB, else 2 GiB.

    Raises:
        BadLimit: the variable holds no positive whole number.
    """
    text = os.environ.get("KERNELEVO_CACHE_MB", "")
    if not text:
        return DEFAULT_LIMIT_BYTES
    if not text.isdecimal() or int(text) == 0:
        raise BadLimit(f"KERNELEVO_CACHE_MB must be a size in MB such as 2048, not {text!r}")
    return int(text) << 20


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A top-level folder of the cache: its name, number of files and bytes."""

    name: str
    files: int
    bytes: int


def entries(root: Path | None = None) -> tuple[CacheEntry, ...]:
    """What the cache holds, by folder, in the order of names."""
    root = root or cache_dir()
    folders = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    return tuple(_measure(folder) for folder in folders)


def clear(root: Path | None = None, name: str | None = None) -> int:
    """Remove one folder of the cache, or all; returns the bytes that were freed.

    Raises:
        ValueError: the cache has no folder of that name.
    """
    root = root or cache_dir()
    found = {entry.name: entry for entry in entries(root)}
    if name is not None and name not in found:
        raise ValueError(f"the cache holds no {name!r}; it has: {', '.join(found) or 'nothing'}")
    chosen = [found[name]] if name is not None else list(found.values())
    for entry in chosen:
        shutil.rmtree(root / entry.name, ignore_errors=True)
    return sum(entry.bytes for entry in chosen)


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path to write to, which becomes ``target`` in one step when the block ends well.

    A reader sees the old file or the new one, also when the writer is killed in between.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=_PART, dir=target.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def write_json(target: Path, value: object) -> None:
    """Write ``value`` so that a reader never sees half a file. Raises OSError."""
    with replacing(target) as part:
        part.write_text(json.dumps(value, indent=1), encoding="utf-8")


def touch(path: Path) -> None:
    """Note that a file was used now: the least recently used go first."""
    with contextlib.suppress(FileNotFoundError):
        os.utime(path)


def evict(folder: Path, limit: int) -> int:
    """Delete the least recently used files of ``folder`` until it fits into ``limit`` bytes.

    Returns the number of files deleted. Files used within the last ten minutes stay.
    """
    found = sorted(_files(folder), key=lambda item: item[1].st_mtime)
    total = sum(status.st_size for _, status in found)
    deadline = time.time() - _GRACE_S
    deleted = 0
    for path, status in found:
        if status.st_mtime >= deadline:
            break
        if total > limit or path.name.startswith(_PART):
            path.unlink(missing_ok=True)
            total -= status.st_size
            deleted += 1
    return deleted


def _measure(folder: Path) -> CacheEntry:
    sizes = [status.st_size for _, status in _files(folder)]
    return CacheEntry(folder.name, len(sizes), sum(sizes))


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """All files under a folder with their status; what vanishes meanwhile is left out."""
    for base, _, names in os.walk(folder):
        for name in names:
            path = Path(base, name)
            with contextlib.suppress(FileNotFoundError):
                yield path, path.lstat()
