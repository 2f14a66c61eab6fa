"""Ideas for layer norm and RMS norm in C++."""

from __future__ import annotations

from operators.catalogue._shared.cpp import DYNAMIC, FLAGS, SIMD
from operators.catalogue.family import Book, Entry, Problem
from operators.idea import Category


def _rows(problem: Problem) -> bool:
    """The normalised dimensions are the last."""
    return bool(problem["inner"] == 1)


def _columns(problem: Problem) -> bool:
    return not _rows(problem)


def _aligned(problem: Problem) -> bool:
    """Every row (or, with columns, every row of the inner part) starts on a whole vector."""
    step = problem["cols"] if _rows(problem) else problem["inner"]
    return problem["dtype"] == "float32" and int(step) % 16 == 0


BOOK = Book(
    flags=FLAGS,
    entries=(
        Entry(
            "threads",
            "share the rows among all cores",
            Category.PARALLELISM,
            excludes=("slices",),
        ),
        Entry(
            "slices",
            "cut each row into slices, so that all cores work on it: partial sums of every slice "
            "first, then the slices are normalised",
            Category.PARALLELISM,
            applies=lambda p: _rows(p) and p["cols"] >= 4096,
        ),
        DYNAMIC,
        SIMD,
        Entry(
            "unroll",
            "unroll the vector loops with several independent accumulators, so that additions do "
            "not wait for each other",
            Category.CONTROL,
            requires=("simd",),
        ),
        Entry(
            "float_sums",
            "sum in float (the distance from a typical element, so that a large mean does no harm) "
            "and carry over into double every 16 additions, instead of adding each in double",
            Category.PRECISION,
            requires=("simd",),
            applies=_rows,
        ),
        Entry(
            "blocks",
            "take mean and squared deviations block by block while a block is in the first cache, "
            "and merge the blocks, so that the row is read from memory once for both",
            Category.MEMORY,
            requires=("simd",),
            applies=lambda p: _rows(p) and not p["rms"],
        ),
        Entry(
            "tile",
            "walk over a wide strip of neighbouring columns at once, with their sums in the first "
            "cache, so that reads are long and pages are not left after one line",
            Category.MEMORY,
            requires=("simd",),
            applies=_columns,
        ),
        Entry(
            "stream",
            "write the output with non-temporal stores that bypass the cache and need no read "
            "of the line first",
            Category.MEMORY,
            requires=("simd",),
            applies=_aligned,
        ),
        Entry(
            "prefetch",
            "prefetch the input some way ahead of the sums",
            Category.ASYNCHRONY,
            requires=("simd",),
        ),
        Entry(
            "hoist",
            "leave out the second subtraction that carries the mean's rounding error: PyTorch "
            "does not carry it either",
            Category.PRECISION,
            applies=lambda p: not p["rms"],
        ),
    ),
)
