"""Child processes of ours: where they import us from, and waiting for them without polling."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
# in the name of a variable: what it holds is nobody's business but ours
SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "AUTH")


def import_path() -> str:
    """PYTHONPATH for a Python child that is to import these packages, as they are here."""
    root = str(Path(__file__).resolve().parents[1])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))


def is_secret(name: str) -> bool:
    """Whether an environment variable is called like one that holds a key."""
    return any(word in name.upper() for word in SECRETS)


def environment(**more: str) -> dict[str, str]:
    """For a Python child of ours: our environment without secrets, our packages, and ``more``."""
    kept = {name: value for name, value in os.environ.items() if not is_secret(name)}
    return {**kept, "PYTHONPATH": import_path(), **more}


def die_with(parent: int) -> None:
    """For a child to call: be killed when the thread that started it ends, however it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


@contextlib.contextmanager
def group(command: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A child in a session of its own, whose whole group is killed at the end."""
    child = subprocess.Popen(command, start_new_session=True, **options)
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def wait_for(process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    """The exit code as soon as the child ends, or None after ``timeout_s``.

    ``Popen.wait(timeout)`` looks every 50 ms only, which is long beside a compilation.
    """
    if process.poll() is None:
        descriptor = os.pidfd_open(process.pid)
        try:
            select.select([descriptor], [], [], max(0.0, timeout_s))
        finally:
            os.close(descriptor)
    return process.poll()
