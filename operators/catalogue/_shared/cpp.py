"""What all books in C++ share."""

from __future__ import annotations

from operators.catalogue.family import Entry
from operators.idea import Category

# The vector types' arithmetic becomes fused multiply-adds, as in GNU's own dialect.
FLAGS = ("-ffp-contract=fast",)

DYNAMIC = Entry(
    "dynamic",
    "hand work out in small chunks as cores become free, so that none waits for a slow one",
    Category.CONTROL,
    requires=("threads",),
)

SIMD = Entry(
    "simd",
    "work on whole vector registers",
    Category.COMPUTE,
)
