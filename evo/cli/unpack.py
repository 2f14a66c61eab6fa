"""Take in a run that was packed elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

SAID = {
    "new": "took in {name} at revision {revision}; continue it: kernelevo run {name}",
    "updated": "brought {name} up to revision {revision}; continue it: kernelevo run {name}",
    "same": "{name} is here at revision {revision} already: nothing to do",
}


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--as", "name", metavar="NAME", help="Take it in under another name.")
def command(file: Path, name: str | None) -> None:
    """Take in a run that kernelevo pack made one file of.

    A run of that name that is here is brought up to date, if the file holds all of it. A stale
    file, or one that went another way since, is refused: newer work is never overwritten.

    Example: kernelevo unpack softmax-h200-r412.tar.gz
    """
    from evo.unpack import unpack

    taken = unpack(file, name)
    click.echo(SAID[taken.how].format(name=taken.folder.name, revision=taken.revision))
