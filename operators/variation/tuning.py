"""Tuning: other values of the constants that a source declares open to change. No author."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from cuda_sandbox.kernel import Kernel
from operators.variation import Child, Counts, Deliver, Order

PARENTS = 1
BY_RATE = True
DRAWS = 8  # how often a step tries for a variant that is not there yet
AUTHOR = "tuning"  # in the place of an author's name
MORE = 0.3  # the chance that one constant more is changed


def seats(counts: Counts) -> int:
    """As many variants as an idea has branches."""
    return counts.branches


async def vary(toolbox: Any, order: Order, deliver: Deliver) -> None:
    """Draw variants of the parent that are not known yet."""
    (parent,) = order.parents
    found = variants(toolbox, order, parent.kernel, order.counts.branches, order.rng)
    for seat, (kernel, note) in enumerate(found):
        deliver(Child(seat, kernel, AUTHOR, note=note))


def variants(
    toolbox: Any, order: Order, kernel: Kernel, count: int, rng: random.Random
) -> Iterator[tuple[Kernel, str]]:
    """Up to ``count`` variants of ``kernel`` that are not known yet, each with its note."""
    seen = {kernel.source}
    for _ in range(count):
        for _ in range(DRAWS):
            variant, note = toolbox.tune(kernel, rng)
            if variant.source not in seen and not order.known(variant):
                seen.add(variant.source)
                yield variant, note
                break


def retune(kernel: Kernel, rng: random.Random) -> tuple[Kernel, str]:
    """``kernel`` with one or more tunables changed, and a note such as ``TILE 64 -> 128``.

    Without a tunable that has a choice, the kernel itself and an empty note.
    """
    open_ones = [tunable for tunable in kernel.tunables() if len(tunable.choices) > 1]
    if not open_ones:
        return kernel, ""
    rng.shuffle(open_ones)
    count = 1
    while count < len(open_ones) and rng.random() < MORE:
        count += 1
    values, notes = {}, []
    for tunable in open_ones[:count]:
        others = [choice for choice in tunable.choices if choice != tunable.value]
        values[tunable.name] = rng.choice(others)
        notes.append(f"{tunable.name} {tunable.value} -> {values[tunable.name]}")
    return kernel.tuned(values), ", ".join(notes)
