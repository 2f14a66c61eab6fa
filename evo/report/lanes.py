"""The layout of the interactive page, in pixels: a lane per island, a column per generation.

In its lane an accepted kernel stands as high as its speedup (log scale, the same for all lanes);
the others lie in a strip below, sorted by status.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from evo.lineage import speedup, status
from evo.report.layout import grid, speed_range, swarm, ticks
from evo.report.view import RunView

GAP = 13.0  # between the middles of neighbours
LANE, TALL = 220.0, 320.0  # height of a lane's speedup axis; where a cell is crowded
CROWD = 24  # accepted kernels in a cell that call for a tall lane
AIR = 16.0
LEFT = 64.0  # the axis labels
TOP = 26.0  # the generation numbers
NARROW, WIDE = 84.0, 260.0  # a column's width
SPREAD = 880.0  # few generations share this width

Cell = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Lane:
    """One island's band: its top edge, its speedup axis ``(y, speedup)``, where failures begin."""

    island: int
    top: float
    height: float
    failures: float
    ticks: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One generation: its middle and its width."""

    generation: int
    x: float
    width: float


@dataclass(slots=True)
class Plan:
    """Lanes, columns and the place of every kernel and migrant, by node id.

    ``axis`` is the height of the speedup axis, which runs from ``low`` to ``high``.
    """

    axis: float
    low: float
    high: float
    lanes: list[Lane] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    places: dict[str, tuple[float, float]] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0

    def rise(self, value: float) -> float:
        """Pixels of a speedup above the lane's speedup floor."""
        return math.log(value / self.low) / math.log(self.high / self.low) * self.axis


def plan(view: RunView) -> Plan:
    """Lay out the run; nodes of one cell do not overlap unless a column grows past ``WIDE``."""
    cells = _cells(view)
    speeds = [[v for v in cell.values() if v is not None] for cell in cells.values()]
    axis = TALL if max(map(len, speeds), default=0) > CROWD else LANE
    made = Plan(axis, *speed_range(value for cell in speeds for value in cell))
    offsets = {key: _swarm(made, cell) for key, cell in cells.items()}
    _columns(made, cells, offsets)
    _lanes(made, cells)
    _place(made, view, cells, offsets)
    return made


def _cells(view: RunView) -> dict[tuple[int, int], Cell]:
    """Every kernel and migrant by (island, generation), with its speedup."""
    cells: dict[tuple[int, int], Cell] = defaultdict(dict)
    for node, facts in view.graph.nodes(data=True):
        if facts["kind"] != "idea":
            one = view.by_id[facts.get("of", node)]
            cells[facts["island"], facts["generation"]][node] = speedup(one)
    return cells


def _swarm(made: Plan, cell: Cell) -> dict[str, float]:
    """Sideways offsets of the accepted kernels born in a cell."""
    names = [name for name, value in cell.items() if value is not None and "@" not in name]
    heights = [made.rise(cell[name] or 0) for name in names]
    return dict(zip(names, swarm(heights, GAP, WIDE - 2 * AIR), strict=True))


def _columns(
    made: Plan, cells: dict[tuple[int, int], Cell], offsets: dict[tuple[int, int], dict[str, float]]
) -> None:
    last = max((generation for _, generation in cells), default=0)
    x = LEFT
    for generation in range(last + 1):
        spread = [abs(x) for key, cell in offsets.items() if key[1] == generation
                  for x in cell.values()]  # fmt: skip
        width = min(
            WIDE, max(NARROW, SPREAD / (last + 1), 2 * max(spread, default=0.0) + GAP + 2 * AIR)
        )
        made.columns.append(Column(generation, x + width / 2, width))
        x += width
    made.width = x + AIR


def _per_row(column: Column) -> int:
    return max(1, int((column.width - AIR) / GAP))


def _lanes(made: Plan, cells: dict[tuple[int, int], Cell]) -> None:
    top = TOP
    marks = ticks(made.low, made.high)
    for island in sorted({island for island, _ in cells}):
        rows = 1
        for column in made.columns:
            lost = sum(v is None for v in cells.get((island, column.generation), {}).values())
            rows = max(rows, math.ceil(lost / _per_row(column)))
        floor = top + AIR + made.axis
        height = AIR + made.axis + 2 * AIR + rows * GAP
        axis = tuple((floor - made.rise(mark), mark) for mark in marks)
        made.lanes.append(Lane(island, top, height, floor + 1.5 * AIR, axis))
        top += height + 10
    made.height = top


def _place(
    made: Plan,
    view: RunView,
    cells: dict[tuple[int, int], Cell],
    offsets: dict[tuple[int, int], dict[str, float]],
) -> None:
    lanes = {lane.island: lane for lane in made.lanes}
    for (island, generation), cell in cells.items():
        lane, column = lanes[island], made.columns[generation]
        floor = lane.top + AIR + made.axis
        for name, value in cell.items():
            if value is not None:  # a migrant enters at its column's edge
                offset = offsets[island, generation].get(name, GAP - column.width / 2)
                made.places[name] = (column.x + offset, floor - made.rise(value))
        lost = sorted(
            (name for name, value in cell.items() if value is None),
            key=lambda name: status(view.by_id[name.partition("@")[0]]),
        )
        for name, (row, side) in zip(lost, grid(len(lost), _per_row(column)), strict=True):
            made.places[name] = (column.x + side * GAP, lane.failures + row * GAP)
