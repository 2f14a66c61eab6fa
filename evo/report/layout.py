"""Where things stand in a picture: a swarm of points that do not overlap, lanes, log axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

TICKS = [m * 10.0**e for e in range(-4, 6) for m in (1, 2, 5)]


def swarm(heights: Sequence[float], gap: float, width: float) -> list[float]:
    """Sideways offsets, one for each height, so that points stay ``gap`` apart.

    A point goes to the free place nearest to the middle. A swarm wider than ``width`` is
    squeezed to it, and its points then overlap sideways.
    """
    offsets = [0.0] * len(heights)
    placed: list[tuple[float, float]] = []
    for index in sorted(range(len(heights)), key=lambda i: -heights[i]):
        height = heights[index]
        near = [(x, y) for x, y in placed if abs(y - height) < gap]
        offsets[index] = _free_place(near, height, gap)
        placed.append((offsets[index], height))
    widest = 2 * max((abs(x) for x in offsets), default=0.0)
    squeeze = min(1.0, width / widest) if widest else 1.0
    return [x * squeeze for x in offsets]


def _free_place(near: list[tuple[float, float]], height: float, gap: float) -> float:
    step = 0
    while True:
        place = (step + 1) // 2 * gap / 2 * (-1 if step % 2 else 1)
        if all(math.hypot(place - x, height - y) >= gap * 0.999 for x, y in near):
            return place
        step += 1


def grid(count: int, columns: int) -> list[tuple[int, float]]:
    """Rows of at most ``columns`` points each: ``(row, sideways in points from the middle)``."""
    places = []
    for index in range(count):
        row, column = divmod(index, columns)
        in_row = min(columns, count - row * columns)
        places.append((row, column - (in_row - 1) / 2))
    return places


def speed_range(speedups: Iterable[float]) -> tuple[float, float]:
    """A log axis that holds every speedup and 1, with a little air."""
    values = [1.0, *(value for value in speedups if value > 0)]
    return min(values) / 1.2, max(values) * 1.25


def ticks(low: float, high: float) -> list[float]:
    """Round speedups between ``low`` and ``high``: steps of 1-2-5, thinned out if too many."""
    found = [tick for tick in TICKS if low <= tick <= high]
    if len(found) > 8:
        found = [tick for tick in found if round(math.log10(tick), 6).is_integer()]
    return found


def times(value: float) -> str:
    """A speedup for a reader: ``1.95x``, ``0.214x``, ``52x``."""
    return f"{value:.3g}x"
