"""Mutation: ideas for a parent in plain language first, then several implementations of each.

An idea is judged by what it can give: the best of its branches is tuned a little before, which
costs verdicts but no author's time.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from typing import Any

from operators.author import Branch, Specimen
from operators.idea import Idea
from operators.variation import Child, Counts, Deliver, Order
from operators.variation.tuning import AUTHOR, variants

PARENTS = 1
BY_RATE = True
HOPELESS = 2.0  # a branch that takes so many times longer than the parent is not tuned


def seats(counts: Counts) -> int:
    """Every idea in all its branches, and its tunings."""
    return counts.ideas * (counts.branches + counts.tunings)


async def vary(toolbox: Any, order: Order, deliver: Deliver) -> None:
    """Ask for ideas, then for the branches of all ideas at once."""
    # drawn before anything runs side by side: chance must not depend on who is faster
    chances = [random.Random(order.rng.random()) for _ in range(order.counts.ideas)]
    ideas = await toolbox.ideate(order)
    async with asyncio.TaskGroup() as group:
        for place, (idea, rng) in enumerate(zip(ideas, chances, strict=False)):
            group.create_task(_carry_out(toolbox, order, deliver, place, idea, rng))


async def _carry_out(
    toolbox: Any, order: Order, deliver: Deliver, place: int, idea: Idea, rng: random.Random
) -> None:
    """All branches of an idea, then tunings of the best."""
    counts = order.counts

    async def implement(number: int) -> Specimen | None:
        branch = Branch(number, counts.branches)
        written = await toolbox.implement(order, place, idea, branch)
        return await deliver(written.child(place * counts.branches + number)) if written else None

    found = await asyncio.gather(*map(implement, range(counts.branches)))
    best = fastest(found)
    if best is None or not _worth_tuning(best, order.parents[0]):
        return
    first = counts.ideas * counts.branches + place * counts.tunings
    for draw, (kernel, note) in enumerate(
        variants(toolbox, order, best.kernel, counts.tunings, rng)
    ):
        deliver(Child(first + draw, kernel, AUTHOR, idea, note, tuned=best.id))


def fastest(specimens: Iterable[Specimen | None]) -> Specimen | None:
    """The accepted one with the lowest time, the first of equals; None if there is none."""
    timed = [
        (one.evaluation.time_ms.median, one)
        for one in specimens
        if one is not None and one.evaluation.correct and one.evaluation.time_ms
    ]
    return min(timed, key=lambda pair: pair[0])[1] if timed else None


def _worth_tuning(child: Specimen, parent: Specimen) -> bool:
    mine, theirs = child.evaluation.time_ms, parent.evaluation.time_ms
    if mine is None or theirs is None:
        return True
    return mine.median < HOPELESS * theirs.median
