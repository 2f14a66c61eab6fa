"""Matrix products: mm, bmm, matmul, linear and addmm, with transposed operands and a bias."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fitness.description import Node
from operators.catalogue.family import Family, Problem
from operators.catalogue.graph import Graph, kind

DTYPES = ("float32", "float16")
PRODUCTS = ("mm", "bmm", "matmul", "linear", "addmm")


@dataclass(frozen=True, slots=True)
class Operand:
    """A leaf as a stack of matrices; ``transposed`` where it is stored column by column."""

    leaf: Node
    shape: tuple[int, ...]
    transposed: bool


def operand(graph: Graph, value: Any) -> Operand | None:
    """The leaf behind an argument, seen through one exchange of the last two dimensions."""
    node = graph.source(value)
    if node.shape is None or len(node.shape) < 2:
        return None
    if node.op.startswith("aten.") and is_transpose(graph, node):
        leaf = graph.leaf(node.args[0])
        return None if leaf is None else Operand(leaf, node.shape, True)
    leaf = graph.leaf(value)
    viewed = graph.node(value)
    if leaf is None or viewed is None or viewed.shape is None:
        return None
    return Operand(leaf, viewed.shape, False)


def is_transpose(graph: Graph, node: Node) -> bool:
    """Whether a node exchanges the last two dimensions of its argument and does nothing else."""
    rank = len(node.shape or ())
    if kind(node) in ("t", "numpy_T", "mT", "matrix_H", "adjoint"):
        return rank == 2 or kind(node) == "mT"
    if kind(node) == "transpose":
        dims = {graph.argument(node, 1, "dim0") % rank, graph.argument(node, 2, "dim1") % rank}
        return dims == {rank - 2, rank - 1}
    if kind(node) == "permute":
        order = [d % rank for d in graph.argument(node, 1, "dims")]
        return order == [*range(rank - 2), rank - 1, rank - 2]
    return False


def recognise(graph: Graph) -> Problem | None:
    """``out[i] = a[i] @ b[i] + bias``, ``i`` below ``batch``; ``a`` is (m, k), ``b`` (k, n).

    ``a``, ``b``, ``bias`` (or None), ``out``: names. ``trans_a``: ``a`` is stored as (k, m),
    ``trans_b``: ``b`` is stored as (n, k). ``batch`` counts both sides; it is 1 where ``b`` is
    shared, since the batch then counts as rows of ``a``. ``bias`` has ``n`` elements.
    """
    products = [node for node in graph.computations if not is_transpose(graph, node)]
    if len(products) != 1 or graph.outputs != (products[0],) or graph.output_name() is None:
        return None
    (node,) = products
    if kind(node) not in PRODUCTS or node.dtype not in DTYPES:
        return None
    first, second, bias = _operands(graph, node)
    if first is None or second is None or bias is False:
        return None
    if first.leaf.dtype != node.dtype or second.leaf.dtype != node.dtype:
        return None
    sizes = _sizes(first, second)
    if sizes is None or (isinstance(bias, Node) and bias.shape != (sizes["n"],)):
        return None
    return {
        "a": first.leaf.name,
        "b": second.leaf.name,
        "bias": bias.name if isinstance(bias, Node) else None,
        "out": graph.output_name(),
        **sizes,
        "dtype": node.dtype,
    }


def _operands(graph: Graph, node: Node) -> tuple[Operand | None, Operand | None, Node | bool]:
    """Both factors and the bias: a leaf, True for none, False for one that is not served."""
    args = list(node.args)
    bias_value = None
    if kind(node) == "addmm":
        if dict(node.kwargs).get("alpha", 1) != 1 or dict(node.kwargs).get("beta", 1) != 1:
            return None, None, False
        bias_value, *args = args
    elif kind(node) == "linear":
        bias_value = graph.argument(node, 2, "bias")
    first, second = operand(graph, args[0]), operand(graph, args[1])
    if kind(node) == "linear" and second is not None:
        second = Operand(second.leaf, second.shape[::-1], not second.transposed)
    return first, second, True if bias_value is None else (graph.leaf(bias_value) or False)


def _sizes(first: Operand, second: Operand) -> dict[str, Any] | None:
    (*lead_a, m, k), (*lead_b, k_b, n) = first.shape, second.shape
    batch = math.prod(lead_a)
    if k != k_b or (first.transposed and lead_a and not lead_b):
        return None
    if math.prod(lead_b) == 1:
        if first.transposed and batch != 1:
            return None
        m, batch = m * batch, 1
    elif lead_a != lead_b:
        return None
    return {
        "batch": batch,
        "m": m,
        "n": n,
        "k": k,
        "trans_a": first.transposed,
        "trans_b": second.transposed,
    }


FAMILY = Family(
    serves="mm, bmm, matmul, linear, addmm of float32 or float16 tensors", recognise=recognise
)
