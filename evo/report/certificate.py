"""A certificate as text for a terminal: the same lines wherever it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fitness.certificate import Document

WIDTH = 24


def certificate_lines(found: Document) -> list[str]:
    """Verdict, checks, figures and conditions; older certificates have fewer lines."""
    return [*_head(found), *_checks(found), *_figures(found), *_conditions(found)]


def comparison_lines(found: Mapping[str, Any]) -> list[str]:
    """What `fitness.certificate.compare` says."""
    return [found["summary"], *(f"  {line}" for line in found["lines"])]


def _head(found: Document) -> Iterator[str]:
    if "verdict" in found:
        reason = f": {found['reason']}" if found["reason"] else ""
        yield f"{found['verdict']}{reason}"
    task = found["task"]
    yield _line("task", task["name"] if isinstance(task, Mapping) else task)
    yield _line("source digest", found["source_digest"][:16])
    yield _line("device", found["environment"]["device"])
    if precision := found.get("precision"):
        own = f"PyTorch's own {precision['reference_error']:.1e}"
        tier = precision["tier"] or "none"
        yield _line("precision", f"tier {tier}, error {precision['error']:.1e} ({own})")


def _checks(found: Document) -> Iterator[str]:
    for name, said in found["checks"].items():
        yield _line(name, said)


def _figures(found: Document) -> Iterator[str]:
    figures = found.get("figures") or {}
    ratios, tiers = figures.get("speedup", {}), _tiers(found)
    for name, time in figures.get("time_ms", {}).items():
        ratio = f", {_span(ratios[name])} times the kernel's" if name in ratios else ""
        tier = f", tier {tiers[name]}" if tiers.get(name) else ""
        yield _line(name, f"{_span(time)} ms{ratio}{tier}")
    for name, why in figures.get("absent", {}).items():
        yield _line(name, why)
    for name, known in found.get("baselines", {}).items():
        if isinstance(known, str):
            yield _line(name, known)


def _tiers(found: Document) -> dict[str, str]:
    known = found.get("baselines", {})
    return {name: base["tier"] for name, base in known.items() if not isinstance(base, str)}


def _conditions(found: Document) -> Iterator[str]:
    if clocks := found.get("clocks"):
        yield _line("clocks", clocks["summary"])
    for line in found.get("bottleneck", []):
        yield _line("profile", line)
    if "made" in found:
        yield _line("made", f"{found['made']} {found['made_by']}".rstrip())
        yield _line("repeat with", found["command"])


def _line(name: str, text: object) -> str:
    return f"  {name:<{WIDTH}}{text}"


def _span(figure: Mapping[str, float]) -> str:
    return f"{figure['median']:.4g} [{figure['low']:.4g}, {figure['high']:.4g}]"
