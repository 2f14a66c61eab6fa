"""What the commands share that read a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from evo.report.view import RunView
    from evo.store import Store

F = TypeVar("F", bound=Callable[..., Any])
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def run_argument(function: F) -> F:
    """The argument RUN."""
    return click.argument("run")(function)


def json_option(function: F) -> F:
    """The flag ``--json``, as ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")(
        function
    )


@contextmanager
def opened(run: str) -> Iterator[tuple[Store, RunView]]:
    """The store of a run, and all that stands in it. Raises a UserError where there is none."""
    from evo.report.view import RunView
    from evo.runs import in_use, resolve
    from evo.store import Store

    folder = resolve(run)
    with Store.open(folder) as store:
        yield store, RunView.read(store, busy=in_use(folder))


def view(run: str) -> RunView:
    """All that stands in the store of a run. Raises a UserError where there is none."""
    with opened(run) as (_, found):
        return found


def print_lines(lines: Iterable[str]) -> None:
    """Print text that others wrote: control characters could take over a terminal."""
    for line in lines:
        click.echo(CONTROL.sub("\ufffd", line))


def print_json(data: Any) -> None:
    """Print one JSON object."""
    import json

    from evo.report.plain import finite

    click.echo(json.dumps(finite(data), indent=1, allow_nan=False))
