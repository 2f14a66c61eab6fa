"""Wait for child processes without polling."""

from __future__ import annotations

import os
import select
import subprocess


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
