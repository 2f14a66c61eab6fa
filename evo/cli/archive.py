"""Keep a winner with its lineage under populations/archive/."""

from __future__ import annotations

import click

from evo.cli._view import run_argument, view


@click.command()
@run_argument
@click.option("--force", is_flag=True, help="Replace the archive of another run of this name.")
@click.option("--store", is_flag=True, help="Keep the whole run beside it, packed.")
def command(run: str, force: bool, store: bool) -> None:
    """Keep the winner of a run under populations/archive/NAME/, small enough for the repository.

    Source, task, lineage (JSON and SVG), trajectory, configuration, environment, certificate;
    no absolute paths, no host names. Archiving a run again brings its archive up to date. With
    --store the folder holds run.tar.gz too: every kernel, prompt and reply, for kernelevo unpack.

    Example: kernelevo archive softmax-h200
    """
    from evo.archive import archive
    from evo.pack import pack
    from evo.runs import populations_dir, resolve

    folder = archive(view(run), populations_dir() / "archive", force=force)
    if store:
        pack(resolve(run), folder / "run.tar.gz", force=True)
    click.echo(f"wrote {folder}")
