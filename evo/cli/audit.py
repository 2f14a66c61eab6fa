"""Audit tasks: could a kernel that does not do the work pass? Files, or folders of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuda_sandbox.errors import UserError
from evo.cli._view import CONTROL, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from fitness.audit import Audit
    from fitness.evaluation import Demand

ALL_USABLE, NOT_ALL_USABLE, WRONG_CALL = 0, 1, 2
COLOURS = {
    "sound": "green",
    "strengthened": "cyan",
    "refused": "red",
    "broken": "red",
    "not audited": "yellow",
}
LEAST_WIDTH = 100  # of a table that goes into a file


@click.command()
@click.argument("places", metavar="TASK...", nargs=-1, required=True)
@click.option("--tier", type=click.Choice(["fp32", "tf32", "half"]), help="Default: fp32.")
@click.option("--tolerance", type=float, help="Instead of a tier: the largest max|y-t|/rms(t).")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or cuda:N.")
@click.option("--deadline", default=300.0, show_default=True, help="Seconds for each task.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def command(
    places: tuple[str, ...],
    tier: str | None,
    tolerance: float | None,
    device: str,
    deadline: float,
    as_json: bool,
) -> None:
    """Audit each TASK (a file, or a folder with all that is in it) before kernels are judged by it.

    sound: answers that cost no work fail. strengthened: some pass on the task's own inputs, and the
    judge's further inputs and drawn parameters reject them. refused: some pass whatever is drawn.

    Exit code 0: all are sound or strengthened, 1: not all, 2: the call is wrong.

    Example: kernelevo audit configs/tasks/suite
    """
    try:
        found = audited(places, demanded(tier, tolerance), device, deadline)
    except (UserError, click.ClickException) as error:
        if not as_json:
            raise
        message = error.message if isinstance(error, click.ClickException) else str(error)
        click.echo(json.dumps({"tasks": None, "error": message}))
        raise click.exceptions.Exit(WRONG_CALL) from error
    if as_json:
        print_json({"counts": Counter(one.outcome for one in found), "tasks": map_json(found)})
    else:
        show(found)
    usable = all(audit.outcome.usable for audit in found)
    raise click.exceptions.Exit(ALL_USABLE if usable else NOT_ALL_USABLE)


def demanded(tier: str | None, tolerance: float | None) -> Demand:
    """The precision demanded. Raises UsageError where both are given, or none that there is."""
    from fitness.evaluation import Demand, Tier

    if tier and tolerance is not None:
        raise click.UsageError("give --tier or --tolerance, not both")
    try:
        return Demand(None, tolerance) if tolerance is not None else Demand(Tier(tier or "fp32"))
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def audited(places: Sequence[str], demand: Demand, device: str, deadline_s: float) -> list[Audit]:
    """All audits, with a line on stderr for the one that is under way."""
    from rich.console import Console

    from fitness.audit import Job, audits, find_tasks
    from fitness.hardware import require

    if deadline_s <= 0:
        raise click.UsageError("--deadline must be more than 0 seconds")
    if device != "cpu":
        require(device)
    jobs = [Job(path, demand, device, deadline_s) for path in find_tasks(list(map(Path, places)))]
    with Console(stderr=True, highlight=False).status("auditing") as status:
        found = []
        for number, audit in enumerate(audits(jobs), start=1):
            found.append(audit)
            status.update(f"auditing: {number} of {len(jobs)}")
    return found


def map_json(found: Sequence[Audit]) -> list[dict[str, object]]:
    """The audits as JSON values, each with its summary."""
    return [{**asdict(audit), "summary": audit.summary} for audit in found]


def show(found: Sequence[Audit]) -> None:
    """Print the table, the notes, and how many came out how."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, LEAST_WIDTH)
    console.print(table(found))
    counts = Counter(audit.outcome for audit in found)
    said = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    console.print(f"{len(found)} tasks: {said}")


def table(found: Sequence[Audit]) -> Table:
    """A row for each task."""
    from rich.table import Table
    from rich.text import Text

    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("task", "outcome", "what was found"):
        rows.add_column(heading, overflow="fold", no_wrap=heading != "what was found")
    for audit in found:
        colour = COLOURS[audit.outcome]
        rows.add_row(
            Path(audit.task).stem,
            Text(audit.outcome, style=colour),
            Text(CONTROL.sub("\ufffd", "\n".join(lines(audit)))),
        )
    return rows


def lines(audit: Audit) -> list[str]:
    """What was found, a sentence a line; then notes, and how the task was made smaller."""
    said = [audit.reason] if audit.reason else []
    said += [finding.text for finding in audit.findings if finding.level != "note"]
    said += [f"note: {finding.text}" for finding in audit.findings if finding.level == "note"]
    if audit.sizes:
        said.append(f"note: audited with {', '.join(audit.sizes)}")
    return said
