"""File formats of the lineage: one file each, whose name is the suffix.

``NAME.py`` holds ``write(view, path)``, which writes the lineage of a RunView to ``path``.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from cuda_sandbox.errors import UserError
from evo.report.view import RunView


class UnknownFormat(UserError):
    """No file of this folder is named like the suffix."""


def suffixes() -> list[str]:
    """The suffixes that can be written, sorted: ``.dot``, ``.graphml``, ..."""
    files = Path(__file__).parent.glob("*.py")
    return sorted(f".{path.stem}" for path in files if not path.stem.startswith("_"))


def write(view: RunView, path: Path) -> None:
    """Write the lineage in the format that the suffix of ``path`` names.

    Raises UnknownFormat for another suffix, and UserError where the file cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in suffixes():
        raise UnknownFormat(
            f"cannot write a lineage as {path.name!r}: the suffix must be one of "
            f"{', '.join(suffixes())}"
        )
    module = importlib.import_module(f"{__name__}.{suffix[1:]}")
    try:
        module.write(view, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
