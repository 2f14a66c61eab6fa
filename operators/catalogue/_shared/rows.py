"""Ideas that all families over rows of a matrix share in CUDA; see ``rows.cuda.j2``."""

from __future__ import annotations

from collections.abc import Callable

from operators.catalogue.family import Entry, Problem
from operators.idea import Category

SIZES = {"float32": 4, "float16": 2, "bfloat16": 2}


def row_bytes(problem: Problem) -> int:
    """Bytes of one row."""
    return int(problem["cols"]) * SIZES[problem["dtype"]]


def rows(problem: Problem) -> int:
    """How many rows there are; every family has its own name for them."""
    return int(problem["rows"] if "rows" in problem else problem["outer"])


def fits(problem: Problem) -> bool:
    """Whether the templates can count rows and the elements of one in an int."""
    return 0 < problem["cols"] < 2**30 and 0 < rows(problem) < 2**30


def _vectors(problem: Problem) -> bool:
    """Whether at least two neighbours can be read at a time."""
    inner = int(problem.get("inner", 1))
    return (inner if inner > 1 else int(problem["cols"])) % 2 == 0


def _rows(least: int = 1, most: int = 2**30, count: int = 1) -> Callable[[Problem], bool]:
    """Applies to contiguous rows, at least ``count``, of ``least`` to ``most`` elements."""

    def applies(problem: Problem) -> bool:
        contiguous = problem.get("inner", 1) == 1
        return contiguous and least <= problem["cols"] <= most and rows(problem) >= count

    return applies


ROW_IDEAS = (
    Entry(
        "vector",
        "read and write 16 bytes per access instead of one element",
        Category.MEMORY,
        applies=_vectors,
    ),
    Entry(
        "unroll",
        "start several independent loads before the first is used, so that more bytes are "
        "under way at once",
        Category.ASYNCHRONY,
    ),
    Entry(
        "shuffle",
        "reduce within a warp by shuffles and meet in shared memory once, instead of a tree with "
        "a barrier at every step",
        Category.COMPUTE,
        applies=_rows(),
    ),
    Entry(
        "registers",
        "keep a row in registers between the passes, so that it is read from memory once",
        Category.MEMORY,
        applies=_rows(),
    ),
    Entry(
        "warp_rows",
        "give each row to one warp and several rows to a block: short rows need no barrier at all",
        Category.PARALLELISM,
        requires=("shuffle",),
        applies=_rows(most=8192, count=2),
    ),
    Entry(
        "cluster",
        "let a cluster of blocks share a row and exchange partial results through distributed "
        "shared memory, so that a row too long for one block stays on the chip (9.0 and later)",
        Category.PARALLELISM,
        requires=("registers", "shuffle"),
        excludes=("warp_rows", "team"),
        applies=_rows(8192),
    ),
    Entry(
        "team",
        "let a team of resident blocks share a row and exchange partial results over tagged words "
        "in the L2 cache: one launch, every row read once, also where clusters do not exist or "
        "the row fills the whole chip",
        Category.PARALLELISM,
        requires=("registers", "shuffle"),
        excludes=("warp_rows", "persistent"),
        applies=_rows(16384),
    ),
    Entry(
        "persistent",
        "launch as many blocks as the chip holds at once and let each go over several rows",
        Category.PARALLELISM,
        applies=_rows(count=2),
    ),
    Entry(
        "ahead",
        "let blocks go over several rows, and copy the next one into shared memory asynchronously "
        "while this one is reduced and written",
        Category.ASYNCHRONY,
        requires=("vector", "registers", "shuffle"),
        applies=lambda p: _rows(count=2)(p) and row_bytes(p) % 4 == 0,
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
        "write the result with streaming stores, which leave the L2 cache to what is read again",
        Category.MEMORY,
    ),
)
