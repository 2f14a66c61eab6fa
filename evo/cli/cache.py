"""Show or clear the cache of compiled kernels, baselines and task descriptions."""

from __future__ import annotations

import click

from cuda_sandbox import cache


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

    It only saves time: no run needs it to be shown or continued. KERNELEVO_CACHE moves it,
    KERNELEVO_CACHE_MB limits the compiled objects.
    """
    if clear:
        click.echo(f"freed {human(cache.clear())} in {cache.cache_dir()}")
        return
    found = cache.entries()
    click.echo(f"{cache.cache_dir()} (objects are kept to {human(cache.limit_bytes())})")
    for entry in (*found, cache.CacheEntry("all", *_totals(found))):
        click.echo(f"  {entry.name:<24}{entry.files:>7} files {human(entry.bytes):>9}")


def _totals(found: tuple[cache.CacheEntry, ...]) -> tuple[int, int]:
    return sum(entry.files for entry in found), sum(entry.bytes for entry in found)
