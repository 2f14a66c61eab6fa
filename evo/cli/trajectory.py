"""Print the winner's path: round, ms, % of PyTorch, idea."""

from __future__ import annotations

import click

from evo.cli._view import json_option, print_json, print_lines, run_argument, view


@click.command()
@run_argument
@json_option
def command(run: str, as_json: bool) -> None:
    """Print the winner's path: round, ms, % of PyTorch, idea.

    RUN is a name under populations/ or a path. Each line is a step from the first kernel to the
    winner (or the best so far), along the parent whose code the child started from.

    Example: kernelevo trajectory softmax-h200
    """
    from evo.report import trajectory

    found = view(run)
    if as_json:
        print_json(trajectory.trajectory(found))
    else:
        print_lines(trajectory.lines(found))
