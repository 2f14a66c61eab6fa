"""Languages: how a candidate of each comes to run, and on which devices.

A language is the file of its name here, else the backend of its name in ``cuda_sandbox``.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

from cuda_sandbox import backend
from fitness.languages._language import Language
from fitness.languages._native import Native

__all__ = ["Language", "find", "names", "of_suffix"]


def _files() -> tuple[str, ...]:
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(name for name in found if not name.startswith("_"))


def names() -> tuple[str, ...]:
    """The languages there are."""
    return tuple(sorted({*_files(), *backend.names()}))


@functools.cache
def find(name: str) -> Language:
    """The language of this name. Raises ValueError, listing those there are."""
    if name not in names():
        raise ValueError(f"no language is called {name!r}; choose from: {', '.join(names())}")
    if name in _files():
        made: Language = importlib.import_module(f"{__name__}.{name}").make()
        return made
    return Native(backend.find(name))


def of_suffix() -> dict[str, Language]:
    """The languages by the endings of their files."""
    return {language.suffix: language for language in map(find, names())}
