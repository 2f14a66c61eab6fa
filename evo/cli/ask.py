"""Show the next request that a run has for people and agents, and take it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evo.cli._view import json_option, print_json, print_lines, run_argument

if TYPE_CHECKING:
    from evo.requests.board import Board, Entry

NONE_OPEN = 1


@click.command()
@run_argument
@click.argument("request", metavar="[REQUEST]", required=False)
@click.option("--take", "name", metavar="NAME", help="Take it: nobody else is given it meanwhile.")
@click.option(
    "--lease",
    "minutes",
    metavar="MINUTES",
    type=float,
    default=60,
    show_default=True,
    help="For how long it is taken; an answer that comes later still counts if it is the first.",
)
@click.option("--wait", metavar="MINUTES", type=float, default=0, help="Wait for one to come up.")
@click.option("--drop", is_flag=True, help="Give REQUEST back that --take NAME has taken.")
@click.option(
    "--files",
    "into",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write it there: request.md, header.h, and the sources of the kernels it is about.",
)
@click.option("--all", "everything", is_flag=True, help="List all requests instead.")
@json_option
def command(
    run: str,
    request: str | None,
    name: str | None,
    minutes: float,
    wait: float,
    drop: bool,
    into: Path | None,
    everything: bool,
    as_json: bool,
) -> None:
    """Show the next open request of RUN, or the request called REQUEST.

    A request is a prompt of an author "ask": answer it with kernelevo tell. Several may answer at
    once: each takes requests under a name of its own. Who asks again under a name gets what it
    has taken and not answered.

    Exit code 0: here is a request, 1: none is to be had now, 2: the call is wrong.

    Example: kernelevo ask softmax-h200 --take anna --json
    """
    from evo.requests.board import Board, patiently
    from evo.runs import resolve

    if drop and not (name and request):
        raise click.UsageError("--drop needs REQUEST and --take NAME")
    if into and (drop or everything):
        raise click.UsageError("--files goes with one request, not with --drop or --all")
    folder = resolve(run)
    if everything or drop:
        with Board(folder) as board:
            return _list(board, as_json) if everything else _drop(board, request, name)
    found, why = patiently(folder, lambda board: _wanted(board, request, name, minutes), 60 * wait)
    if into and found:
        return _write(folder, found, into)
    return _show(folder.name, found, why, as_json)


def _write(run: Path, entry: Entry, into: Path) -> None:
    from evo.requests.board import Board
    from evo.requests.files import write
    from evo.requests.wording import line

    with Board(run) as board:
        written = write(board, entry, into)
    print_lines([line(entry), *map(str, written)])


def _wanted(board: Board, request: str | None, name: str | None, minutes: float) -> Entry | None:
    if name is not None:
        return board.take(name, minutes, request)
    return board.find(request) if request else board.next()


def _drop(board: Board, request: str | None, name: str | None) -> None:
    board.give_back(request or "", name or "")
    click.echo(f"{request} is free again", err=True)


def _show(run: str, entry: Entry | None, why: str, as_json: bool) -> None:
    if as_json:
        from evo.requests.wording import record

        print_json(record(run, entry) if entry else {"request": None, "why": why})
    elif entry:
        from evo.requests.wording import text

        print_lines(text(run, entry).splitlines())
    else:
        click.echo(why, err=True)
    if entry is None:
        raise click.exceptions.Exit(NONE_OPEN)


def _list(board: Board, as_json: bool) -> None:
    from evo.requests.wording import line, listed

    entries = board.entries()
    if as_json:
        rows: list[dict[str, Any]] = [listed(entry) for entry in entries]
        print_json({"run": board.folder.name, "requests": rows})
        return
    print_lines(map(line, entries))
    click.echo(board.standing(), err=True)
