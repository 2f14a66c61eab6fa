"""Linear ranking: chances fall evenly from the best to the worst, whatever the speedups are.

Where one kernel is 20 times as fast as the rest, ``selRoulette`` draws hardly anything else; a
rank keeps the others in play.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any


def select(individuals: Sequence[Any], k: int, pressure: float = 1.5) -> list[Any]:
    """``k`` draws with replacement; the best is drawn ``pressure`` times as often as the mean.

    ``pressure`` lies between 1 (all alike) and 2 (the worst is never drawn).
    """
    if not 1 <= pressure <= 2:
        raise ValueError(f"pressure must lie between 1 and 2, not {pressure}")
    ranked = sorted(individuals, key=lambda one: one.fitness.values[0])
    if len(ranked) == 1:
        return ranked * k
    step = 2 * (pressure - 1) / (len(ranked) - 1)
    weights = [2 - pressure + place * step for place in range(len(ranked))]
    return random.choices(ranked, weights, k=k)
