"""One timing slot per device: while a CPU kernel is timed, nothing of ours compiles.

Two lock files. Compiling holds the main lock shared, timing holds it exclusively. Whoever wants
either passes the gate first, and a timer keeps the gate while it waits: so a stream of compilations
cannot starve it. The kernel drops flock locks with their process, so ``kill -9`` leaves nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def timing_slot(device: str = "cpu") -> Iterator[None]:
    """Hold the timing slot of ``device``; waits until other timers there are done.

    On ``cpu`` it waits for running compilations too. A GPU (by its UUID, or any other name) has a
    slot of its own: what happens on the host's cores does not move its clock.
    """
    if device != "cpu":
        with _locked(device, fcntl.LOCK_EX):
            yield
        return
    with _locked("gate", fcntl.LOCK_EX), _locked("slot", fcntl.LOCK_EX):
        yield


@contextlib.contextmanager
def compile_slot() -> Iterator[None]:
    """Compile while nobody is timing; waits until nobody is, or wants to."""
    with contextlib.ExitStack() as stack:
        with _locked("gate", fcntl.LOCK_SH):
            stack.enter_context(_locked("slot", fcntl.LOCK_SH))
        yield


@contextlib.contextmanager
def _locked(name: str, operation: int) -> Iterator[None]:
    # A descriptor of its own for every holder: threads of one process exclude each other too.
    descriptor = os.open(_folder() / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, operation)
        yield
    finally:
        os.close(descriptor)


def _folder() -> Path:
    """A folder of this user on this host (a home may be shared by hosts, so not the cache)."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    base = Path(runtime) if runtime and Path(runtime).is_dir() else Path(tempfile.gettempdir())
    folder = base / f"kernelevo-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to someone else; remove it or set XDG_RUNTIME_DIR")
    return folder
