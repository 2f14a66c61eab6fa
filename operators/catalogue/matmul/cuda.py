"""Ideas for matrix products in CUDA."""

from __future__ import annotations

from operators.catalogue.family import Book, Entry, Problem
from operators.idea import Category


def single(problem: Problem) -> bool:
    """Operands in float32, where the question of precision arises."""
    return bool(problem["dtype"] == "float32")


def half(problem: Problem) -> bool:
    """Operands in float16, which tensor cores take as they are."""
    return bool(problem["dtype"] == "float16")


def deep(problem: Problem) -> bool:
    """So few tiles of the result that most multiprocessors would have none, and much to add up."""
    tiles = -(-problem["m"] // 128) * -(-problem["n"] // 128) * problem["batch"]
    return bool(tiles < 128 and problem["k"] >= 512)


def vectors(problem: Problem) -> bool:
    """Rows of both matrices are whole 16-byte vectors of halves."""
    widths = (
        problem["m" if problem["trans_a"] else "k"],
        problem["k" if problem["trans_b"] else "n"],
    )
    return all(width % 8 == 0 for width in widths)


PRECISIONS = ("tf32", "tf32x3", "half_operands", "split_half")


def _rivals(key: str) -> tuple[str, ...]:
    return (*(other for other in PRECISIONS if other != key), "register_tile")


BOOK = Book(
    entries=(
        Entry(
            "shared_tiles",
            "stage tiles of both matrices in shared memory, so that each element is fetched from "
            "device memory once per block and not once per output",
            Category.MEMORY,
        ),
        Entry(
            "register_tile",
            "let each thread compute a small square of outputs in registers, so that a value read "
            "from shared memory serves several multiply-adds",
            Category.COMPUTE,
            requires=("shared_tiles",),
        ),
        Entry(
            "vector_loads",
            "fetch the tiles from device memory 16 bytes per thread at a time",
            Category.MEMORY,
            requires=("shared_tiles",),
        ),
        Entry(
            "padding",
            "lengthen the tiles' rows in shared memory by one access, so that threads reading "
            "a column do not queue for the same bank",
            Category.MEMORY,
            requires=("shared_tiles",),
        ),
        Entry(
            "async_copy",
            "keep a ring of tiles in shared memory that asynchronous copies fill several steps "
            "ahead of the computation",
            Category.ASYNCHRONY,
            requires=("vector_loads",),
        ),
        Entry(
            "block_order",
            "order the blocks in narrow bands, so that those running together reuse each other's "
            "rows and columns from the L2 cache",
            Category.PARALLELISM,
            requires=("shared_tiles",),
        ),
        Entry(
            "occupancy",
            "have the compiler limit registers so that two or more blocks share a multiprocessor "
            "and cover each other's waits",
            Category.PARALLELISM,
            requires=("shared_tiles",),
        ),
        Entry(
            "split_k",
            "cut the inner dimension among several blocks and add their partial results in a fixed "
            "order, so that a small result still fills the device",
            Category.PARALLELISM,
            requires=("shared_tiles",),
            applies=deep,
        ),
        Entry(
            "tensor_cores",
            "multiply on the tensor cores: half operands by matrix instructions, float sums",
            Category.COMPUTE,
            requires=("shared_tiles", "vector_loads"),
            excludes=("register_tile",),
            applies=half,
        ),
        Entry(
            "tf32x3",
            "multiply on the tensor cores without giving up float32 precision: split each operand "
            "in registers into two TF32 numbers, take three products, and add short partial sums "
            "into float32 registers",
            Category.PRECISION,
            requires=("shared_tiles", "vector_loads"),
            excludes=_rivals("tf32x3"),
            applies=single,
        ),
        Entry(
            "split_half",
            "use the tensor cores at float32 precision and the rate of half: a first pass writes "
            "each operand as a high and a low half under a power-of-two scale per tile, then three "
            "half products go into short partial sums and float32 registers",
            Category.PRECISION,
            requires=("shared_tiles", "vector_loads"),
            excludes=_rivals("split_half"),
            applies=single,
        ),
        Entry(
            "warpgroups",
            "multiply with Hopper's warpgroup instructions, which read both operands straight from "
            "swizzled shared memory and run while the next tiles arrive; elsewhere than on Hopper "
            "nothing changes",
            Category.COMPUTE,
            requires=("tensor_cores", "async_copy"),
            excludes=("padding", "occupancy", "split_k"),
            applies=lambda problem: half(problem) and vectors(problem),
        ),
        Entry(
            "split_warpgroups",
            "take the three half products of split operands with Hopper's warpgroup instructions, "
            "straight from swizzled shared memory; elsewhere than on Hopper nothing changes",
            Category.COMPUTE,
            requires=("split_half", "async_copy"),
            excludes=("padding", "occupancy", "split_k"),
            applies=single,
        ),
        Entry(
            "tf32",
            "round the operands to TF32 and multiply on the tensor cores; errors grow to about "
            "3e-4, which only a coarser tier allows",
            Category.PRECISION,
            requires=("shared_tiles", "vector_loads"),
            excludes=_rivals("tf32"),
            applies=single,
        ),
        Entry(
            "half_operands",
            "round the operands to half under a power-of-two scale per tile and multiply on the "
            "tensor cores; errors grow to about 3e-4, which only a coarser tier allows",
            Category.PRECISION,
            requires=("shared_tiles", "vector_loads"),
            excludes=_rivals("half_operands"),
            applies=single,
        ),
    )
)
