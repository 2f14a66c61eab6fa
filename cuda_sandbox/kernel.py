"""The kernel: source, language, flags; its tunables and its digest."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tunable:
    """A numeric constant that the source declares open to change.

    ``#define TILE 64  // tune: 32 64 128`` gives ``Tunable("TILE", "64", ("32", "64", "128"))``.
    """

    name: str
    value: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One translation unit in a language that is the name of a file in ``backends/``."""

    source: str
    language: str
    flags: tuple[str, ...] = ()
