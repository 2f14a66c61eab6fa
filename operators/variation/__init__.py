"""Variation operators: how children come to be. A file of this folder is one, by its name.

A file ``NAME.py`` holds

- ``PARENTS``: how many parents it takes;
- ``BY_RATE``: whether ``variation.rates`` may name it (``port`` and ``repair`` have their own
  occasions);
- ``seats(order)``: how many children it may have at most;
- ``async def vary(toolbox, order, deliver)``: calls ``deliver(child)`` for each child as soon as
  it is there, so that it is compiled and judged while its siblings are still being written. What
  ``deliver`` returns may be awaited: the child as judged, after its repairs, or None if none of
  them was accepted.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, cast

from cuda_sandbox.kernel import Kernel
from operators import extension
from operators.author import Specimen
from operators.idea import Idea


@dataclass(frozen=True, slots=True)
class Counts:
    """How many ideas for each parent, branches of each idea, and ports a step may ask for.

    ``tunings`` is how often each idea's best branch is tuned before the idea is judged.
    """

    ideas: int
    branches: int
    ports: int
    tunings: int = 0


@dataclass(frozen=True, slots=True)
class Order:
    """What one step of variation has to do.

    ``key`` names the step in its run: calls to authors are recorded under it, and ``rng`` is
    seeded by it. ``horizon`` is what its authors may know of (see ``evo.records.Generation``), and
    ``known`` says whether an equal kernel lies within it.
    """

    key: str
    parents: tuple[Specimen, ...]
    counts: Counts
    rng: random.Random
    horizon: tuple[int, ...] = ()
    known: Callable[[Kernel], bool] = lambda _: False


@dataclass(frozen=True, slots=True)
class Child:
    """A kernel that an operator made; ``seat`` is its place among the operator's ``seats``.

    ``model`` wrote it for ``author``, if one did. ``tuned`` is the id of another child of the same
    step, of which this one is a tuning: that is its parent then.
    """

    seat: int
    kernel: Kernel
    author: str
    idea: Idea | None = None
    note: str = ""
    model: str = ""
    tuned: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """A draft with the names of the author that wrote it and of the author's model, if any."""

    kernel: Kernel
    idea: Idea | None
    author: str
    model: str = ""

    def child(self, seat: int) -> Child:
        """What to deliver."""
        return Child(seat, self.kernel, self.author, self.idea, model=self.model)


Deliver = Callable[[Child], Awaitable[Specimen | None]]


class Variation(Protocol):
    """What a file of this folder holds."""

    PARENTS: int
    BY_RATE: bool

    def seats(self, counts: Counts) -> int:
        """The most children that one step may have."""
        ...

    async def vary(self, toolbox: Any, order: Order, deliver: Deliver) -> None:
        """Make children and deliver each as soon as it is there."""
        ...


def names() -> list[str]:
    """All operators."""
    return extension.names(__name__)


@cache
def operator(name: str) -> Variation:
    """The operator of that name. Raises UnknownName."""
    return cast(Variation, extension.load(__name__, "operator", name))


def by_rate() -> list[str]:
    """The operators that ``variation.rates`` may name."""
    return [name for name in names() if operator(name).BY_RATE]
