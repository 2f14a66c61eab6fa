"""Ideas for pointwise chains in C++."""

from __future__ import annotations

from operators.catalogue._shared.cpp import FLAGS
from operators.catalogue.family import Book, Entry, Problem
from operators.idea import Category

EXPONENTIALS = {"f_exp", "f_sigmoid", "f_tanh", "f_erf", "f_gelu", "f_softplus"}


def _exponentials(problem: Problem) -> bool:
    return bool(EXPONENTIALS & set(problem["functions"]))


def _divides(problem: Problem) -> bool:
    return bool({"f_sigmoid", "f_tanh"} & set(problem["functions"]))


def _aligned(problem: Problem) -> bool:
    return problem["dtype"] == "float32" and int(problem["dims"][-1]) % 16 == 0


BOOK = Book(
    flags=FLAGS,
    entries=(
        Entry(
            "threads",
            "share the elements among all cores",
            Category.PARALLELISM,
        ),
        Entry(
            "dynamic",
            "hand pieces out as cores become free, so that none waits for a slow one",
            Category.CONTROL,
            requires=("threads",),
        ),
        Entry(
            "simd",
            "work on whole vector registers, with polynomials in place of library calls for each "
            "element",
            Category.COMPUTE,
        ),
        Entry(
            "unroll",
            "unroll the loop, so that several independent vectors are under way at once",
            Category.CONTROL,
            requires=("simd",),
        ),
        Entry(
            "short_exp",
            "use a shorter polynomial for the exponential: a shorter chain, still within "
            "2 ulp in float32 (half tasks: within half's own rounding)",
            Category.PRECISION,
            requires=("simd",),
            applies=_exponentials,
        ),
        Entry(
            "quick_divide",
            "replace divisions by the processor's reciprocal estimate and a Newton step",
            Category.COMPUTE,
            requires=("simd",),
            applies=_divides,
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
            "prefetch the inputs some way ahead",
            Category.ASYNCHRONY,
            requires=("simd",),
        ),
        Entry(
            "pieces",
            "cut the work into pieces of a few pages, so that what a core reads and writes stays "
            "close together",
            Category.MEMORY,
        ),
    ),
)
