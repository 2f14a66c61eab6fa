"""The records of a family of operators, and how to write one.

A family is a folder ``operators/catalogue/NAME/``, found by its name:

``__init__.py``
    holds ``FAMILY = Family(serves="...", recognise=recognise)``. ``recognise(graph)`` gets the
    traced reference (`operators.catalogue.graph.Graph`) and answers the *problem*, a mapping of
    names, sizes and switches that the templates need, or None if any operation is left that the
    family does not cover. It never looks at file names or at the task's source.
``LANGUAGE.py`` (``cpp.py``, ``cuda.py``)
    holds ``BOOK = Book(entries=(Entry(...), ...))``: the ideas for that language, in any order.
    ``Book.serves`` may refuse problems that only this language cannot do.
``kernel.LANGUAGE.j2``
    the Jinja2 template (``trim_blocks`` and ``lstrip_blocks`` are on; an unknown name is an error)
    of the whole translation unit. It sees

    ``problem``    what ``recognise`` answered
    ``keys``       the set of active ideas: ``{% if "online" in keys %}``; the empty set is the
                   plain port, "replace the operation with a plain C++/CUDA kernel"
    ``arguments``  the parameter list of ``launch`` as the task's header declares it:
                   ``extern "C" int launch({{ arguments }}) {``. Tensors go by their names in the
                   signature, so ``problem`` carries these names (``{{ problem.x }}``), then come
                   ``workspace`` and (cuda) ``stream``
    ``tune``       ``{{ tune("TILE", 64, [32, 64, 128]) }}`` writes the line
                   ``#define TILE 64  // tune: 32 64 128``, with the value a parent had in place of
                   the default where that is still a choice. Choices may depend on ``problem``
                   and ``keys``; every choice must compile and be right. A sub-variant is a tunable
                   too: test it with ``#if``.

    Shared pieces lie in ``_shared/`` and are included by ``{% include "_shared/simd.cpp.j2" %}``.
    The header is included already: it brings ``stddef.h``, ``stdint.h``, for cuda also the runtime,
    fp16, bf16 and mma headers, and the dimensions as ``X_D0``, ``X_SIZE``.

Every set of keys that respects ``requires``, ``excludes`` and ``applies`` must compile and be
right, alone and together; the tests try each idea by itself and random sets. Each idea must change
the code. An idea that is always a loss does not belong in the book; one that only sometimes wins
does. Precision: the default demand is tier fp32, errors at most 4 times PyTorch's own on every
distribution (large, tiny, constant rows, outliers, mean 1000 with deviation 0.1), so sums go
through several accumulators, exponentials are good to 1-2 ulp and variances are taken around the
mean. Ideas that give up precision are welcome where a task's tier allows it: say so in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from operators.catalogue.graph import Graph
from operators.idea import Category

Problem = Mapping[str, Any]


def always(_problem: Problem) -> bool:
    """Every problem will do."""
    return True


@dataclass(frozen=True, slots=True)
class Entry:
    """One composable idea: ``key`` is its name in the template, ``text`` what a person reads.

    ``requires``: keys that must be active too (taking this idea brings them along).
    ``excludes``: keys that cannot be active with it (taking this idea drops them);
    one of the two says so.
    ``applies``: whether the idea makes sense for a problem at all.
    """

    key: str
    text: str
    category: Category
    requires: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    applies: Callable[[Problem], bool] = always


@dataclass(frozen=True, slots=True)
class Book:
    """A family's ideas in one language, and the compile flags its kernels carry.

    Raises:
        ValueError: two entries share a key or a text, or name keys that do not exist.
    """

    entries: tuple[Entry, ...]
    serves: Callable[[Problem], bool] = always
    flags: tuple[str, ...] = ()
    by_key: dict[str, Entry] = field(init=False)

    def __post_init__(self) -> None:
        by_key = {entry.key: entry for entry in self.entries}
        if len(by_key) != len(self.entries) or len({e.text for e in self.entries}) != len(by_key):
            raise ValueError("two entries of a book share a key or a text")
        for entry in self.entries:
            if unknown := {*entry.requires, *entry.excludes} - by_key.keys():
                raise ValueError(f"entry {entry.key!r} names keys that do not exist: {unknown}")
        object.__setattr__(self, "by_key", by_key)

    def clash(self, one: str, other: str) -> bool:
        """Whether two keys exclude each other."""
        return other in self.by_key[one].excludes or one in self.by_key[other].excludes

    def with_key(self, keys: tuple[str, ...], key: str) -> tuple[str, ...]:
        """``keys`` plus ``key`` and what it requires, minus what these exclude; oldest first."""
        for needed in self.by_key[key].requires:
            if needed not in keys:
                keys = self.with_key(keys, needed)
        for rival in [other for other in keys if self.clash(key, other)]:
            keys = self.without(keys, rival)
        return (*(k for k in keys if k != key), key)

    def without(self, keys: tuple[str, ...], key: str) -> tuple[str, ...]:
        """``keys`` minus ``key`` and everything that requires it."""
        left = tuple(k for k in keys if k != key)
        for other in left:
            if key in self.by_key[other].requires and other in left:
                left = self.without(left, other)
        return left

    def joined(self, keys: Iterable[str]) -> tuple[str, ...]:
        """As many of ``keys`` as go together, with what they require; earlier ones win."""
        chosen: tuple[str, ...] = ()
        for key in keys:
            new = tuple(k for k in self.with_key((), key) if k not in chosen)
            if not any(self.clash(one, other) for one in new for other in chosen):
                chosen += new
        return chosen


@dataclass(frozen=True, slots=True)
class Family:
    """An operator family: ``serves`` says in a few words which operations it covers."""

    serves: str
    recognise: Callable[[Graph], Problem | None]
