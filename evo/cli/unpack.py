"""Take in a run that was packed elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

SAID = {
    "new": "took in {name} at revision {revision}; continue it: kernelevo run {name}",
    "updated": "brought {name} up to revision {revision}; continue it: kernelevo run {name}",
    "same": "{name} is here at revision {revision} already",
    "kept": "{name} went on here, to revision {revision}, and holds every verdict of the pack",
}


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--as", "name", metavar="NAME", help="Take it in under another name.")
def command(file: Path, name: str | None) -> None:
    """Take in a run that kernelevo pack made one file of.

    A run of that name that is here is brought up to date. Answers told on either side are put
    together, and of the two records the one goes on that holds every verdict and paid reply of the
    other. Where each has some that the other lacks, nothing is changed: newer work is never
    overwritten.

    Example: kernelevo unpack softmax-h200-r412.tar.gz
    """
    from evo.unpack import unpack

    taken = unpack(file, name)
    said = SAID[taken.how].format(name=taken.folder.name, revision=taken.revision)
    if taken.how == "same" and not taken.answers:
        said += ": nothing to do"
    click.echo(said)
    if taken.answers:
        click.echo(f"{taken.answers} answers were not here and were taken in")
    for request in taken.doubled:
        click.echo(f"request {request} was answered on both sides: what was told first counts")
