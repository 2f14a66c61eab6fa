"""Text from outside, made safe to keep: bounded, without what no file can hold."""

from __future__ import annotations

import re

from cuda_sandbox.report import printable

LONGEST_REPLY = 400_000  # characters that are looked at; a kernel is 5,000 to 50,000 long
LONGEST_SOURCE = 200_000

_PATH = re.compile(r"(?<![\w.*)\]])/(?:[\w.+@-]+/)+(?=[\w.+@-])")


def clean(text: str, longest: int = LONGEST_REPLY) -> str:
    """``text``, cut at ``longest`` characters, with plain line ends, no control characters."""
    text = text[:longest].replace("\r\n", "\n").replace("\r", "\n")
    return printable(text)


def without_paths(text: str) -> str:
    """``text`` with absolute paths reduced to their last name."""
    return _PATH.sub("", text)


def shortened(text: str, longest: int) -> str:
    """``text`` on one line, cut at a word if it is longer than ``longest`` characters."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    return line[: longest - 3].rsplit(" ", 1)[0] + "..."
