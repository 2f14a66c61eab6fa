"""The first kernels: plain ports of the reference, by an author."""

from __future__ import annotations

import asyncio
from typing import Any

from operators.author import Branch
from operators.variation import Counts, Deliver, Order

PARENTS = 0
BY_RATE = False


def seats(counts: Counts) -> int:
    """As many as a population may take."""
    return counts.ports


async def vary(toolbox: Any, order: Order, deliver: Deliver) -> None:
    """Ask an author for ports, all at once."""

    async def write(seat: int) -> None:
        if written := await toolbox.port(order, Branch(seat, order.counts.ports)):
            deliver(written.child(seat))

    await asyncio.gather(*map(write, range(order.counts.ports)))
