"""Layer norm, and RMS norm as a module or written out by hand."""

from __future__ import annotations

import math
from typing import Any

from fitness.description import Node
from operators.catalogue.family import Family, Problem
from operators.catalogue.graph import Graph, kind

DTYPES = ("float32", "float16")


def recognise(graph: Graph) -> Problem | None:
    """The normalisation of ``x``, seen as row-major ``(outer, cols, inner)``, over ``cols``.

    ``x``, ``out``: names. ``weight``, ``bias``: names of tensors of ``cols`` elements, or None.
    ``inner`` is 1 where the normalised dimensions are the last (always so for layer norm).
    ``rms``: divide by the root of the mean square plus ``eps``, no mean is taken off.
    ``eps`` is a C literal of type float.
    """
    if len(graph.outputs) != 1 or graph.output_name() is None:
        return None
    kinds = graph.kinds()
    if kinds == ("layer_norm",):
        return _layer_norm(graph, graph.outputs[0])
    if kinds in (("rms_norm",), ("_fused_rms_norm",), ("fused_rms_norm",)):
        return _rms_module(graph, graph.outputs[0])
    return _rms_by_hand(graph, graph.outputs[0])


def _layer_norm(graph: Graph, node: Node) -> Problem | None:
    cols = math.prod(graph.argument(node, 1, "normalized_shape"))
    eps = graph.argument(node, 4, "eps", 1e-5)
    weight, bias = graph.argument(node, 2, "weight"), graph.argument(node, 3, "bias")
    return _problem(graph, graph.leaf(node.args[0]), cols, 1, eps, weight, bias, rms=False)


def _rms_module(graph: Graph, node: Node) -> Problem | None:
    cols = math.prod(graph.argument(node, 1, "normalized_shape"))
    eps, x = graph.argument(node, 3, "eps"), graph.leaf(node.args[0])
    if eps is None and x is not None:
        eps = {"float32": 2.0**-23, "float16": 2.0**-10}.get(x.dtype or "")
    weight = graph.argument(node, 2, "weight")
    return _problem(graph, x, cols, 1, eps, weight, None, rms=True)


def _rms_by_hand(graph: Graph, node: Node) -> Problem | None:
    """``x / sqrt(mean(x^2) + eps)`` or ``x * rsqrt(...)``, times a weight at the end or not."""
    budget = len(graph.computations)
    weight = None
    if kind(node) not in ("mul", "div") or budget not in (5, 6):
        return None
    if kind(node) == "mul" and graph.leaf(node.args[0]) and graph.leaf(node.args[1]) is None:
        node = Node(node.name, node.op, node.args[::-1], (), node.shape, node.dtype)
    if kind(node) == "mul" and _is_weight(graph, node) and budget == 6:
        weight, node = node.args[1], graph.source(node.args[0])
        budget -= 1
    x, root = _scaled(graph, node)
    if x is None or root is None or root.shape is None or x.shape is None:
        return None
    mean, eps = _mean_plus(graph, root.args[0])
    if mean is None or kind(mean) != "mean" or not _is_square_of(graph, mean.args[0], x):
        return None
    if budget != len({"scale", "root", "add", "mean", "square"}):
        return None
    dims = sorted(d % len(x.shape) for d in _dims(graph, mean))
    if dims != list(range(dims[0], dims[-1] + 1)):
        return None
    if weight is not None and not _along(graph.node(weight), x.shape, dims):
        return None
    cols = math.prod(x.shape[d] for d in dims)
    inner = math.prod(x.shape[dims[-1] + 1 :])
    return _problem(graph, x, cols, inner, eps, weight, None, rms=True)


def _is_weight(graph: Graph, node: Node) -> bool:
    return graph.node(node.args[1]) is not None and graph.leaf(node.args[1]) is not None


def _along(weight: Node | None, shape: tuple[int, ...], dims: list[int]) -> bool:
    """Whether a weight, as it is seen in the product, varies along ``dims`` and nothing else."""
    if weight is None or weight.shape is None:
        return False
    padded = (1,) * (len(shape) - len(weight.shape)) + weight.shape
    return padded == tuple(size if d in dims else 1 for d, size in enumerate(shape))


def _dims(graph: Graph, mean: Node) -> list[int]:
    dims = graph.argument(mean, 1, "dim")
    return [dims] if isinstance(dims, int) else list(dims or [0])


def _scaled(graph: Graph, node: Node) -> tuple[Node | None, Node | None]:
    """The leaf and the (reciprocal) root in ``x / sqrt(r)``, ``x * rsqrt(r)``, ``rsqrt(r) * x``."""
    if len(node.args) != 2:
        return None, None
    for first, second in (node.args, node.args[::-1]):
        x = graph.leaf(first)
        root = graph.source(second) if graph.node(second) else None
        if x is None or root is None:
            continue
        if (kind(node), kind(root)) == ("mul", "rsqrt") or (
            first is node.args[0] and (kind(node), kind(root)) == ("div", "sqrt")
        ):
            return x, root
    return None, None


def _mean_plus(graph: Graph, value: Any) -> tuple[Node | None, float]:
    """The mean and the number in ``mean + eps``."""
    node = graph.source(value)
    if kind(node) == "add" and len(node.args) == 2 and isinstance(node.args[1], int | float):
        return graph.source(node.args[0]), float(node.args[1])
    return None, 0.0


def _is_square_of(graph: Graph, value: Any, x: Node) -> bool:
    node = graph.source(value)
    if kind(node) == "pow":
        return node.args[1] == 2 and graph.source(node.args[0]) == x
    if kind(node) == "mul":
        return graph.leaf(node.args[0]) == x and graph.leaf(node.args[1]) == x
    return kind(node) == "square" and graph.source(node.args[0]) == x


def _problem(
    graph: Graph,
    x: Node | None,
    cols: int,
    inner: int,
    eps: float | None,
    weight: Any,
    bias: Any,
    *,
    rms: bool,
) -> Problem | None:
    if x is None or x.shape is None or x.dtype not in DTYPES or eps is None:
        return None
    names = []
    for value in (weight, bias):
        leaf = graph.leaf(value)
        if value is not None and (leaf is None or leaf.shape is None or leaf.dtype != x.dtype):
            return None
        if leaf is not None and math.prod(leaf.shape or ()) != cols:
            return None
        names.append(leaf.name if leaf else None)
    return {
        "x": x.name,
        "out": graph.output_name(),
        "weight": names[0],
        "bias": names[1],
        "outer": math.prod(x.shape) // (cols * inner),
        "cols": cols,
        "inner": inner,
        "eps": f"{eps!r}f" if "." in repr(eps) or "e" in repr(eps) else f"{eps!r}.0f",
        "rms": rms,
        "dtype": x.dtype,
    }


FAMILY = Family(
    serves="layer norm; RMS norm as a module or as x * rsqrt(mean(x^2) + eps) * weight",
    recognise=recognise,
)
