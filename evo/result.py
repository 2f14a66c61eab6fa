"""What a run has come to, in a few lines."""

from __future__ import annotations

from evo.lineage import headline
from evo.store import Store
from fitness.evaluation import Evaluation, Interval


def span(interval: Interval | None) -> str:
    """A time with its interval: ``0.153 ms [0.152, 0.154]``."""
    if interval is None:
        return "no time"
    return f"{interval.median:.4g} ms [{interval.low:.4g}, {interval.high:.4g}]"


def percent(evaluation: Evaluation, baseline: str) -> str:
    """Speedup as published, in % of the baseline: ``132.1% of eager [131.0, 133.2]``."""
    speedup = evaluation.speedup.get(baseline)
    if speedup is None:
        return f"not compared with {baseline}"
    text = f"{speedup:.1%} of {baseline}"
    bounds = _bounds(evaluation, baseline, speedup)
    return text if bounds is None else f"{text} [{100 * bounds[0]:.1f}, {100 * bounds[1]:.1f}]"


def _bounds(evaluation: Evaluation, baseline: str, speedup: float) -> tuple[float, float] | None:
    """The widest that both intervals allow."""
    kernel, reference = evaluation.time_ms, evaluation.baselines.get(baseline)
    if kernel is None or kernel.low <= 0:
        return None
    if reference is None:
        return speedup * kernel.median / kernel.high, speedup * kernel.median / kernel.low
    return reference.time_ms.low / kernel.high, reference.time_ms.high / kernel.low


def summary(store: Store, name: str) -> str:
    """The end of a run for a person: the winner, its figures, and where to look next."""
    info = store.info
    lines = [f"{name}: {info.outcome or info.state}"]
    lines += _best(store, info.winner, info.best, info.demand.baseline)
    spent = store.spent()
    lines.append(
        f"spent       {spent.evaluations} evaluations, {spent.seconds / 60:.1f} minutes, "
        f"{spent.calls} calls, {spent.tokens} tokens, {spent.dollars:.2f} dollars"
    )
    lines.append(f"trajectory  kernelevo trajectory {name}")
    lines.append(f"lineage     kernelevo lineage {name} -o lineage.html")
    if spent.calls:
        lines.append(f"models      kernelevo models {name}")
    if info.winner:
        lines.append(f"export      kernelevo export {name} -o DIR")
    return "\n".join(lines)


def _best(store: Store, winner: str | None, best: str | None, baseline: str) -> list[str]:
    identity = winner or best
    if identity is None:
        return ["no kernel was accepted: kernelevo show RUN says why each failed"]
    individual = store.individual(identity)
    evaluation = (store.certificate(identity) if winner else None) or individual.evaluation
    assert evaluation is not None
    figures = f"{span(evaluation.time_ms)}, {percent(evaluation, baseline)}"
    rank = "winner     " if winner else "best so far"
    return [
        f"{rank} {identity}: {figures}{', certified' if winner else ', not certified'}",
        f"device      {evaluation.device}",
        f"idea        {headline(individual)}",
    ]
