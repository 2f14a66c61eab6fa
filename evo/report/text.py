"""A run, and one kernel, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from evo.individual import Individual
from evo.lineage import gain, speedup, status
from evo.report.certificate import certificate_lines
from evo.report.layout import times
from evo.report.summary import Yield, by_category, by_operator, statuses
from evo.report.view import RunView
from evo.result import span
from fitness.evaluation import Evaluation

YIELD = ("tried", "correct", "faster", "mean gain", "best gain")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Aligned columns: the first to the left, the others to the right."""
    cells = [tuple(head), *map(tuple, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = []
    for first, *rest in cells:
        aligned = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  " + "  ".join([first.ljust(widths[0]), *aligned]))
    return lines


def run_text(view: RunView) -> list[str]:
    """State, task, devices, best, budget, and the counts."""
    info = view.info
    lines = [f"{info.name}: {view.state}" + (f" ({info.outcome})" if info.outcome else "")]
    lines += [f"  {name:<10}{value}" for name, value in _facts(view) if value]
    counts = statuses(view)
    if counts:
        lines += ["", "by status: " + ", ".join(f"{name} {n}" for name, n in counts.items())]
    for title, groups in (("operator", by_operator(view)), ("idea", by_category(view))):
        if groups:
            lines += ["", *table((title, *YIELD), (_row(*item) for item in groups.items()))]
    lines += ["", "configuration as run:"]
    return [*lines, *(f"  {line}" for line in info.config.strip().splitlines())]


def _row(name: str, group: Yield) -> tuple[str, ...]:
    gains = (group.mean_gain, group.best_gain)
    return (
        name,
        str(group.tried),
        str(group.correct),
        str(group.faster),
        *("-" if value is None else times(value) for value in gains),
    )


def _facts(view: RunView) -> Iterator[tuple[str, str]]:
    info, spent = view.info, view.spent
    islands = len({one.birth.island for one in view.individuals})
    last = max((one.birth.generation for one in view.individuals), default=0)
    yield "task", f"{info.task.name} ({info.language})"
    for remark in info.task.remarks:
        yield "", f"note: {remark}"
    demand = info.demand
    asked = f"tier {demand.tier}" if demand.tier else f"tolerance {demand.tolerance:g}"
    yield "demand", f"{asked}, speedup against {demand.baseline}"
    yield "devices", ", ".join(view.devices)
    yield "kernels", f"{len(view.individuals)} on {islands} island(s), generation {last}"
    if spent:
        cost = ""
        if spent.calls:
            cost = f", {spent.calls} calls, {spent.tokens} tokens, {spent.dollars:.2f} dollars"
        hours = spent.seconds / 3600
        yield "used", f"{spent.evaluations} evaluations, {hours:.2f} hours{cost}"
    yield "best", _best(view)
    yield "made with", ", ".join(f"{name} {text}" for name, text in info.environment.items())


def _best(view: RunView) -> str:
    if view.winner is None:
        return "none: no kernel was accepted yet"
    one = view.by_id[view.winner]
    verdict = view.certificate or one.evaluation
    seal = "certified" if view.certificate and view.certificate.correct else "not certified"
    time = span(verdict.time_ms if verdict else None)
    value = verdict.speedup.get(view.baseline) if verdict else None
    share = f", {times(value)} over PyTorch {view.baseline}" if value else ""
    return f"{one.id}: {time}{share}, {seal}"


def kernel_text(view: RunView, one: Individual, certificate: Evaluation | None) -> list[str]:
    """Birth, verdict, kin and source of one kernel."""
    lines = [f"{one.id}" + (" (winner)" if one.id == view.winner else "")]
    lines += _aligned(_birth(view, one))
    if one.evaluation:
        lines += ["in the search:", *_aligned(verdict_facts(one.evaluation))]
    if certificate and certificate.certificate:
        lines += ["certificate:", *certificate_lines(certificate.certificate)]
    elif certificate:
        lines += ["certificate:", *_aligned(verdict_facts(certificate))]
    return [*lines, "", *one.kernel.source.rstrip().splitlines()]


def _aligned(facts: Iterable[tuple[str, str]]) -> list[str]:
    told = [(name, value) for name, value in facts if value]
    width = max((len(name) for name, _ in told), default=0)
    return [f"  {name:<{width}} {value}" for name, value in told]


def _birth(view: RunView, one: Individual) -> Iterator[tuple[str, str]]:
    birth = one.birth
    yield "birth", f"island {birth.island}, generation {birth.generation}"
    yield "operator", f"{birth.operator}, written by {_by(birth.author, birth.model)}"
    if birth.idea:
        thinker = _by(birth.idea.author, birth.idea.model)
        yield "idea", f"{' '.join(birth.idea.text.split())} ({birth.idea.category}; by {thinker})"
    yield "note", birth.note
    yield "parents", ", ".join(_kin(view.by_id.get(name), name) for name in birth.parents)
    yield "children", ", ".join(_kin(child, child.id) for child in view.children(one))
    before = view.base(one)
    ratio = gain(one, before)
    yield "gain", f"{times(ratio)} over {before.id}" if ratio and before else ""
    yield "flags", " ".join(one.kernel.flags)
    yield "digest", one.digest
    yield "status", "" if one.evaluation else "not judged yet"


def _by(author: str, model: str) -> str:
    return f"{author} ({model})" if model else author


def _kin(one: Individual | None, name: str) -> str:
    if one is None:
        return name
    value = speedup(one)
    return f"{name} ({times(value) if value is not None else status(one)})"


def verdict_facts(verdict: Evaluation) -> Iterator[tuple[str, str]]:
    """An evaluation as pairs of name and text; what was not measured is left out."""
    yield "status", f"{verdict.status}" + (f": {verdict.reason}" if verdict.reason else "")
    if verdict.time_ms:
        yield "time", span(verdict.time_ms)
    for name, base in verdict.baselines.items():
        tier = f" (tier {base.tier})" if base.tier else ""
        yield name, f"{span(base.time_ms)}{tier}"
    named = {"best": "the best of these", "same": "its own tier", "fp32": "full fp32"}
    ratios = [f"{times(value)} {named.get(name, name)}" for name, value in verdict.speedup.items()]
    yield "speedup", ", ".join(ratios)
    if verdict.roofline_share is not None:
        yield "roofline", f"{100 * verdict.roofline_share:.0f}% of {verdict.roofline_ceiling}"
    if found := verdict.precision:
        worst = f", worst on {found.worst_on}" if found.worst_on else ""
        own = f"PyTorch's own {found.reference_error:.1e}"
        yield "precision", f"tier {found.tier or 'none'}, error {found.error:.1e} ({own}){worst}"
    if verdict.bottleneck:
        yield from (("profile", line) for line in verdict.bottleneck.lines())
    for each in verdict.resources:
        spill = f", {each.spill_bytes} B spilled" if each.spill_bytes else ""
        text = f"{each.registers} registers, {each.shared_bytes} B shared memory"
        yield "resources", f"{each.function}: {text}{spill}"
    yield "device", verdict.device
    seconds = verdict.seconds
    spent = [("compile", seconds.compile), ("evaluate", seconds.evaluate)]
    yield "took", ", ".join(f"{name} {value:.2f} s" for name, value in spent if value is not None)
