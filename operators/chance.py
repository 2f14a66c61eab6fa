"""DEAP draws from Python's global random generator: lend it a state of our own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def chance(seed: str) -> Iterator[random.Random]:
    """Seed the global ``random`` for a while, then put its state back as it was.

    Yields a generator of the same seed for draws that need not be global.
    """
    own = random.Random(seed)
    before = random.getstate()
    random.setstate(own.getstate())
    try:
        yield own
    finally:
        random.setstate(before)
