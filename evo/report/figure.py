"""The lineage as a static picture: generation against log speedup, the winner's path in colour."""

from __future__ import annotations

import math
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evo.lineage import headline, speedup, status
from evo.report.layout import grid, speed_range, swarm, ticks, times
from evo.report.view import RunView

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ISLANDS = ["#4c78a8", "#54a24b", "#9d755d", "#72b7b2", "#b279a2", "#7f7f7f", "#8c8c3a", "#5a6b8c"]
PATH = "#d9480f"
INK = "#7a2b0a"
FAILED = "#b0453e"
MIGRANT = "#6f4bb8"
KEY_IN = 3.4  # width of the key beside the picture
MOST_STEPS = 14  # as many as the key holds
POINT = 0.055  # the size of a point in inches, and the gap between neighbours
SIZE = (POINT * 72) ** 2  # the same in matplotlib's unit: square points


@dataclass(frozen=True)
class Canvas:
    """The axes with what is needed to place points in inches: the speed range and its scale."""

    axes: Axes
    low: float
    high: float
    column_in: float
    height_in: float

    def inches(self, value: float) -> float:
        """Height of a speedup above the lower edge of the speed range, in inches."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return share * self.height_in


def draw(view: RunView) -> Figure:
    """The picture as a matplotlib figure; nothing of pyplot, no display needed."""
    from matplotlib.figure import Figure

    generations = max((one.birth.generation for one in view.individuals), default=0) + 1
    width = min(20.0, max(6.5, 1.2 + 1.25 * generations))
    figure = Figure(figsize=(width + KEY_IN, 6.2), layout="constrained", dpi=150)
    ratios = {"height_ratios": [7, 1], "width_ratios": [width, KEY_IN]}
    panels = figure.subplot_mosaic([["up", "key"], ["low", "key"]], gridspec_kw=ratios)
    upper, lower = panels["up"], panels["low"]
    upper.sharex(lower)
    speeds = [value for one in view.individuals if (value := speedup(one)) is not None]
    low, high = speed_range(speeds)
    canvas = Canvas(upper, low, high, (width - 1.2) / generations, 4.3)
    _frame(canvas, lower, view, generations)
    places = _accepted(canvas, view)
    _edges(canvas, view, places)
    _migrants(canvas, view, places)
    _demoted(canvas, view, places)
    _path(canvas, view, places)
    _failures(lower, view, canvas.column_in)
    _key(panels["key"], view)
    _legend(upper, view)
    return figure


def _frame(canvas: Canvas, lower: Axes, view: RunView, generations: int) -> None:
    upper = canvas.axes
    upper.set(yscale="log", ylim=(canvas.low, canvas.high), xlim=(-0.5, generations - 0.5))
    marks = ticks(canvas.low, canvas.high)
    upper.set_yticks(marks, [times(mark) for mark in marks])
    upper.set_yticks([], minor=True)
    upper.set_ylabel(f"speedup over PyTorch ({view.baseline})")
    upper.axhline(1, color="#444444", linewidth=0.9, linestyle=(0, (1, 2)), zorder=0)
    upper.tick_params(axis="x", length=0, labelbottom=False)
    step = max(1, generations // 20)
    lower.set_xticks(range(0, generations, step))
    lower.set_xlabel("generation")
    lower.set_yticks([])
    lower.set_ylabel("not\naccepted", rotation=0, ha="right", va="center")
    for axes in (upper, lower):
        axes.spines[["top", "right"]].set_visible(False)
        for generation in range(0, generations, 2):
            axes.axvspan(generation - 0.5, generation + 0.5, color="#f4f4f2", zorder=-2)
    upper.set_title(_title(view), loc="left", fontsize=11, pad=26, parse_math=False)


def _title(view: RunView) -> str:
    count, correct = len(view.individuals), sum(one.fitness.valid for one in view.individuals)
    head = f"{view.info.name}: {count} kernels, {correct} accepted"
    devices = ", ".join(view.devices)
    return f"{head}, on {devices}" if devices else head


def _accepted(canvas: Canvas, view: RunView) -> dict[str, tuple[float, float]]:
    """Scatter the accepted kernels; where each stands, in data units, migrants included."""
    cells: dict[tuple[int, int], list[tuple[str, float]]] = defaultdict(list)
    for one in view.individuals:
        if (value := speedup(one)) is not None:
            cells[one.birth.island, one.birth.generation].append((one.id, value))
    for node, facts in view.graph.nodes(data=True):
        if facts["kind"] == "migrant" and (value := speedup(view.by_id[facts["of"]])) is not None:
            cells[facts["island"], facts["generation"]].append((node, value))
    islands = sorted({island for island, _ in cells})
    share = 0.92 / max(1, len(islands))
    places: dict[str, tuple[float, float]] = {}
    for (island, generation), members in cells.items():
        heights = [canvas.inches(value) for _, value in members]
        offsets = swarm(heights, POINT * 1.5, share * canvas.column_in * 0.9)
        middle = generation + (islands.index(island) - (len(islands) - 1) / 2) * share
        for (name, value), offset in zip(members, offsets, strict=True):
            places[name] = (middle + offset / canvas.column_in, value)
    for island in islands:
        mine = [places[name] for name, _ in _members(cells, island) if "@" not in name]
        style: dict[str, Any] = {
            "color": colour(island),
            "alpha": 0.75,
            "linewidths": 0,
            "zorder": 3,
        }
        label = f"island {island}"
        canvas.axes.scatter(
            [x for x, _ in mine], [y for _, y in mine], s=SIZE, label=label, **style
        )
    return places


def _members(
    cells: dict[tuple[int, int], list[tuple[str, float]]], island: int
) -> Iterator[tuple[str, float]]:
    for (where, _), members in cells.items():
        if where == island:
            yield from members


def colour(island: int) -> str:
    """The colour of an island; they repeat after eight."""
    return ISLANDS[island % len(ISLANDS)]


def _edges(canvas: Canvas, view: RunView, places: dict[str, tuple[float, float]]) -> None:
    from matplotlib.collections import LineCollection

    graph = view.graph
    bonds = [(facts.get("via", start), end) for start, end, facts in graph.edges(data=True)
             if facts["kind"] == "parent"]  # fmt: skip
    lines = [[places[a], places[b]] for a, b in bonds if a in places and b in places]
    alpha = max(0.08, min(0.35, 30 / (len(lines) + 1)))
    canvas.axes.add_collection(
        LineCollection(lines, colors="#555555", linewidths=0.6, alpha=alpha, zorder=1)
    )


def _migrants(canvas: Canvas, view: RunView, places: dict[str, tuple[float, float]]) -> None:
    style: dict[str, Any] = {"linestyle": (0, (4, 3)), "linewidth": 1.0, "color": MIGRANT}
    for start, end, facts in view.graph.edges(data=True):
        if facts["kind"] == "migration" and start in places and end in places:
            canvas.axes.plot(*zip(places[start], places[end], strict=True), **style, zorder=2)
            canvas.axes.scatter(*places[end], s=34, facecolors="white", edgecolors=style["color"],
                                linewidths=1.1, zorder=4)  # fmt: skip


def _path(canvas: Canvas, view: RunView, places: dict[str, tuple[float, float]]) -> None:
    steps = [one for one in view.path if one.id in places]
    if not steps:
        return
    route = [places[one.id] for one in steps]
    stops = [places[name] for name in _stops(view) if name in places]
    canvas.axes.plot(*zip(*stops, strict=True), color=PATH, linewidth=2.2, zorder=5)
    xs, ys = [x for x, _ in route], [y for _, y in route]
    canvas.axes.scatter(xs, ys, s=36, color=PATH, edgecolors="white", zorder=6)
    canvas.axes.scatter(
        xs[-1:], ys[-1:], s=230, marker="*", color=PATH, edgecolors="white", zorder=7
    )
    for number, (x, y) in enumerate(route):
        canvas.axes.annotate(
            str(number), (x, y), xytext=(0, 8), textcoords="offset points", ha="center",
            fontsize=7.5, fontweight="bold", color=INK, zorder=8,
            bbox={"boxstyle": "round,pad=0.12", "fc": "white", "ec": "none", "alpha": 0.75},
        )  # fmt: skip


def _demoted(canvas: Canvas, view: RunView, places: dict[str, tuple[float, float]]) -> None:
    """A ring around those that were accepted and failed their certificate."""
    spots = [places[name] for name in sorted(view.demoted) if name in places]
    if spots:
        xs, ys = zip(*spots, strict=True)
        canvas.axes.scatter(xs, ys, s=70, facecolors="none", edgecolors=FAILED, linewidths=1.2,
                            zorder=8, label="failed its certificate")  # fmt: skip


def _stops(view: RunView) -> list[str]:
    """The nodes of the winner's path, with the migrants through which it changed islands."""
    names: list[str] = []
    for one in view.path:
        if names and (via := view.graph.edges[names[-1], one.id].get("via")):
            names.append(via)
        names.append(one.id)
    return names


