"""Extensions are files found by name: ``NAME.py`` in a package's folder is the extension NAME."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from cuda_sandbox.errors import UserError


class UnknownName(UserError):
    """A name that is none of the choices; the message gives the nearest and all of them."""


def unknown(kind: str, name: object, choices: Iterable[str]) -> str:
    """The message for a ``name`` that is no ``kind``: the nearest choice, and all of them."""
    known = list(choices)
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ";"
    return f"unknown {kind} {name!r}{hint} there are: {', '.join(known) or 'none'}"


def names(package: str) -> list[str]:
    """The extensions in ``package``, sorted: its files, but none that begins with ``_``."""
    folders = importlib.import_module(package).__path__
    stems = {path.stem for folder in folders for path in Path(folder).glob("*.py")}
    return sorted(stem for stem in stems if not stem.startswith("_"))


def load(package: str, kind: str, name: str) -> ModuleType:
    """The module ``package.name``. Raises UnknownName, calling it a ``kind``."""
    if name not in names(package):
        raise UnknownName(unknown(kind, name, names(package)))
    return importlib.import_module(f"{package}.{name}")
