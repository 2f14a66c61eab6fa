"""Show a run, or one kernel of it: source, idea, parents, times, reason of failure."""

from __future__ import annotations

import click

from evo.cli._view import json_option, opened, print_json, print_lines, run_argument


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
    if as_json:
        sealed = plain.verdict(certificate) if certificate else None
        print_json(summary.detail(found, one, sealed))
    else:
        print_lines(text.kernel_text(found, one, certificate))
