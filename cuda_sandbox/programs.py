"""Our own programs that run in jails: built once, with the libraries that they need."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cuda_sandbox.cache import replacing
from cuda_sandbox.isolation import Mount

WORKER_SOURCES = Path(__file__).parent / "worker"


@dataclass(frozen=True, slots=True)
class Program:
    """A worker program of ours and what it needs in its jail.

    ``bounds_memory``: its address space is limited. ``writable`` are device nodes it may write to.
    The program is seen as ``inside``; ``command`` starts it where it does not start itself, and
    ``start_s`` is what it needs for its own start, before any candidate's.
    """

    path: Path
    mounts: tuple[Mount, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    proc: bool = False
    bounds_memory: bool = True
    writable: tuple[str, ...] = ()
    flush_bytes: int = 0
    inside: str = "/worker"
    command: tuple[str, ...] = ()
    start_s: float = 0.0


def build(name: str, sources: Sequence[str], command: Sequence[str], cache: Path) -> Path:
    """Compile one of our own programs into the cache, once per content and command.

    ``sources`` are files of ``worker/``, the first of them the translation unit.

    Raises:
        RuntimeError: the compiler failed; the message has its first lines.
    """
    digest = hashlib.sha256("\0".join(command).encode())
    for source in sources:
        digest.update((WORKER_SOURCES / source).read_bytes())
    target = cache / "workers" / f"{name}-{digest.hexdigest()[:24]}"
    if not target.exists():
        with only_one(target.with_suffix(".lock")):
            if not target.exists():
                _compile(WORKER_SOURCES / sources[0], command, target)
    return target


def _compile(source: Path, command: Sequence[str], target: Path) -> None:
    with replacing(target) as part:
        line = [*command, str(source), "-o", str(part)]
        done = subprocess.run(line, capture_output=True, timeout=300, check=False)
        if done.returncode:
            text = (done.stderr + done.stdout).decode("utf-8", "replace")[:2000]
            raise RuntimeError(f"our {source.name} does not compile here: {text}")
        part.chmod(0o755)


class only_one:  # noqa: N801 - a context manager reads as a verb
    """Hold a lock file; another process that wants to build the same waits."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._descriptor = -1

    def __enter__(self) -> None:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


@functools.cache
def libraries(program: Path) -> tuple[Mount, ...]:
    """The loader and shared libraries of a program of ours (never of a candidate), as mounts."""
    text = subprocess.run(
        ["ldd", str(program)], capture_output=True, text=True, timeout=30, check=True
    ).stdout
    paths = re.findall(r"(?:=>\s+|^\s*)(/\S+)\s+\(0x", text, re.MULTILINE)
    return tuple(Mount(Path(path).resolve(), path) for path in paths)


def search_path(mounts: Iterable[Mount]) -> str:
    """LD_LIBRARY_PATH for mounted libraries: the jail has no ld.so.cache."""
    return ":".join(dict.fromkeys(str(Path(mount.inside).parent) for mount in mounts))
