"""Answer a request of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evo.cli._view import run_argument

if TYPE_CHECKING:
    from evo.requests.board import Board


@click.command()
@run_argument
@click.argument("request", metavar="REQUEST")
@click.argument("file", metavar="FILE|-", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--by", "name", metavar="NAME", default="", help="Who answers: the name it took it under."
)
@click.option("--draft", is_flag=True, help="Only try it: read it, and compile its kernel.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --draft: write the kernel there, edits made.",
)
def command(
    run: str, request: str, file: Path, name: str, draft: bool, output: Path | None
) -> None:
    """Answer REQUEST of RUN with the text in FILE (- is standard input).

    The answer is read at once as the run will read it: one that cannot be is refused with the
    reason, and the request stays as it was. What is taken in is on the disk when the command ends.

    --draft takes nothing in: it compiles the kernel for the run's device, which need not be here,
    as written and with every other value of each tunable; ideas are only read. Exit code 0: all
    compile, without spills; 1: not so; 2: the call is wrong, or the answer cannot be read.

    Example: kernelevo tell softmax-h200 3f9a1c07d2 answer.md --by anna
    """
    from evo.requests.board import Board
    from evo.runs import resolve

    if output and not draft:
        raise click.UsageError("--output goes with --draft")
    folder, text = resolve(run), _read(file)
    with Board(folder) as board:
        if draft:
            _try(board, request, text, output)
        else:
            told = board.tell(request, text, name)
            click.echo(f"took in the answer to {told.request}; {board.standing()}")


def _try(board: Board, request: str, text: str, output: Path | None) -> None:
    from evo.requests.draft import compiled, line, sound
    from evo.sitting import last_machine

    kernel = board.draft(request, text)
    if kernel is None:
        click.echo("the answer can be read; there is nothing in ideas to compile")
        return
    if output:
        output.write_text(kernel.source, encoding="utf-8")
    good = True
    try:
        for name, report in compiled(kernel, board.signature, last_machine(board.folder).arch):
            click.echo(line(name, report))
            good = good and sound(report)
    except (ValueError, RuntimeError) as error:
        raise click.UsageError(str(error)) from error
    if not good:
        raise click.exceptions.Exit(1)


def _read(file: Path) -> str:
    try:
        if str(file) == "-":
            return sys.stdin.read()
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file} cannot be read as text: {error}") from error
