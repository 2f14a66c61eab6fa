"""Put known cheats and honest kernels before this machine's judge: are all told apart?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fitness.selftest import Outcome

ALL_RIGHT, NOT_ALL = 0, 1


@click.command()
@click.argument("names", nargs=-1)
@click.option("--device", help="cpu, cuda or cuda:N (a GPU, if there is one).")
@click.option("--language", help="Only kernels in it: cpp or cuda, as the device is, or module.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--list", "listing", is_flag=True, help="Only print what there is.")
def command(
    names: tuple[str, ...], device: str | None, language: str | None, as_json: bool, listing: bool
) -> None:
    """Judge kernels that cheat and kernels that only look odd, all of them or those NAMED.

    Every cheat must be rejected with a reason that names what it did, every honest kernel accepted.
    Exit code 0: so it is, 1: something was missed, 2: the call itself is wrong.

    Example: kernelevo selftest --device cuda:0
    """
    from fitness.selftest import as_record, chosen

    device = device or _device()
    try:
        found = chosen(device, names, language)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if listing:
        for specimen in found:
            click.echo(f"{specimen.kind:<13} {specimen.name}: {specimen.does}")
        return
    from cuda_sandbox.errors import UserError
    from fitness.hardware import require
    from fitness.selftest import run

    try:
        require(device)
        outcomes = list(_told(run(found, device), len(found), quiet=as_json))
    except UserError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        from evo.cli._view import print_json

        print_json(as_record(outcomes, device))
    else:
        click.echo("\n".join(table(outcomes)))
    wrong = any(outcome.complaint for outcome in outcomes)
    raise click.exceptions.Exit(NOT_ALL if wrong else ALL_RIGHT)


def _device() -> str:
    from cuda_sandbox import driver

    return "cuda:0" if driver.count() else "cpu"


def _told(outcomes: Iterator[Outcome], count: int, *, quiet: bool) -> Iterator[Outcome]:
    """Pass outcomes on; say on stderr how far it is, and at once what went wrong."""
    for number, outcome in enumerate(outcomes, 1):
        if not quiet and outcome.complaint:
            click.echo(f"missed: {outcome.specimen.name}: {outcome.complaint}", err=True)
        if not quiet and number % 25 == 0:
            click.echo(f"{number} of {count}", err=True)
        yield outcome


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """How many of each kind were told apart, and what was missed, for a person."""
    from fitness.corpus import HONEST, KINDS
    from fitness.selftest import tallies

    lines = [f"{'kind':<14}{'right':>6}{'of':>6}{'not run':>9}"]
    for kind, tally in tallies(outcomes).items():
        said = KINDS.get(kind, "odd but legal: must be accepted")
        lines.append(f"{kind:<14}{tally.right:>6}{tally.judged:>6}{tally.skipped:>9}  {said}")
    lines.append(_summary(outcomes, HONEST))
    for outcome in outcomes:
        if outcome.complaint:
            lines += [f"missed: {outcome.specimen.name} ({outcome.specimen.does})"]
            lines += [f"        {outcome.complaint}"]
    return lines


def _summary(outcomes: Sequence[Outcome], honest: str) -> str:
    judged = [outcome for outcome in outcomes if outcome.status is not None]
    cheats = [not outcome.complaint for outcome in judged if outcome.specimen.kind != honest]
    others = [not outcome.complaint for outcome in judged if outcome.specimen.kind == honest]
    return (
        f"caught {sum(cheats)} of {len(cheats)} cheats, "
        f"accepted {sum(others)} of {len(others)} honest kernels"
    )
