"""Ideas for reductions in CUDA."""

from __future__ import annotations

from operators.catalogue._shared.columns import COLUMN_IDEAS, columns
from operators.catalogue._shared.rows import ROW_IDEAS, fits, rows
from operators.catalogue.family import Book, Entry, Problem
from operators.idea import Category

# A reduction reads every element once: nothing is worth keeping, and little is written.
ROW_KEYS = ("vector", "unroll", "shuffle", "warp_rows", "persistent", "hints")
# Blocks that take tickets are counted in an array of this many words at most.
TICKETS = 2**20


def _long(problem: Problem) -> bool:
    """Whether there are too few reductions to fill a chip, and each is worth cutting up."""
    results = rows(problem) * int(problem["inner"])
    return bool(problem["cols"] >= 4096 and results <= (2**17 if columns(problem) else 1024))


def _serves(problem: Problem) -> bool:
    return fits(problem) and bool(0 < problem["inner"] < 2**30)


BOOK = Book(
    serves=_serves,
    entries=(
        *(entry for entry in ROW_IDEAS if entry.key in ROW_KEYS),
        *COLUMN_IDEAS,
        Entry(
            "split",
            "cut every reduction into pieces for many blocks and merge the pieces in a fixed "
            "order in a second, small kernel",
            Category.PARALLELISM,
            excludes=("warp_rows", "persistent"),
            applies=_long,
        ),
        Entry(
            "last_block",
            "let the block that finishes last merge the pieces in the same launch, found by a "
            "ticket; the order of merging stays fixed",
            Category.CONTROL,
            requires=("split",),
            applies=lambda p: _long(p) and (columns(p) or rows(p) <= TICKETS),
        ),
    ),
)
