"""Language models as authors: one, or a mix drawn by weights or by what each has brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from operators import extension
from operators.llm import table
from operators.llm.choice import CHOICES
from operators.writing.author import Settings, TextAuthor


def make(
    models: Sequence[str | Mapping[str, Any]] = (),
    choice: str = "weights",
    temperatures: Sequence[float] = (),
    ports: int = 2,
) -> TextAuthor:
    """The author. ``models`` are names or tables as `operators.llm.table.read` takes them.

    ``choice``: ``weights`` or ``bandit``. ``temperatures`` are gone through by the branches of an
    idea; empty leaves the models' own. ``ports`` are the first kernels of each island.

    Raises ValueError on what cannot be.
    """
    if choice not in CHOICES:
        raise ValueError(extension.unknown("choice", choice, CHOICES))
    settings = Settings(checked_ports(ports), _temperatures(temperatures))
    return TextAuthor("llm", table.read(models), CHOICES[choice], settings)


def checked_ports(ports: object) -> int:
    """``ports`` if it is a count. Raises ValueError."""
    if not isinstance(ports, int) or isinstance(ports, bool) or ports < 1:
        raise ValueError(f"ports must be a whole number of at least 1, not {ports!r}")
    return ports


def _temperatures(given: Sequence[float]) -> tuple[float, ...]:
    numbers = isinstance(given, list | tuple) and all(
        isinstance(one, int | float) and not isinstance(one, bool) and 0 <= one <= 2
        for one in given
    )
    if not numbers:
        raise ValueError(
            f"temperatures must be a list of numbers from 0 to 2, such as [0.7, 1.0], not {given!r}"
        )
    return tuple(float(one) for one in given)
