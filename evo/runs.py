"""Where runs live: folders under ``populations/``, found by name, locked while they are run."""

from __future__ import annotations

import difflib
import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cuda_sandbox.errors import UserError
from evo.store import FILE

LOCK = "run.lock"
RESERVED = ("archive",)  # folders under populations/ that are no runs
PATIENCE_S = 0.5  # somebody may be looking whether the run is going on


class UnknownRun(UserError):
    """There is no such run; the message names the nearest."""


class RunBusy(UserError):
    """Another process is at it."""


def name_fault(name: object) -> str:
    """Why ``name`` cannot be a run's; empty if it can. It comes from people, and from packs."""
    fits = isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}", name)
    if fits and name not in RESERVED:
        return ""
    return (
        f"{name!r} cannot be a run's name: use letters, digits, '.', '_', '+' and '-', "
        f"a letter or a digit first, and none of: {', '.join(RESERVED)}"
    )


def populations_dir() -> Path:
    """The folder of all runs: ``populations`` where the command was started."""
    return Path("populations")


def names() -> list[str]:
    """All runs under ``populations/``, by name."""
    return sorted(file.parent.name for file in populations_dir().glob(f"*/{FILE}"))


def resolve(run: str | Path) -> Path:
    """The folder of a run, given its name or a path to it (or to its file). Raises UnknownRun."""
    for folder in (populations_dir() / run, Path(run), Path(run).parent):
        if (folder / FILE).is_file() and Path(run).name in (folder.name, FILE, "."):
            return folder
    near = difflib.get_close_matches(str(run), names(), n=3, cutoff=0.4) or names()[:10]
    hint = f"there are: {', '.join(near)}" if near else "there are none yet"
    raise UnknownRun(f"no run {str(run)!r} under {populations_dir()}/, nor at that path; {hint}")


def free_name(name: str) -> str:
    """``name``, or the first of ``name-2``, ``name-3``, ... that no run has."""
    number, candidate = 1, name
    while (populations_dir() / candidate).exists():
        number += 1
        candidate = f"{name}-{number}"
    return candidate


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a run for oneself; the kernel lets go of it if we are killed. Raises RunBusy."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _lock(descriptor, PATIENCE_S):
            raise RunBusy(
                f"{folder.name} is being run by another process: wait for it, stop it with "
                f"Ctrl-C, or start another run with --new"
            )
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        else:
            return True


def in_use(folder: Path) -> bool:
    """Whether a process is at this run now."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
