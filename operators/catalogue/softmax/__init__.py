"""Softmax and log-softmax over the innermost dimension (or one with nothing behind it)."""

from __future__ import annotations

import math

from operators.catalogue.family import Family, Problem
from operators.catalogue.graph import Graph, kind

DTYPES = ("float32", "float16")


def recognise(graph: Graph) -> Problem | None:
    """Names ``x`` and ``out``, sizes ``rows`` and ``cols``, ``log`` and ``dtype``.

    ``x`` and ``out`` are row-major ``(rows, cols)``; every row is normalised by itself.
    """
    if graph.kinds() not in (("softmax",), ("log_softmax",)):
        return None
    (node,) = graph.computations
    x = graph.leaf(node.args[0])
    if x is None or node.shape is None or node.dtype != x.dtype or node.dtype not in DTYPES:
        return None
    if graph.outputs != (node,):
        return None
    dim = graph.argument(node, 1, "dim") % len(node.shape)
    if math.prod(node.shape[dim + 1 :]) != 1:
        return None
    return {
        "x": x.name,
        "out": graph.output_name(),
        "rows": math.prod(node.shape[:dim]),
        "cols": node.shape[dim],
        "log": kind(node) == "log_softmax",
        "dtype": node.dtype,
    }


FAMILY = Family(serves="softmax and log_softmax over the last dimension", recognise=recognise)
