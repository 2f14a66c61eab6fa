"""A run in figures: state, best, budget, counts by status, by operator and by idea category."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from evo.individual import Individual
from evo.lineage import gain, speedup, status
from evo.report.plain import finite, verdict
from evo.report.view import RunView


@dataclass(frozen=True, slots=True)
class Yield:
    """What came of a group of children.

    ``correct`` were accepted; ``faster`` beat their base (the mother, or of a repair or tuning the
    kernel that its step began with); ``mean_gain`` is the geometric mean of child's / base's
    speedup over the accepted ones, ``best_gain`` the largest.
    """

    tried: int
    correct: int
    faster: int
    mean_gain: float | None
    best_gain: float | None


def yields(view: RunView, key: Callable[[Individual], str | None]) -> dict[str, Yield]:
    """Children grouped by ``key`` (None leaves one out), the most tried group first."""
    groups: dict[str, list[Individual]] = defaultdict(list)
    for one in view.individuals:
        if (name := key(one)) is not None:
            groups[name].append(one)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return {name: _yield(view, members) for name, members in ordered}


def _yield(view: RunView, members: Iterable[Individual]) -> Yield:
    members = list(members)
    gains = [ratio for one in members if (ratio := gain(one, view.base(one))) is not None]
    mean = math.exp(sum(map(math.log, gains)) / len(gains)) if gains else None
    return Yield(
        tried=len(members),
        correct=sum(speedup(one) is not None for one in members),
        faster=sum(ratio > 1 for ratio in gains),
        mean_gain=mean,
        best_gain=max(gains, default=None),
    )


def by_operator(view: RunView) -> dict[str, Yield]:
    """What each operator yielded."""
    return yields(view, lambda one: one.birth.operator)


def by_category(view: RunView) -> dict[str, Yield]:
    """What each category of ideas yielded; ports are no optimisation and are left out."""

    def category(one: Individual) -> str | None:
        return str(one.birth.idea.category) if one.birth.idea and one.birth.parents else None

    return yields(view, category)


def statuses(view: RunView) -> dict[str, int]:
    """How many kernels ended with which status, the most frequent first."""
    return dict(Counter(status(one) for one in view.individuals).most_common())


def summary(view: RunView) -> dict[str, Any]:
    """The run as JSON values."""
    info = view.info
    winner = view.by_id[view.winner] if view.winner else None
    return {
        "run": info.name,
        "state": view.state,
        "outcome": info.outcome,
        "created": info.created,
        "task": info.task.name,
        "remarks": list(info.task.remarks),
        "language": info.language,
        "devices": view.devices,
        "demand": finite(info.demand),
        "environment": info.environment,
        "kernels": len(view.individuals),
        "islands": len({one.birth.island for one in view.individuals}),
        "generations": max((one.birth.generation for one in view.individuals), default=0),
        "migrations": sum(move.taken_in is not None for move in view.migrations),
        "winner": winner.id if winner else None,
        "certified": info.winner is not None,
        "best": verdict(winner.evaluation) if winner else None,
        "spent": finite(view.spent),
        "statuses": statuses(view),
        "operators": {name: finite(each) for name, each in by_operator(view).items()},
        "categories": {name: finite(each) for name, each in by_category(view).items()},
        "config": info.config,
    }


def detail(view: RunView, one: Individual, certificate: dict[str, Any] | None) -> dict[str, Any]:
    """One kernel as JSON values."""
    birth = one.birth
    return {
        "run": view.info.name,
        "id": one.id,
        "winner": one.id == view.winner,
        "on_path": one in view.path,
        "digest": one.digest,
        "language": one.kernel.language,
        "flags": list(one.kernel.flags),
        "island": birth.island,
        "generation": birth.generation,
        "operator": birth.operator,
        "author": birth.author,
        "model": birth.model or None,
        "base": birth.base or None,
        "note": birth.note,
        "idea": finite(birth.idea) if birth.idea else None,
        "parents": list(birth.parents),
        "children": [child.id for child in view.children(one)],
        "gain": gain(one, view.base(one)),
        "evaluation": verdict(one.evaluation),
        "certificate": certificate,
        "source": one.kernel.source,
    }
