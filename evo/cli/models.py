"""Say which model and which category of idea brought what, and for how much."""

from __future__ import annotations

import click

from evo.cli._view import json_option, opened, print_json, print_lines, run_argument


@click.command()
@run_argument
@json_option
def command(run: str, as_json: bool) -> None:
    """Say which model and which category of idea brought what, and for how much.

    For each: calls, replies that held nothing usable, ideas, kernels, those accepted, significant
    gains, tokens, dollars, and the gain for a dollar.

    Example: kernelevo models softmax-h200
    """
    from evo.report.models import Accounts, document, lines

    with opened(run) as (store, found):
        accounts = Accounts.read(store, found)
    if as_json:
        print_json(document(accounts, found.info.name))
    else:
        print_lines(lines(accounts, found.info.name))
