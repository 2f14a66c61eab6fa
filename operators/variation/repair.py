"""Repair: a kernel that failed goes back to an author with its status, reason and log."""

from __future__ import annotations

from typing import Any

from cuda_sandbox.report import Status
from operators.variation import Counts, Deliver, Order

PARENTS = 1
BY_RATE = False

# a cheat is not told how it was found out, and what was accepted needs no mending
BEYOND_REPAIR = {Status.OK, Status.HACK}


def seats(counts: Counts) -> int:  # noqa: ARG001  # the interface of all operators
    """One attempt at a time."""
    return 1


async def vary(toolbox: Any, order: Order, deliver: Deliver) -> None:
    """Ask an author to mend the one parent."""
    if written := await toolbox.repair(order):
        await deliver(written.child(0))
