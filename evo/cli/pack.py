"""Make one file of a run to carry it to another machine."""

from __future__ import annotations

from pathlib import Path

import click

from evo.cli._view import run_argument


@click.command()
@run_argument
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write  [default: NAME-rREVISION.tar.gz, with -aANSWERS where it has any]",
)
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
def command(run: str, output: Path | None, force: bool) -> None:
    """Make one file of a run to carry it to another machine, where unpack takes it in.

    A run that is going on may be packed: the file holds what it had recorded at that moment.
    Open requests, answers and leases go along; answers told on either side meanwhile are put
    together when the run comes back.

    Example: kernelevo pack softmax-h200 -o softmax.tar.gz
    """
    from evo.pack import pack
    from evo.runs import in_use, resolve

    folder = resolve(run)
    file, manifest = pack(folder, output, force=force)
    size = file.stat().st_size / 1e6
    told = f" with {manifest.told} answers" if manifest.told else ""
    click.echo(
        f"wrote {file}: {manifest.name} at revision {manifest.revision}{told}, {size:.1f} MB"
    )
    if in_use(folder):
        click.echo(
            "note: the run goes on here; once kernels were judged in both copies, neither can be "
            "taken in over the other",
            err=True,
        )
