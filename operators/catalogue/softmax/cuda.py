"""Ideas for row softmax in CUDA."""

from __future__ import annotations

from operators.catalogue._shared.rows import ROW_IDEAS, fits
from operators.catalogue.family import Book, Entry
from operators.idea import Category

BOOK = Book(
    serves=fits,
    entries=(
        *ROW_IDEAS,
        Entry(
            "online",
            "find maximum and sum in one sweep, rescaling the sum when the maximum grows, so that "
            "the row is read twice instead of three times and exchanged once instead of twice",
            Category.MEMORY,
        ),
        Entry(
            "exp2",
            "compute exponentials as powers of two, which the hardware does directly, of the "
            "difference to the maximum times log2(e): within 2 ulp near the maximum",
            Category.COMPUTE,
        ),
        Entry(
            "keep_exp",
            "keep the exponentials in the registers instead of the values, so that each is "
            "computed once, and only scale them at the end",
            Category.COMPUTE,
            requires=("registers",),
            applies=lambda p: not p["log"],
        ),
    ),
)
