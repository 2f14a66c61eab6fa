"""Keep a winner with its lineage under populations/archive/."""

from __future__ import annotations

import click

from evo.cli._view import run_argument, view


@click.command()
@run_argument
@click.option("--force", is_flag=True, help="Replace the archive of another run of this name.")
def command(run: str, force: bool) -> None:
    """Keep the winner of a run under populations/archive/NAME/, small enough for the repository.

    Source, task, lineage (JSON and SVG), trajectory, configuration, environment, certificate;
    no absolute paths, no host names. Archiving a run again brings its archive up to date.

    Example: kernelevo archive softmax-h200
    """
    from evo.archive import archive
    from evo.runs import populations_dir

    folder = archive(view(run), populations_dir() / "archive", force=force)
    click.echo(f"wrote {folder}")
