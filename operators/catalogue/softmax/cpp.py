"""Ideas for row softmax in C++."""

from __future__ import annotations

from operators.catalogue._shared.cpp import FLAGS
from operators.catalogue.family import Book, Entry, Problem
from operators.idea import Category


def _keeps_exponentials(problem: Problem) -> bool:
    return not problem["log"] and problem["dtype"] == "float32"


def _fits_cache(problem: Problem) -> bool:
    return not problem["log"] and bool(problem["cols"] <= 65536)


def _aligned_rows(problem: Problem) -> bool:
    return problem["dtype"] == "float32" and int(problem["cols"]) % 16 == 0


BOOK = Book(
    flags=FLAGS,
    entries=(
        Entry(
            "threads",
            "share the rows among all cores",
            Category.PARALLELISM,
            applies=lambda p: p["rows"] > 1,
        ),
        Entry(
            "dynamic",
            "hand rows out in small chunks as cores become free, so that none waits for a slow one",
            Category.CONTROL,
            requires=("threads",),
            applies=lambda p: p["rows"] > 1,
        ),
        Entry(
            "simd",
            "work on whole vector registers, with a polynomial for the exponential in place of "
            "one library call per element",
            Category.COMPUTE,
        ),
        Entry(
            "unroll",
            "unroll the vector loops with several independent accumulators, so that additions "
            "and maxima do not wait for each other",
            Category.CONTROL,
            requires=("simd",),
        ),
        Entry(
            "short_exp",
            "use a shorter polynomial for the exponential: a shorter chain, still within "
            "2 ulp in float32 (half tasks: within half's own rounding)",
            Category.PRECISION,
            requires=("simd",),
        ),
        Entry(
            "keep_exp",
            "store the exponentials in the output while summing and only scale them afterwards, "
            "so that each is computed once",
            Category.MEMORY,
            excludes=("online", "row_buffer"),
            applies=_keeps_exponentials,
        ),
        Entry(
            "row_buffer",
            "keep a row's exponentials in a small buffer that stays in the cache, and write the "
            "output exactly once",
            Category.MEMORY,
            excludes=("online",),
            applies=_fits_cache,
        ),
        Entry(
            "online",
            "find maximum and sum in one sweep, rescaling the sum when the maximum grows, so that "
            "the row is read twice instead of three times",
            Category.MEMORY,
            requires=("simd",),
        ),
        Entry(
            "reciprocal",
            "divide once per row and multiply every element by the reciprocal",
            Category.COMPUTE,
            applies=lambda p: not p["log"],
        ),
        Entry(
            "stream",
            "write the output with non-temporal stores that bypass the cache and need no read "
            "of the line first",
            Category.MEMORY,
            requires=("simd",),
            excludes=("keep_exp",),
            applies=_aligned_rows,
        ),
        Entry(
            "prefetch",
            "prefetch the next row while this one is being written",
            Category.ASYNCHRONY,
            requires=("simd",),
        ),
    ),
)
