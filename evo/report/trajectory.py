"""The winner's path in the published form: round, time, share of the reference, idea."""

from __future__ import annotations

from typing import Any

from evo.individual import Individual
from evo.lineage import gain, headline, speedup, status
from evo.report.plain import finite, interval, verdict
from evo.report.view import RunView
from evo.result import span

LANGUAGES = {"cuda": "CUDA", "cpp": "C++"}
HEAD = ("round", "ms", "95% interval", "% of {}", "idea")


def step_text(individual: Individual) -> str:
    """The idea of a step; the first is the port, which replaces the operation."""
    text = headline(individual)
    if individual.birth.parents:
        return text
    language = LANGUAGES.get(individual.kernel.language, individual.kernel.language)
    port = f"replace the operation with a {language} kernel"
    if individual.birth.idea is None:
        return port
    return text if text.lower().startswith("replace the operation") else f"{port} ({text})"


def trajectory(view: RunView) -> dict[str, Any]:
    """The path as JSON values: ``steps`` from the port to the winner, times in ms."""
    return {
        "run": view.info.name,
        "task": view.info.task.name,
        "baseline": view.baseline,
        "devices": view.devices,
        "state": view.state,
        "winner": view.winner,
        "certificate": verdict(view.certificate) if view.certificate else None,
        "steps": [_step(view, one) for one in view.path],
    }


def _step(view: RunView, one: Individual) -> dict[str, Any]:
    value, found, idea = speedup(one), one.evaluation, one.birth.idea
    return {
        "id": one.id,
        "round": one.birth.generation,
        "island": one.birth.island,
        "operator": one.birth.operator,
        "author": one.birth.author,
        "status": status(one),
        "demoted": one.id in view.demoted,
        "time_ms": interval(found.time_ms) if found else None,
        "percent": None if value is None else finite(100 * value),
        "gain": gain(one, view.mother(one)),
        "tier": found.precision.tier if found and found.precision else None,
        "idea": step_text(one),
        "category": str(idea.category) if idea else None,
    }


def lines(view: RunView) -> list[str]:
    """The path as text for a terminal or a file; says so where no kernel is correct."""
    path = view.path
    if not path:
        count = len(view.individuals)
        return [
            f"{view.info.name}: no correct kernel yet: {count} tried, none accepted "
            f"(kernelevo show {view.info.name} counts the reasons)"
        ]
    rows = [tuple(cell.format(view.baseline) for cell in HEAD), *(_row(view, one) for one in path)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD) - 1)]
    table = []
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=False)]
        table.append("  ".join([*cells, row[-1]]))
    return [_title(view), "", *table, "", *_notes(view)]


def _title(view: RunView) -> str:
    devices = ", ".join(view.devices) or "an unknown device"
    return f"{view.info.name}: {view.info.task.name} on {devices}"


def _row(view: RunView, one: Individual) -> tuple[str, ...]:
    fault = "; failed its certificate" if one.id in view.demoted else ""
    verdict, value = one.evaluation, speedup(one)
    time = verdict.time_ms if verdict else None
    return (
        str(one.birth.generation),
        f"{time.median:.4g}" if time else "-",
        f"[{time.low:.4g}, {time.high:.4g}]" if time else "-",
        f"{100 * value:.1f}%" if value is not None else status(one),
        step_text(one) + fault,
    )


def _notes(view: RunView) -> list[str]:
    """What the percentages are against, and how sure they are."""
    last = view.path[-1]
    base = last.evaluation.baselines.get(view.baseline) if last.evaluation else None
    notes = []
    if base:
        tier = f" (tier {base.tier})" if base.tier else ""
        notes.append(f"PyTorch {view.baseline}: {span(base.time_ms)}{tier}")
    demand = view.info.demand
    asked = f"tier {demand.tier}" if demand.tier else f"tolerance {demand.tolerance:g}"
    notes.append(f"{_seal(view, last)}; {asked} was demanded")
    return notes


def _seal(view: RunView, last: Individual) -> str:
    found = view.certificate
    if found is None:
        return f"{last.id} is not certified yet"
    if not found.correct:
        return f"{last.id} failed certification: {found.status}: {found.reason}"
    value = found.speedup.get(view.baseline)
    share = f", {100 * value:.1f}% of {view.baseline}" if value else ""
    time = f": {span(found.time_ms)}" if found.time_ms else ""
    return f"{last.id} is certified on hidden inputs{time}{share}"