def _key(panel: Axes, view: RunView) -> None:
    """The steps of the winner's path in words, numbered as in the picture."""
    panel.axis("off")
    y = 1.0
    panel.text(0, y, "The winner's path", fontsize=9, fontweight="bold", va="top")
    steps = [one for one in view.path if speedup(one) is not None]
    shown = steps if len(steps) <= MOST_STEPS else [*steps[:2], *steps[2 - MOST_STEPS :]]
    for one in shown:
        y -= 0.95 / (MOST_STEPS + 1)
        words = textwrap.wrap(textwrap.shorten(headline(one), 76, placeholder=" ..."), 38)
        number, value = str(steps.index(one)), times(speedup(one) or 0)
        panel.text(0, y, number, fontsize=7.5, fontweight="bold", color=INK, va="top")
        panel.text(0.08, y, value, fontsize=7.5, fontweight="bold", va="top")
        panel.text(
            0.25, y, "\n".join(words), fontsize=7.5, va="top", linespacing=1.1, parse_math=False
        )
    failures = Counter(status(one) for one in view.individuals if speedup(one) is None)
    if failures:
        words = textwrap.wrap(", ".join(f"{name} {n}" for name, n in failures.most_common()), 50)
        text = "\n".join(["Not accepted:", *words])
        panel.text(0, 0, text, fontsize=7.5, color=FAILED, va="bottom", linespacing=1.2)


