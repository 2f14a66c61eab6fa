"""SVG: generation against log speedup, the winner's path in colour."""

from __future__ import annotations

from pathlib import Path

from evo.report.formats._figure import save
from evo.report.view import RunView


def write(view: RunView, path: Path) -> None:
    """Write the static picture."""
    save(view, path, "svg")
