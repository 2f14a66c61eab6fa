"""Ideas for convolutions in CUDA; the family conv_block shares most of them."""

from __future__ import annotations

from operators.catalogue.family import Book, Entry, Problem
from operators.idea import Category

# Bytes of shared memory that the smallest patch may take on any chip.
SMALLEST_PATCH = 32 * 1024

# Outputs of the convolution below one row of pooled ones, for 48 filters, that have room there.
MOST_POSITIONS = 450


def single(problem: Problem) -> bool:
    """Operands in float32, where the question of precision arises."""
    return bool(problem["dtype"] == "float32")


def half(problem: Problem) -> bool:
    """Operands in float16, which tensor cores take as they are."""
    return bool(problem["dtype"] == "float16")


def fits(problem: Problem) -> bool:
    """One channel below a minimal tile of outputs, and that tile, fit into shared memory."""
    rows = problem.get("pool_h", 1)
    cols = max(64, problem.get("pool_w", 1))
    height = (rows - 1) * problem["stride_h"] + problem["kh"]
    width = (cols - 1) * problem["stride_w"] + problem["kw"] + 7
    return bool(4 * height * width <= SMALLEST_PATCH and rows * cols <= MOST_POSITIONS)


def strided(problem: Problem) -> bool:
    """Neighbouring outputs read from 16-byte boundaries of the patch."""
    return bool(problem["stride_w"] % 4 == 0 and problem["kw"] >= 3)


PRECISIONS = ("tf32", "tf32x3", "half_operands", "split_half")
TENSOR = (*PRECISIONS, "tensor_cores")
PACKED = ("shared_patch", "packed_weights")


def _rivals(key: str) -> tuple[str, ...]:
    return tuple(other for other in PRECISIONS if other != key)


ENTRIES = (
    Entry(
        "shared_patch",
        "give each block a tile of outputs and stage the patch of the input that they share in "
        "shared memory, zeros at the border included",
        Category.MEMORY,
        applies=fits,
    ),
    Entry(
        "register_tile",
        "let each thread compute several filters at once, so that an input read from shared "
        "memory serves several multiply-adds",
        Category.COMPUTE,
        requires=("shared_patch",),
        excludes=TENSOR,
    ),
    Entry(
        "tap_vectors",
        "read four neighbouring inputs in one 16-byte access of shared memory, which the stride "
        "allows and which spares the bank conflicts of strided single reads",
        Category.MEMORY,
        requires=("shared_patch",),
        excludes=TENSOR,
        applies=strided,
    ),
    Entry(
        "packed_weights",
        "rewrite the weights first in the order in which blocks use them, and stage them step by "
        "step in shared memory",
        Category.MEMORY,
        requires=("shared_patch",),
    ),
    Entry(
        "async_copy",
        "let asynchronous copies bring the next weights to shared memory during the computation",
        Category.ASYNCHRONY,
        requires=PACKED,
    ),
    Entry(
        "vector_patch",
        "fetch the input's rows from device memory 16 bytes per thread at a time",
        Category.MEMORY,
        requires=("shared_patch",),
    ),
    Entry(
        "occupancy",
        "have the compiler limit registers so that two or more blocks share a multiprocessor and "
        "one computes while the other loads",
        Category.PARALLELISM,
        requires=("shared_patch",),
    ),
    Entry(
        "tensor_cores",
        "treat the convolution as a matrix product on the tensor cores whose left operand is "
        "gathered from the patch in shared memory; half operands, float sums",
        Category.COMPUTE,
        requires=PACKED,
        applies=half,
    ),
    Entry(
        "tf32x3",
        "treat the convolution as a matrix product on the tensor cores without giving up float32 "
        "precision: split operands in registers into two TF32 numbers, take three products, and "
        "add short partial sums into float32 registers",
        Category.PRECISION,
        requires=PACKED,
        excludes=_rivals("tf32x3"),
        applies=single,
    ),
    Entry(
        "split_half",
        "use the tensor cores at float32 precision and the rate of half: keep the patch and the "
        "weights as a high and a low half under power-of-two scales, take three products, and add "
        "short partial sums into float32 registers",
        Category.PRECISION,
        requires=PACKED,
        excludes=_rivals("split_half"),
        applies=single,
    ),
    Entry(
        "tf32",
        "round the operands to TF32 and multiply on the tensor cores; errors grow to about 3e-4, "
        "which only a coarser tier allows",
        Category.PRECISION,
        requires=PACKED,
        excludes=_rivals("tf32"),
        applies=single,
    ),
    Entry(
        "half_operands",
        "keep the patch and the weights as halves under power-of-two scales and multiply on the "
        "tensor cores; errors grow to about 3e-4, which only a coarser tier allows",
        Category.PRECISION,
        requires=PACKED,
        excludes=_rivals("half_operands"),
        applies=single,
    ),
)

BOOK = Book(
    entries=(
        *ENTRIES,
        Entry(
            "staged_store",
            "collect finished outputs in shared memory and write them out in whole rows",
            Category.MEMORY,
            requires=("shared_patch",),
        ),
    )
)
