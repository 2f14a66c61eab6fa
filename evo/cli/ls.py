"""List the runs: state, task, best, generations, devices."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from evo.store import Store

HEADS = (
    *("run", "state", "task", "best", "ms", "%", "generations", "evaluations"),
    *("calls", "tokens", "dollars", "device"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One run. ``ms`` is the best kernel's time, ``percent`` of the baseline; None without one."""

    name: str
    state: str
    task: str
    best: str | None
    ms: float | None
    percent: float | None
    baseline: str
    generations: int
    evaluations: int
    calls: int
    tokens: int
    dollars: float
    device: str


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON list on stdout.")
def command(as_json: bool) -> None:
    """List the runs under populations/.

    A run that was killed is called interrupted; kernelevo run NAME goes on with it.
    """
    from evo import runs

    rows = [row for name in runs.names() if (row := _row(runs.populations_dir() / name))]
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows]))
    elif rows:
        _print(rows)
    else:
        click.echo(f"no runs under {runs.populations_dir()}/; begin one: kernelevo run CONFIG")


def _row(folder: Path) -> Row | None:
    from evo.runs import in_use
    from evo.schema import StoreError
    from evo.store import Store

    try:
        with Store.open(folder) as store:
            return _facts(store, folder.name, in_use(folder))
    except StoreError as error:
        click.echo(str(error), err=True)
        return None


def _facts(store: Store, name: str, busy: bool) -> Row:
    info = store.info
    closed = [g.number for g in store.generations() if g.survivors is not None]
    identity = info.winner or info.best
    evaluation = None
    if identity:
        certificate = store.certificate(identity) if info.winner else None
        evaluation = certificate or store.individual(identity).evaluation
    speedup = evaluation.speedup.get(info.demand.baseline) if evaluation else None
    spent = store.spent()
    return Row(
        name,
        info.standing(busy=busy),
        info.task.name,
        identity,
        evaluation.time_ms.median if evaluation and evaluation.time_ms else None,
        100 * speedup if speedup else None,
        info.demand.baseline,
        max(closed, default=0),
        spent.evaluations,
        spent.calls,
        spent.tokens,
        spent.dollars,
        evaluation.device if evaluation else info.environment.get("hardware", ""),
    )


def _print(rows: list[Row]) -> None:
    """A plain table, as wide as it needs to be: it is read in terminals and in pipes."""
    table = [HEADS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(HEADS))]
    for line in table:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def _cells(row: Row) -> tuple[str, ...]:
    ms = "" if row.ms is None else f"{row.ms:.4g}"
    share = "" if row.percent is None else f"{row.percent:.1f} of {row.baseline}"
    counts = tuple(map(str, (row.generations, row.evaluations, row.calls, row.tokens)))
    counts = (*counts, f"{row.dollars:.2f}")
    return (row.name, row.state, row.task, row.best or "", ms, share, *counts, row.device)
