"""Ideas for pointwise chains in CUDA."""

from __future__ import annotations

from operators.catalogue.family import Book, Entry, Problem
from operators.idea import Category

QUICK = {"f_exp", "f_sigmoid", "f_tanh", "f_softplus"}


def _quick(problem: Problem) -> bool:
    return problem["dtype"] == "float16" and bool(QUICK & set(problem["functions"]))


def _divides(problem: Problem) -> bool:
    return problem["dtype"] == "float32" and "f_sigmoid" in problem["functions"]


def _serves(problem: Problem) -> bool:
    return bool(0 < problem["size"] < 2**36)


BOOK = Book(
    serves=_serves,
    entries=(
        Entry(
            "vector",
            "read and write 16 bytes per access instead of one element",
            Category.MEMORY,
            applies=lambda p: p["dims"][-1] % 2 == 0,
        ),
        Entry(
            "unroll",
            "start several independent loads before the first is used, so that more bytes are "
            "under way at once",
            Category.ASYNCHRONY,
        ),
        Entry(
            "persistent",
            "launch as many blocks as the chip holds at once and let each go over several pieces",
            Category.PARALLELISM,
        ),
        Entry(
            "ahead",
            "load the next piece before this one is computed and stored",
            Category.ASYNCHRONY,
            requires=("persistent",),
        ),
        Entry(
            "lines",
            "let a block stay within one line, so that coordinates are worked out and broadcast "
            "elements are read once per line instead of once per access",
            Category.CONTROL,
            applies=lambda p: len(p["dims"]) > 1 and p["dims"][-1] >= 512,
        ),
        Entry(
            "hints",
            "tell the caches what to do with what is read once: not to keep it in L1, to let it go "
            "first in L2, or to fetch 256 bytes at a time",
            Category.MEMORY,
            requires=("vector",),
        ),
        Entry(
            "stream",
            "write the result with streaming stores, which leave the L2 cache to what is read "
            "again",
            Category.MEMORY,
        ),
        Entry(
            "quick",
            "use the hardware's own exponential and tanh, good to about 2^-11: half's precision",
            Category.PRECISION,
            applies=_quick,
        ),
        Entry(
            "fast_divide",
            "divide by the hardware's reciprocal, within 2 ulp, instead of exactly",
            Category.COMPUTE,
            applies=_divides,
        ),
    ),
)
