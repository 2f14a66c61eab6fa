"""Ideas for layer norm and RMS norm in CUDA."""

from __future__ import annotations

from operators.catalogue._shared.rows import ROW_IDEAS, fits
from operators.catalogue.family import Book, Entry, Problem
from operators.idea import Category


def _long_rows(problem: Problem) -> bool:
    return bool(problem["cols"] >= 65536)


def _has_parameters(problem: Problem) -> bool:
    return bool(problem["outer"] > 1 and (problem["weight"] or problem["bias"]))


def _serves(problem: Problem) -> bool:
    return fits(problem) and bool(problem["inner"] == 1)


BOOK = Book(
    serves=_serves,
    entries=(
        *ROW_IDEAS,
        Entry(
            "onepass",
            "take mean and variance in one sweep, around a pivot near the mean (the median of "
            "three elements), and merge counts, means and squared deviations pairwise",
            Category.MEMORY,
            applies=lambda p: not p["rms"],
        ),
        Entry(
            "split",
            "cut every row into pieces for many blocks: one kernel gathers each piece's moments, "
            "a second one merges them in a fixed order and normalises",
            Category.PARALLELISM,
            excludes=("registers", "warp_rows", "cluster", "team", "persistent", "ahead"),
            applies=_long_rows,
        ),
        Entry(
            "reverse",
            "normalise the rows in the opposite order of gathering: what was read last is still "
            "in the L2 cache",
            Category.MEMORY,
            requires=("split",),
            applies=lambda p: _long_rows(p) and p["outer"] > 1,
        ),
        Entry(
            "weights",
            "keep the weight and the bias in shared memory for all the rows that a block goes "
            "over, as far as they fit",
            Category.MEMORY,
            requires=("registers", "shuffle"),
            applies=lambda p: bool(
                p["inner"] == 1 and p["outer"] > 1 and (p["weight"] or p["bias"])
            ),
        ),
    ),
)
