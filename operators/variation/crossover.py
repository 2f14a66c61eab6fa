"""Crossover: an author joins what is good in two parents."""

from __future__ import annotations

from typing import Any

from operators.variation import Child, Counts, Deliver, Order

PARENTS = 2
BY_RATE = True


def seats(counts: Counts) -> int:
    """As many ways of joining as an idea has branches."""
    return counts.branches


async def vary(toolbox: Any, order: Order, deliver: Deliver) -> None:
    """Ask an author to join the two."""
    for seat, draft in enumerate(await toolbox.mate(order)):
        deliver(Child(seat, draft.kernel, draft.author, draft.idea))
