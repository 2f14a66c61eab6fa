"""Show or clear the cache of compiled kernels, baselines and task descriptions."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import click

from cuda_sandbox.cache import cache_dir


def sizes(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Each entry of the cache folder as ``(name, files, bytes)``, largest first."""
    entries = []
    for entry in folder.iterdir() if folder.is_dir() else ():
        files = [path for path in (entry, *entry.rglob("*")) if path.is_file()]
        entries.append((entry.name, len(files), sum(path.stat().st_size for path in files)))
    yield from sorted(entries, key=lambda row: -row[2])


def human(size: int) -> str:
    """``size`` bytes for a reader: ``human(2_500_000)`` is ``2.5 MB``."""
    number = float(size)
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


@click.command()
@click.option("--clear", is_flag=True, help="Delete everything in the cache.")
def command(clear: bool) -> None:
    """Show what the cache holds, or delete it.

    Runs do not need the cache to be shown or continued: it only saves time.
    """
    folder = cache_dir()
    rows = list(sizes(folder))
    if clear:
        shutil.rmtree(folder, ignore_errors=True)
        click.echo(f"cleared {human(sum(row[2] for row in rows))} from {folder}")
        return
    click.echo(f"{folder} (KERNELEVO_CACHE moves it)")
    total = ("all", sum(row[1] for row in rows), sum(row[2] for row in rows))
    for name, files, size in (*rows, total):
        click.echo(f"  {name:<24}{files:>7} files {human(size):>9}")
