"""Crossover: an author joins what is good in two parents."""

from __future__ import annotations

import asyncio
from typing import Any

from operators.author import Branch
from operators.variation import Counts, Deliver, Order

PARENTS = 2
BY_RATE = True


def seats(counts: Counts) -> int:
    """As many ways of joining as an idea has branches."""
    return counts.branches


async def vary(toolbox: Any, order: Order, deliver: Deliver) -> None:
    """Ask an author to join the two, in all branches at once."""

    async def join(seat: int) -> None:
        if written := await toolbox.mate(order, Branch(seat, order.counts.branches)):
            deliver(written.child(seat))

    await asyncio.gather(*map(join, range(order.counts.branches)))
