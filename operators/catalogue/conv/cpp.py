"""Ideas for convolutions in C++."""

from __future__ import annotations

from operators.catalogue._shared.cpp import FLAGS
from operators.catalogue.family import Book, Entry, Problem
from operators.idea import Category


def _padded(problem: Problem) -> bool:
    return bool(problem["pad_h"] or problem["pad_w"])


def _half(problem: Problem) -> bool:
    return bool(problem["dtype"] == "float16")


IDEAS = (
    Entry(
        "threads",
        "share images and filters among all cores",
        Category.PARALLELISM,
    ),
    Entry(
        "dynamic",
        "hand work out in small parts as cores become free, so that none waits for a slow one",
        Category.CONTROL,
        requires=("threads",),
    ),
    Entry(
        "pad",
        "copy the images into a buffer with a border of zeros once, so that the inner loops need "
        "no tests for the edge",
        Category.CONTROL,
        applies=lambda p: _padded(p) or _half(p),
    ),
    Entry(
        "filters",
        "reorder the weights so that neighbouring filters lie side by side, and compute whole "
        "vectors of filters at once",
        Category.COMPUTE,
    ),
    Entry(
        "pixels",
        "compute several neighbouring pixels at once, so that every weight that is loaded serves "
        "all of them",
        Category.MEMORY,
        requires=("filters",),
    ),
    Entry(
        "unroll",
        "unroll the loop along the kernel's rows",
        Category.CONTROL,
        requires=("filters",),
        applies=lambda p: p["kw"] > 1,
    ),
    Entry(
        "prefetch",
        "prefetch the weights some taps ahead",
        Category.ASYNCHRONY,
        requires=("filters",),
    ),
    Entry(
        "float_sums",
        "sum in float within a channel and carry only the channels' sums over in double, instead "
        "of adding every product in double",
        Category.PRECISION,
        excludes=("filters",),
    ),
    Entry(
        "widen",
        "turn half into float while images and weights are copied, once per element instead of at "
        "every use",
        Category.PRECISION,
        requires=("filters", "pad"),
        applies=_half,
    ),
)

BOOK = Book(flags=FLAGS, entries=IDEAS)
