"""Evolve kernels for a task, from a YAML file; an existing run is continued."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from evo.config import RunConfig
    from evo.executor import Executor
    from evo.machine import Machine
    from evo.plan import Plan
    from evo.replay import Replaying
    from evo.sitting import Manner
    from evo.supervision import Waits
    from fitness.description import TaskDescription

NO_KERNEL, STOPPED = 1, 130


@click.command()
@click.argument("target", metavar="CONFIG|RUN", required=False)
@click.option(
    "--set", "settings", metavar="KEY=VALUE", multiple=True, help="Override a key; repeatable."
)
@click.option("--new", is_flag=True, help="Begin NAME-2 (or -3, ...) where NAME exists.")
@click.option(
    "--until-waiting",
    is_flag=True,
    help="End when only answers, or a device that is not here, are waited for.",
)
@click.option(
    "--no-device",
    is_flag=True,
    help="Judge nothing here: go on with what authors do, for a judge elsewhere.",
)
@click.option(
    "--replay",
    "repeated",
    metavar="RUN",
    help="Repeat RUN from its recorded replies, as RUN-replay: new timings, no tokens.",
)
@click.option(
    "--on-miss",
    type=click.Choice(["stop", "ask"]),
    help="Of a replay, where a prompt comes up that was never asked.  [default: stop]",
)
@click.option(
    "--verdicts",
    type=click.Choice(["new", "recorded"]),
    help="Of a replay: judge anew, or take RUN's verdicts (no device needed).  [default: new]",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the plan, what it may cost and the first prompts; needs no key, spends nothing.",
)
def command(
    target: str | None,
    settings: tuple[str, ...],
    new: bool,
    until_waiting: bool,
    no_device: bool,
    repeated: str | None,
    on_miss: str | None,
    verdicts: str | None,
    dry_run: bool,
) -> None:
    """Evolve kernels as the YAML file CONFIG says, or continue RUN.

    A finished run shows its result. Ctrl-C stops; the same command goes on.

    Exit code 0: finished with a certified kernel, 1: finished without one, 2: the call is wrong,
    3: it waits for answers (kernelevo ask), 4: the device it needs is not here, 5: a replay came
    to a prompt that was never asked, 130: stopped.

    Example: kernelevo run configs/quickstart.yaml --set budget.hours=0.1
    """
    from evo.sitting import Manner

    if not repeated and (on_miss or verdicts):
        raise click.UsageError("--on-miss and --verdicts belong to --replay RUN")
    try:
        replaying = _replaying(repeated, on_miss, verdicts) if repeated else None
        planned = _planned(target, settings, new, repeated)
        if dry_run:
            _rehearse(planned)
            return
        if not planned.finished:
            _sit(planned, Manner(until_waiting, not no_device, replaying))
    except KeyboardInterrupt:
        raise click.exceptions.Exit(STOPPED) from None
    _show(planned)


def _planned(
    target: str | None, settings: tuple[str, ...], new: bool, repeated: str | None
) -> Plan:
    from evo.plan import plan, plan_replay

    if target is not None:
        return plan(target, settings, new)
    if repeated is None:
        raise click.UsageError("name a CONFIG to begin with, or a RUN to continue")
    return plan_replay(repeated, settings)


def _rehearse(planned: Plan) -> None:
    from evo.cli._view import print_lines
    from evo.rehearsal import rehearse
    from evo.report.rehearsal import lines
    from fitness.errors import TaskError
    from fitness.task import describe
    from operators.author import NoFamily

    try:
        found = rehearse(planned.config, describe(planned.config.task))
    except (TaskError, NoFamily) as error:
        raise click.ClickException(str(error)) from error
    print_lines(lines(found, planned.config))


def _replaying(repeated: str, on_miss: str | None, verdicts: str | None) -> Replaying:
    from evo.replay import OnMiss, Replaying, Verdicts
    from evo.runs import resolve

    return Replaying(resolve(repeated), OnMiss(on_miss or "stop"), Verdicts(verdicts or "new"))


def _sit(planned: Plan, manner: Manner) -> None:
    from rich.console import Console

    from evo.progress import Progress
    from evo.sitting import run
    from evo.store import FILE
    from evo.supervision import Stopped, Waits

    name, baseline = planned.folder.name, planned.config.fitness.baseline
    try:
        with Progress(name, baseline, Console(stderr=True, highlight=False)) as progress:
            run(planned, progress, _local, manner)
    except Waits as waits:
        click.echo(_waits(name, waits), err=True)
        raise click.exceptions.Exit(waits.exit_code) from None
    except Stopped as stop:
        begun = (planned.folder / FILE).exists()
        onwards = f"go on with: kernelevo run {name}" if begun else "before its first kernel"
        click.echo(f"stopped; {onwards}", err=True)
        raise click.exceptions.Exit(stop.exit_code) from None


def _waits(name: str, waits: Waits) -> str:
    """What is waited for, and what to do about it."""
    lines = []
    if waits.answers:
        lines.append(f"{_count(waits.answers, 'request')} open: kernelevo ask {name}")
    if waits.jobs:
        lines.append(
            f"{_count(waits.jobs, 'kernel')} to be judged where the device is: kernelevo pack "
            f"{name}, and there kernelevo unpack, kernelevo run {name} --until-waiting"
        )
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun} is" if number == 1 else f"{number} {noun}s are"


def _local(machine: Machine, task_path: Path, task: TaskDescription, config: RunConfig) -> Executor:
    from evo.executors.local import LocalExecutor

    workers = config.cpu.workers if machine.language == "cpp" else 1
    demand, seconds = config.fitness.demand, config.certification.sanitizer_seconds
    return LocalExecutor(machine, task_path, task.signature, demand, workers, seconds)


def _show(planned: Plan) -> None:
    """Print the result; exit with 1 if there is no certified kernel."""
    from evo.result import summary
    from evo.store import Store

    with Store.open(planned.folder) as store:
        click.echo(summary(store, planned.folder.name))
        if store.info.winner is None:
            raise click.exceptions.Exit(NO_KERNEL)
