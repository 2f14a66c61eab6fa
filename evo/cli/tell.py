"""Answer a request of a run."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from evo.cli._view import run_argument


@click.command()
@run_argument
@click.argument("request", metavar="REQUEST")
@click.argument("file", metavar="FILE|-", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--by", "name", metavar="NAME", default="", help="Who answers: the name it took it under."
)
def command(run: str, request: str, file: Path, name: str) -> None:
    """Answer REQUEST of RUN with the text in FILE (- is standard input).

    The answer is read at once as the run will read it: one that cannot be is refused with the
    reason, and the request stays as it was. What is taken in is on the disk when the command ends.

    Example: kernelevo tell softmax-h200 3f9a1c07d2 answer.md --by anna
    """
    from evo.requests.board import Board
    from evo.runs import resolve

    with Board(resolve(run)) as board:
        told = board.tell(request, _read(file), name)
        click.echo(f"took in the answer to {told.request}; {board.standing()}")


def _read(file: Path) -> str:
    try:
        if str(file) == "-":
            return sys.stdin.read()
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file} cannot be read as text: {error}") from error
