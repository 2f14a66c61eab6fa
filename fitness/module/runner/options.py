"""What a worker is told on its command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """The command line as cuda_sandbox/process.py makes it: pairs of a word and its value."""

    control: int
    folder: Path
    cpus: str
    read: tuple[str, ...]
    write: tuple[str, ...]

    @classmethod
    def parse(cls, words: list[str]) -> Options:
        """The options that concern a module."""
        pairs = list(zip(words[::2], words[1::2], strict=True))
        one = dict(pairs)
        several = (tuple(v for k, v in pairs if k == key) for key in ("--read", "--write"))
        return cls(int(one["--control"]), Path(one["--object"]), one["--cpus"], *several)
