"""Migration: copies of an island's best go to another island's mailbox. Nobody waits for them."""

from __future__ import annotations

from collections.abc import Sequence

from evo.individual import Individual


def ring(
    island: int,
    generation: int,
    survivors: Sequence[Individual],
    *,
    islands: int,
    every: int,
    count: int,
) -> list[tuple[Individual, int]]:
    """Who leaves ``island`` after ``generation``, and where to: the next one round the ring.

    ``survivors`` are in order, the best first. Generation 0 sends nobody.
    """
    if islands == 1 or generation == 0 or generation % every != 0:
        return []
    return [(migrant, (island + 1) % islands) for migrant in survivors[:count]]
