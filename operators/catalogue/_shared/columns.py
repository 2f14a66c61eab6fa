"""Ideas for work along the middle of (outer, cols, inner) in CUDA; see ``columns.cuda.j2``."""

from __future__ import annotations

from operators.catalogue.family import Entry, Problem
from operators.idea import Category


def columns(problem: Problem) -> bool:
    """Whether there is something behind the dimension worked on."""
    return bool(problem.get("inner", 1) > 1)


COLUMN_IDEAS = (
    Entry(
        "slices",
        "let several threads of a block share a column and merge what they have in shared memory: "
        "more threads, each with a shorter way",
        Category.PARALLELISM,
        applies=lambda p: columns(p) and p["cols"] >= 16,
    ),
)
