"""Ideas for matrix products in C++."""

from __future__ import annotations

from operators.catalogue._shared.cpp import FLAGS
from operators.catalogue.family import Book, Entry, Problem
from operators.idea import Category


def _dots(problem: Problem) -> bool:
    """Both factors run along k in memory."""
    return not problem["trans_a"] and bool(problem["trans_b"] or problem["n"] == 1)


BOOK = Book(
    flags=FLAGS,
    entries=(
        Entry(
            "threads",
            "share the tiles of the result among all cores",
            Category.PARALLELISM,
        ),
        Entry(
            "dynamic",
            "hand tiles out as cores become free, so that none waits for a slow one",
            Category.CONTROL,
            requires=("threads",),
        ),
        Entry(
            "tile",
            "compute a small tile of the result in vector registers, so that every loaded value "
            "is used several times",
            Category.COMPUTE,
        ),
        Entry(
            "dot",
            "compute each element as a vectorised dot product along k, for which both factors "
            "lie in order",
            Category.COMPUTE,
            excludes=("tile",),
            applies=_dots,
        ),
        Entry(
            "float_sums",
            "sum in float within groups of 256 products and only carry the groups' sums over in "
            "double, instead of adding every product in double",
            Category.PRECISION,
            excludes=("tile", "dot"),
        ),
        Entry(
            "pack_b",
            "copy the second factor once into panels as wide as a tile, so that the inner loop "
            "reads it in order",
            Category.MEMORY,
            requires=("tile",),
        ),
        Entry(
            "widen",
            "turn half into float while packing, once per element instead of at every use",
            Category.PRECISION,
            requires=("pack_b",),
            applies=lambda p: p["dtype"] == "float16",
        ),
        Entry(
            "pack_a",
            "copy a block of the first factor next to each other before it is used by many tiles",
            Category.MEMORY,
            requires=("tile", "blocks"),
        ),
        Entry(
            "blocks",
            "work through larger blocks, so that one block of each factor stays in the cache while "
            "its tiles are computed",
            Category.MEMORY,
            requires=("tile",),
        ),
        Entry(
            "unroll",
            "unroll the loop over k",
            Category.CONTROL,
            requires=("tile",),
        ),
        Entry(
            "prefetch",
            "prefetch the second factor some rows ahead",
            Category.ASYNCHRONY,
            requires=("tile",),
        ),
    ),
)
