"""The first kernels: plain ports of the reference, by an author."""

from __future__ import annotations

from typing import Any

from operators.variation import Child, Counts, Deliver, Order

PARENTS = 0
BY_RATE = False


def seats(counts: Counts) -> int:
    """As many as a population may take."""
    return counts.ports


async def vary(toolbox: Any, order: Order, deliver: Deliver) -> None:
    """Ask an author for ports."""
    for seat, draft in enumerate(await toolbox.port(order)):
        deliver(Child(seat, draft.kernel, draft.author, draft.idea))
