"""Print the C++ header that a task's kernels are compiled with."""

from __future__ import annotations

from pathlib import Path

import click

from cuda_sandbox.backend import names


@click.command()
@click.argument("task", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--language",
    type=click.Choice(names()),
    default="cuda",
    show_default=True,
    help="Language of the kernel.",
)
def command(task: Path, language: str) -> None:
    """Print the header for TASK: prototype, dimensions, numbers, the modules' settings.

    It is included before every candidate. What a user should know of how the task is judged goes
    to stderr.
    """
    from fitness.task import describe

    description = describe(task)
    click.echo(description.signature.header(language), nl=False)
    for remark in description.remarks:
        click.echo(f"note: {remark}", err=True)
