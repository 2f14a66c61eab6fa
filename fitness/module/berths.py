"""Processes that wait for a module: they have imported PyTorch, which takes longer than a verdict.

Nothing of a candidate's is in them, no device is open and the jail is not shut yet: all that comes
with the first request. What a process sees in place of a module's files is a folder of its own,
empty until it is given a module.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from cuda_sandbox import isolation
from cuda_sandbox.cache import cache_dir
from cuda_sandbox.process import Launch, Process, start
from fitness.module.building import Folder
from fitness.module.jail import Place, worker_program

_MOST = 4
_CORES_EACH = 4
_GRACE_S = 60.0


def spare(kind: str) -> int:
    """How many may get ready beside a kernel that is judged on this kind of device.

    None beside one that itself runs on the CPU, nor where cores are few.
    """
    cores = len(os.sched_getaffinity(0))
    return min(_MOST, cores // _CORES_EACH) if kind == "cuda" else 0


class Berth:
    """One process and its folder. Its end follows that of the calling thread."""

    def __init__(self, place: Place, cpus: Sequence[int]) -> None:
        home = cache_dir() / "berths"
        home.mkdir(parents=True, exist_ok=True)
        _clear(home)
        self._folder = Folder(Path(tempfile.mkdtemp(dir=home)))
        self._lock = _locked(self._folder)
        try:
            for path in (self._folder.told, self._folder.built):
                path.mkdir()
            program = worker_program(place, self._folder.built, cache_dir())
            self.process: Process = start(Launch(program, self._folder.told, cpus, 0))
        except BaseException:
            self._leave()
            raise

    def board(self, folder: Folder) -> Process:
        """The process, with what lies in ``folder`` before its eyes."""
        pairs = ((folder.told, self._folder.told), (folder.built, self._folder.built))
        for source, target in pairs:
            # Links stay links: one that a candidate left must not be followed out here.
            shutil.copytree(
                *(source, target), symlinks=True, copy_function=_link, dirs_exist_ok=True
            )
        return self.process

    def close(self) -> None:
        """End the process; may be called twice."""
        self.process.kill()
        self._leave()

    def _leave(self) -> None:
        shutil.rmtree(self._folder.path, ignore_errors=True)
        self._lock.close()


class Berths:
    """Keeps ``most`` processes waiting for each kind of place; a context that ends them.

    None at all where processes have no mounts of their own: extensions that were built know the
    paths of their folder.
    """

    def __init__(self, most: int) -> None:
        self._most = 0 if isolation.namespaces_missing() else most
        self._waiting: dict[tuple[Place, tuple[int, ...]], deque[Berth]] = {}

    def __enter__(self) -> Berths:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fill(self, place: Place, threads: int | None) -> None:
        """Start what is lacking for workers of ``place`` with so many CPUs."""
        self._fill(place, tuple(sorted(os.sched_getaffinity(0))[:threads]))

    def take(self, place: Place, cpus: Sequence[int]) -> Berth | None:
        """The one that has waited longest, if any waits; another is started in its stead."""
        waiting = self._fill(place, tuple(cpus))
        taken = waiting.popleft() if waiting else None
        self._fill(place, tuple(cpus))
        return taken

    def close(self) -> None:
        """End all that wait."""
        for waiting in self._waiting.values():
            while waiting:
                waiting.pop().close()

    def _fill(self, place: Place, cpus: tuple[int, ...]) -> deque[Berth]:
        waiting = self._waiting.setdefault((place, cpus), deque())
        for berth in [one for one in waiting if not one.process.alive()]:
            waiting.remove(berth)
            berth.close()
        while len(waiting) < self._most:
            waiting.append(Berth(place, cpus))
        return waiting


def _link(source: str, target: str) -> None:
    """The same file under another name; a copy where the file system has no such thing."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _locked(folder: Folder) -> IO[bytes]:
    """An open file that says that the folder is in use. Raises BlockingIOError if it is."""
    file = (folder.path / "lock").open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise
    return file


def _clear(home: Path) -> None:
    """Remove what was left behind by those that were killed."""
    for path in home.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _GRACE_S:  # it may not be locked yet
                _locked(Folder(path)).close()
                shutil.rmtree(path)
