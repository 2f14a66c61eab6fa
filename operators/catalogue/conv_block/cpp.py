"""Ideas for convolution, ReLU and max pooling in one C++ kernel."""

from __future__ import annotations

from dataclasses import replace

from operators.catalogue._shared.cpp import FLAGS
from operators.catalogue.conv.cpp import IDEAS
from operators.catalogue.family import Book, Entry
from operators.idea import Category

OWN = (
    Entry(
        "plane",
        "keep rows of the convolution in the cache and pool from there, instead of computing "
        "pixels again for every window they lie in",
        Category.MEMORY,
    ),
    Entry(
        "strips",
        "cut images into strips of few rows: more work to share and a smaller buffer, for some "
        "rows computed twice",
        Category.PARALLELISM,
        requires=("plane",),
    ),
)

BOOK = Book(
    flags=FLAGS,
    serves=lambda p: bool(p["ow"] * p["pool_h"] <= 32768),  # rows of a strip must fit the stack
    entries=(
        *OWN,
        *(
            replace(entry, requires=(*entry.requires, "plane")) if entry.key == "filters" else entry
            for entry in IDEAS
        ),
    ),
)
