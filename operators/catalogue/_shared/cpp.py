"""What all books in C++ share."""

from __future__ import annotations

# The vector types' arithmetic becomes fused multiply-adds, as in GNU's own dialect.
FLAGS = ("-ffp-contract=fast",)
