"""Ideas for attention in C++."""

from __future__ import annotations

from operators.catalogue._shared.cpp import FLAGS
from operators.catalogue.family import Book, Entry
from operators.idea import Category

BOOK = Book(
    flags=FLAGS,
    entries=(
        Entry(
            "threads",
            "share heads and queries among all cores",
            Category.PARALLELISM,
        ),
        Entry(
            "dynamic",
            "hand queries out as cores become free, so that none waits for a slow one",
            Category.CONTROL,
            requires=("threads",),
        ),
        Entry(
            "simd",
            "work on whole vector registers, with a polynomial for the exponential in place of "
            "one library call per score",
            Category.COMPUTE,
        ),
        Entry(
            "queries",
            "work on several queries at once, so that every key and value that is loaded serves "
            "all of them",
            Category.MEMORY,
            requires=("simd",),
        ),
        Entry(
            "pack_keys",
            "transpose the keys once, so that a vector holds the scores of neighbouring keys and "
            "no sum runs across lanes",
            Category.MEMORY,
            requires=("simd",),
        ),
        Entry(
            "widen",
            "turn half into float while keys and values are copied, once instead of at every use",
            Category.PRECISION,
            requires=("pack_keys",),
            applies=lambda p: p["dtype"] == "float16",
        ),
        Entry(
            "online",
            "go through the keys in blocks whose scores stay in the first cache, rescaling what "
            "was summed when a larger score turns up",
            Category.MEMORY,
            requires=("simd",),
        ),
        Entry(
            "skip",
            "stop at the last key that a group of queries may see",
            Category.CONTROL,
            requires=("online",),
            applies=lambda p: p["causal"],
        ),
        Entry(
            "unroll",
            "unroll the inner loops of both products",
            Category.CONTROL,
            requires=("simd",),
        ),
        Entry(
            "short_exp",
            "use a shorter polynomial for the exponential: a shorter chain, still within "
            "2 ulp in float32 (half tasks: within half's own rounding)",
            Category.PRECISION,
            requires=("simd",),
        ),
        Entry(
            "prefetch",
            "prefetch the values some rows ahead",
            Category.ASYNCHRONY,
            requires=("simd",),
        ),
    ),
)
