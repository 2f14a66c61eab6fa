"""Reductions over one dimension or several neighbouring ones."""

from __future__ import annotations

import math
from typing import Any

from fitness.description import Node
from operators.catalogue.family import Family, Problem
from operators.catalogue.graph import Graph, kind

DTYPES = ("float32", "float16")
NAMES = {
    "sum": "sum",
    "mean": "mean",
    "max": "max",
    "amax": "max",
    "min": "min",
    "amin": "min",
    "argmax": "argmax",
    "argmin": "argmin",
    "prod": "prod",
    "var": "var",
    "std": "std",
    "norm": "norm",
    "linalg_vector_norm": "norm",
}
NORMS = {1: "norm1", 2: "norm2", math.inf: "norminf"}


def recognise(graph: Graph) -> Problem | None:
    """The reduction of ``x``, seen as row-major ``(outer, cols, inner)``, over ``cols``.

    ``x``, ``out``: names; ``out`` has ``outer * inner`` elements. ``op``: sum, mean, prod, max,
    min, argmax, argmin (int64 results, the first index where several tie), var, std, norm1,
    norm2, norminf. ``correction``: var and std divide by ``cols - correction``; 0 for others.
    """
    if len(graph.computations) != 1 or graph.outputs != graph.computations:
        return None
    (node,) = graph.computations
    x, op = graph.leaf(node.args[0]) if node.args else None, _op(graph, node)
    if x is None or x.shape is None or x.dtype not in DTYPES or op is None:
        return None
    dims = _dims(graph, node, len(x.shape))
    result = "int64" if op.startswith("arg") else x.dtype
    if dims != list(range(dims[0], dims[-1] + 1)) or node.dtype != result:
        return None
    cols = math.prod(x.shape[d] for d in dims)
    correction = _correction(graph, node) if op in ("var", "std") else 0
    if op in ("var", "std") and cols <= correction:
        return None
    return {
        "x": x.name,
        "out": graph.output_name(),
        "op": op,
        "outer": math.prod(x.shape[: dims[0]]),
        "cols": cols,
        "inner": math.prod(x.shape[dims[-1] + 1 :]),
        "correction": correction,
        "dtype": x.dtype,
    }


def _op(graph: Graph, node: Node) -> str | None:
    name = NAMES.get(kind(node))
    if name == "norm":
        order = graph.argument(node, 1, "ord" if "linalg" in node.op else "p", 2)
        order = 2 if order is None else order
        return NORMS.get(float(order) if isinstance(order, int | float | str) else 0)
    if name in ("max", "min") and len(node.args) > 1 and isinstance(node.args[1], dict):
        return None  # the element-wise maximum of two tensors
    return name


def _dims(graph: Graph, node: Node, rank: int) -> list[int]:
    position = 2 if kind(node) in ("norm", "linalg_vector_norm") else 1
    value: Any = graph.argument(node, position, "dim")
    if value is None or value == []:
        return list(range(rank))
    return sorted(d % rank for d in ([value] if isinstance(value, int) else value))


def _correction(graph: Graph, node: Node) -> int:
    given = dict(node.kwargs)
    if "correction" in given:
        return 1 if given["correction"] is None else int(given["correction"])
    if node.op.split(".")[-1] in ("default", "dim"):
        position = 2 if node.op.endswith(".dim") else 1
        return int(graph.argument(node, position, "unbiased", True))
    return 1


FAMILY = Family(
    serves="sum, mean, prod, max, min, argmax, argmin, var, std and 1-, 2-, inf-norms over one "
    "dimension or neighbouring ones",
    recognise=recognise,
)
