"""Saves the static picture; the same run gives the same bytes."""

from __future__ import annotations

import warnings
from pathlib import Path

from evo.report.figure import draw
from evo.report.view import RunView


def save(view: RunView, path: Path, form: str) -> None:
    """Draw and save as ``form`` (``svg`` or ``png``), without a date or a random salt."""
    import matplotlib

    metadata = {"Date": None} if form == "svg" else {}
    with matplotlib.rc_context({"svg.hashsalt": view.info.name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # an idea may use any letter
        draw(view).savefig(path, format=form, metadata=metadata)
