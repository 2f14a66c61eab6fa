"""Show a run, or one kernel of it: source, idea, parents, times, reason of failure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from evo.cli._view import json_option, opened, print_json, print_lines, run_argument

if TYPE_CHECKING:
    from evo.individual import Individual
    from evo.store import Store


@click.command()
@run_argument
@click.argument("kernel", metavar="[ID]", required=False)
@json_option
def command(run: str, kernel: str | None, as_json: bool) -> None:
    """Show a run, or one kernel of it.

    Without ID: state, best, budget used, and counts by status, operator and idea category. With
    ID (or the word winner): idea, parents, times, precision, reason of failure, source.

    Example: kernelevo show softmax-h200 winner
    """
    from evo.report import plain, summary, text

    with opened(run) as (store, found):
        if kernel is None:
            if as_json:
                print_json(summary.summary(found))
            else:
                print_lines(text.run_text(found))
            return
        one = found.individual(kernel)
        certificate = store.certificate(one.id)
        _add_profile(store, one)
    if as_json:
        sealed = plain.verdict(certificate) if certificate else None
        print_json(summary.detail(found, one, sealed))
    else:
        print_lines(text.kernel_text(found, one, certificate))


def _add_profile(store: Store, one: Individual) -> None:
    """Let the verdict tell of the kernel's latest profile."""
    found = [each for each in store.verdicts(one.digest) if each.purpose == "profile"]
    if found and one.evaluation:
        one.evaluation = replace(one.evaluation, bottleneck=found[-1].evaluation.bottleneck)
