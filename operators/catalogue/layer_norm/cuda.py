"""Ideas for layer norm and RMS norm in CUDA."""

from __future__ import annotations

from operators.catalogue._shared.columns import COLUMN_IDEAS, columns
from operators.catalogue._shared.rows import ROW_IDEAS, SIZES, fits
from operators.catalogue.family import Book, Entry, Problem
from operators.idea import Category


def _rows(problem: Problem) -> bool:
    return not columns(problem)


def _long_rows(problem: Problem) -> bool:
    return bool(_rows(problem) and problem["cols"] >= 65536)


def _has_parameters(problem: Problem) -> bool:
    return bool(_rows(problem) and problem["outer"] > 1 and (problem["weight"] or problem["bias"]))


def _short_columns(problem: Problem) -> bool:
    return bool(columns(problem) and problem["cols"] * SIZES[problem["dtype"]] <= 512)


BOOK = Book(
    serves=fits,
    entries=(
        *ROW_IDEAS,
        *COLUMN_IDEAS,
        Entry(
            "kept_columns",
            "keep a column's elements in registers between the passes, so that it is read once",
            Category.MEMORY,
            excludes=("unroll",),
            applies=_short_columns,
        ),
        Entry(
            "onepass",
            "take mean and variance in one sweep, around a pivot near the mean (the median of "
            "three elements), and merge counts, sums and squared deviations pairwise",
            Category.MEMORY,
            excludes=("registers",),
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
            "share",
            "normalise several rows at once, so that the weight and the bias are read once for "
            "all of them and more loads are under way",
            Category.MEMORY,
            requires=("split", "shuffle"),
            applies=lambda p: _long_rows(p) and p["outer"] > 1,
        ),
        Entry(
            "weights",
            "keep the weight and the bias in shared memory for all the rows that a block goes "
            "over, as far as they fit",
            Category.MEMORY,
            requires=("registers", "shuffle"),
            applies=_has_parameters,
        ),
    ),
)
