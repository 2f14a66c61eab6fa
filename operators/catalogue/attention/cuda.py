"""Ideas for attention in CUDA."""

from __future__ import annotations

from operators.catalogue.family import Book, Entry, Problem
from operators.idea import Category

# Widest heads for which tiles of keys and values fit into shared memory everywhere.
WIDEST = 128


def narrow(problem: Problem) -> bool:
    """Heads for which tiles of keys and values fit into shared memory everywhere."""
    return bool(problem["head"] <= WIDEST and problem["head_v"] <= WIDEST)


def half(problem: Problem) -> bool:
    """Operands in float16, which tensor cores take as they are."""
    return bool(problem["dtype"] == "float16")


def positive(problem: Problem) -> bool:
    """The largest score stays the largest when scaled."""
    return float(problem["scale"].rstrip("f")) > 0


BOOK = Book(
    entries=(
        Entry(
            "kv_tiles",
            "give each block a tile of queries and pass tiles of keys and values through shared "
            "memory, so that each is fetched once per block and the running maximum is renewed "
            "once per tile instead of once per key",
            Category.MEMORY,
            applies=lambda problem: narrow(problem) and positive(problem),
        ),
        Entry(
            "vector_loads",
            "fetch queries, keys and values from device memory 16 bytes per thread at a time",
            Category.MEMORY,
            requires=("kv_tiles",),
        ),
        Entry(
            "padding",
            "lengthen the rows in shared memory by one access, so that threads reading a column "
            "do not queue for the same bank",
            Category.MEMORY,
            requires=("kv_tiles",),
        ),
        Entry(
            "async_copy",
            "keep a ring of tiles of keys and values that asynchronous copies fill while earlier "
            "ones are worked on",
            Category.ASYNCHRONY,
            requires=("kv_tiles", "vector_loads"),
        ),
        Entry(
            "exp2",
            "fold the scale and the change of base into one factor and use the hardware's power "
            "of two for the exponentials",
            Category.COMPUTE,
        ),
        Entry(
            "tensor_cores",
            "take both products on the tensor cores, the probabilities passing from one to the "
            "other in registers",
            Category.COMPUTE,
            requires=("kv_tiles", "vector_loads"),
            applies=half,
        ),
        Entry(
            "wide_warps",
            "give each warp 32 queries instead of 16, so that keys and values read from shared "
            "memory serve twice",
            Category.COMPUTE,
            requires=("tensor_cores",),
        ),
        Entry(
            "lazy_rescale",
            "leave sums and results under an old maximum until the new one is larger by more than "
            "a factor of 256; most tiles then need no rescaling",
            Category.CONTROL,
            requires=("tensor_cores",),
        ),
        Entry(
            "warpgroups",
            "multiply with Hopper's warpgroup instructions, which read keys and values straight "
            "from swizzled shared memory, and let the softmax of one tile run while the tensor "
            "cores gather the tile before; elsewhere than on Hopper nothing changes",
            Category.ASYNCHRONY,
            requires=("tensor_cores", "async_copy", "exp2"),
            excludes=("wide_warps", "padding", "occupancy"),
            applies=lambda problem: problem["head"] == problem["head_v"] in (64, 128),
        ),
        Entry(
            "occupancy",
            "have the compiler limit registers so that several blocks share a multiprocessor and "
            "the exponentials of one overlap with the products of another",
            Category.PARALLELISM,
            requires=("kv_tiles",),
        ),
    )
)
