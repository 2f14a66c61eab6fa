"""Ideas for reductions in C++."""

from __future__ import annotations

from operators.catalogue._shared.cpp import DYNAMIC, FLAGS, SIMD
from operators.catalogue.family import Book, Entry, Problem
from operators.idea import Category

# Not var and std: a square that is rounded to float is off by more than PyTorch's
SUMS = ("sum", "mean", "norm1", "norm2")


def _rows(problem: Problem) -> bool:
    """The reduced elements lie next to each other."""
    return bool(problem["inner"] == 1)


def _columns(problem: Problem) -> bool:
    return not _rows(problem)


def _sums(problem: Problem) -> bool:
    return problem["op"] in SUMS


BOOK = Book(
    flags=FLAGS,
    serves=lambda p: bool(p["cols"] < 2**31),  # an index must fit a lane
    entries=(
        Entry(
            "threads",
            "share the results among all cores",
            Category.PARALLELISM,
            excludes=("slices",),
        ),
        Entry(
            "slices",
            "cut each row into slices, so that all cores work on it, and merge the partial results",
            Category.PARALLELISM,
            applies=lambda p: _rows(p) and p["cols"] >= 4096,
        ),
        DYNAMIC,
        SIMD,
        Entry(
            "unroll",
            "unroll the vector loop with several independent accumulators, so that operations do "
            "not wait for each other",
            Category.CONTROL,
            requires=("simd",),
        ),
        Entry(
            "float_sums",
            "sum in float and carry over into double every 16 additions, instead of adding every "
            "element in double",
            Category.PRECISION,
            requires=("simd",),
            applies=_sums,
        ),
        Entry(
            "prefetch",
            "prefetch the input some way ahead",
            Category.ASYNCHRONY,
            requires=("simd",),
        ),
        Entry(
            "blocks",
            "take mean and squared deviations block by block while a block is in the first cache, "
            "so that the row is read from memory once for both",
            Category.MEMORY,
            requires=("simd",),
            applies=lambda p: _rows(p) and p["op"] in ("var", "std"),
        ),
        Entry(
            "tile",
            "walk over a wide strip of neighbouring columns at once, with their results in the "
            "first cache, so that reads are long",
            Category.MEMORY,
            requires=("simd",),
            applies=_columns,
        ),
    ),
)
