"""Ideas that all families over rows of a matrix share in CUDA; see ``rows.cuda.j2``."""

from __future__ import annotations

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


ROW_IDEAS = (
    Entry(
        "vector",
        "read and write 16 bytes per access instead of one element",
        Category.MEMORY,
        applies=lambda p: row_bytes(p) % (2 * SIZES[p["dtype"]]) == 0,
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
    ),
    Entry(
        "registers",
        "keep a row in registers between the passes, so that it is read from memory once",
        Category.MEMORY,
    ),
    Entry(
        "warp_rows",
        "give each row to one warp and several rows to a block: short rows need no barrier at all",
        Category.PARALLELISM,
        requires=("shuffle",),
        applies=lambda p: p["cols"] <= 8192 and rows(p) > 1,
    ),
    Entry(
        "cluster",
        "let a cluster of blocks share a row and exchange partial results through distributed "
        "shared memory, so that a row too long for one block stays on the chip (9.0 and later)",
        Category.PARALLELISM,
        requires=("registers", "shuffle"),
        excludes=("warp_rows", "team"),
        applies=lambda p: p["cols"] >= 8192,
    ),
    Entry(
        "team",
        "let a team of resident blocks share a row and exchange partial results over tagged words "
        "in the L2 cache: one launch, every row read once, also where clusters do not exist or "
        "the row fills the whole chip",
        Category.PARALLELISM,
        requires=("registers", "shuffle"),
        excludes=("warp_rows",),
        applies=lambda p: p["cols"] >= 16384,
    ),
    Entry(
        "persistent",
        "launch as many blocks as the chip holds at once and let each go over several rows",
        Category.PARALLELISM,
        excludes=("team",),
        applies=lambda p: rows(p) > 1,
    ),
    Entry(
        "ahead",
        "let blocks go over several rows, and copy the next one into shared memory asynchronously "
        "while this one is reduced and written",
        Category.ASYNCHRONY,
        requires=("vector", "registers", "shuffle"),
        applies=lambda p: rows(p) > 1 and row_bytes(p) % 4 == 0,
    ),
    Entry(
        "bulk",
        "let the bulk copy engine fetch the next row, one copy per warp that arrives on a barrier "
        "in shared memory, instead of one instruction per thread and 16 bytes (9.0 and later)",
        Category.ASYNCHRONY,
        requires=("ahead",),
        applies=lambda p: rows(p) > 1 and row_bytes(p) % 16 == 0,
    ),
    Entry(
        "stream",
        "write the result with streaming stores, which leave the L2 cache to what is read again",
        Category.MEMORY,
    ),
)