def _failures(lower: Axes, view: RunView, column_in: float) -> None:
    cells: dict[int, list[str]] = defaultdict(list)
    for one in view.individuals:
        if speedup(one) is None:
            cells[one.birth.generation].append(status(one))
    columns = max(1, int(column_in * 0.8 / (POINT * 1.6)))
    deepest = 1
    for generation, names in cells.items():
        places = grid(len(names), columns)
        deepest = max(deepest, places[-1][0] + 1)
        xs = [generation + side * POINT * 1.6 / column_in for _, side in places]
        lower.scatter(xs, [-row for row, _ in places], marker="x", s=12, color=FAILED,
                      linewidths=0.9, alpha=0.8)  # fmt: skip
        lower.annotate(str(len(names)), (generation, 0), xytext=(0, 6), fontsize=7,
                       textcoords="offset points", ha="center", color="#7a7a7a")  # fmt: skip
    lower.set_ylim(-max(deepest, 3) + 0.3, 1.8)


def _legend(upper: Axes, view: RunView) -> None:
    from matplotlib.lines import Line2D

    handles, _ = upper.get_legend_handles_labels()
    handles.append(Line2D([], [], color=PATH, linewidth=2.2, marker="*", label="winner's path"))
    if view.migrations:
        handles.append(Line2D([], [], color=MIGRANT, linestyle=(0, (4, 3)), marker="o",
                              markerfacecolor="white", label="migrant"))  # fmt: skip
    handles.append(Line2D([], [], color=FAILED, marker="x", linestyle="", label="not accepted"))
    legend = upper.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1.0),
                          ncols=len(handles), frameon=False, fontsize=7.5,
                          borderaxespad=0.1, handletextpad=0.5, columnspacing=1.4)  # fmt: skip
    legend.set_in_layout(False)  # else a long one squeezes the picture
