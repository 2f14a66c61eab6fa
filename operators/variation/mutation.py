"""Mutation: ideas for a parent in plain language first, then several implementations of each."""

from __future__ import annotations

import asyncio
from typing import Any

from operators.idea import Idea
from operators.variation import Child, Counts, Deliver, Order

PARENTS = 1
BY_RATE = True


def seats(counts: Counts) -> int:
    """Every idea in all its branches."""
    return counts.ideas * counts.branches


async def vary(toolbox: Any, order: Order, deliver: Deliver) -> None:
    """Ask for ideas, then for the branches of all ideas at once."""
    ideas = await toolbox.ideate(order)

    async def implement(place: int, idea: Idea) -> None:
        drafts = await toolbox.implement(order, place, idea)
        for branch, draft in enumerate(drafts):
            seat = place * order.counts.branches + branch
            deliver(Child(seat, draft.kernel, draft.author, draft.idea))

    async with asyncio.TaskGroup() as group:
        for place, idea in enumerate(ideas):
            group.create_task(implement(place, idea))
