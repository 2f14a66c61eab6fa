"""Draw or save the lineage: .html, .svg, .png, .graphml, .json, .dot."""

from __future__ import annotations

from pathlib import Path

import click

from evo.cli._view import run_argument, view


@click.command()
@run_argument
@click.option(
    "-o", "--output", required=True, metavar="FILE", type=click.Path(dir_okay=False, path_type=Path)
)
def command(run: str, output: Path) -> None:
    """Draw or save the lineage of a run, failures included, in the format that FILE's suffix names.

    \b
    .html     one offline page: click a kernel for source, differences, idea, times
    .svg .png generation against speedup, the winner's path in colour
    .graphml .json .dot   for other programs

    Example: kernelevo lineage softmax-h200 -o lineage.html
    """
    from evo.report import formats

    formats.write(view(run), output)
    click.echo(f"wrote {output}")
