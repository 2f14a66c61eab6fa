"""Export a kernel as a drop-in PyTorch module that needs nothing of kernelevo."""

from __future__ import annotations

from pathlib import Path

import click

from evo.cli._view import opened, run_argument


@click.command()
@run_argument
@click.argument("kernel", metavar="[ID]", default="winner")
@click.option("-o", "--output", required=True, metavar="DIR", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Write into DIR though it is not empty.")
def command(run: str, kernel: str, output: Path, force: bool) -> None:
    """Export the winner, or the kernel ID, as a drop-in PyTorch module.

    DIR becomes a Python package with the task's constructor and state_dict that needs PyTorch and
    nvcc or g++, nothing of kernelevo. python -m DIR compares it with the original.

    Example: kernelevo export softmax-h200 -o fast_softmax
    """
    from evo.export.bundle import Bundle, usable

    with opened(run) as (store, found):
        one = found.individual(kernel)
        bundle = Bundle(found, one, store.certificate(one.id))
    bundle.write(output, force=force)
    name = output.resolve().name
    click.echo(f"wrote {one.id} to {output}; try it: python {output}")
    if bundle.certificate is None:
        click.echo("note: this kernel is not certified (its README says so)", err=True)
    if not usable(name):
        click.echo(f"note: {name!r} is no Python identifier: rename it to import it", err=True)
