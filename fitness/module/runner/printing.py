"""What a candidate prints: kept up to the jail's limit, dropped beyond it, never believed."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any


class Printing(io.TextIOWrapper):
    """Standard output that drops what does not fit, instead of raising in the candidate."""

    def write(self, text: str) -> int:
        """Write a text, or drop it."""
        with contextlib.suppress(OSError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        """As far as there is room."""
        with contextlib.suppress(OSError, ValueError):
            super().flush()


def replace_standard_streams() -> None:
    """Both streams of this process."""
    sys.stdout, sys.stderr = (_printing(number) for number in (1, 2))


def _printing(descriptor: int) -> Printing:
    raw: Any = io.FileIO(descriptor, "w", closefd=False)  # nothing waits in a buffer
    return Printing(raw, line_buffering=True, write_through=True)
