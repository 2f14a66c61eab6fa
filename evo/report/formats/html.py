"""HTML: one offline page; click a kernel for its source, differences, idea and times."""

from __future__ import annotations

from pathlib import Path

from evo.report.page import page
from evo.report.view import RunView


def write(view: RunView, path: Path) -> None:
    """Write the page."""
    path.write_text(page(view), encoding="utf-8", newline="\n")
