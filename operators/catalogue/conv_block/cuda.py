"""Ideas for convolution, ReLU and max pooling in one CUDA kernel.

With a tile of the convolution in shared memory, pooling reads it from there: the convolution's
outputs are computed about once and never reach device memory.
"""

from __future__ import annotations

from dataclasses import replace

from operators.catalogue.conv.cuda import ENTRIES
from operators.catalogue.family import Book

SHARED_PATCH = (
    "give each block a tile of pooled outputs: stage the patch of the input below it in shared "
    "memory, compute each output of the convolution once, and pool from shared memory, so that "
    "the convolution's result never travels to device memory"
)

BOOK = Book(
    entries=tuple(
        replace(entry, text=SHARED_PATCH) if entry.key == "shared_patch" else entry
        for entry in ENTRIES
    )
)
