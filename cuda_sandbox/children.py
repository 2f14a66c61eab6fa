"""Child processes of ours: where they import us from, and waiting for them without polling."""

from __future__ import annotations

import os
import select
import subprocess
from pathlib import Path


def import_path() -> str:
    """PYTHONPATH for a Python child that is to import these packages, as they are here."""
    root = str(Path(__file__).resolve().parents[1])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))


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
