"""Attention: scaled_dot_product_attention, or the same written as matmul, softmax, matmul."""

from __future__ import annotations

import math
from typing import Any

from fitness.description import Node
from operators.catalogue.family import Family, Problem
from operators.catalogue.graph import Graph, kind
from operators.catalogue.matmul import is_transpose

DTYPES = ("float32", "float16")
PRODUCTS = ("matmul", "bmm")


def recognise(graph: Graph) -> Problem | None:
    """``out = softmax(scale * q @ k^T) @ v`` for each of ``heads`` (batch times heads).

    ``q`` (heads, q_len, head), ``k`` (heads, kv_len, head), ``v`` (heads, kv_len, head_v), ``out``
    (heads, q_len, head_v): names. ``scale`` is a C literal of type float. ``causal``: query i
    sees the keys 0 to i.
    """
    if len(graph.outputs) != 1 or graph.output_name() is None:
        return None
    if graph.kinds() == ("scaled_dot_product_attention",):
        return _fused(graph, graph.outputs[0])
    return _by_hand(graph, graph.outputs[0])


def _fused(graph: Graph, node: Node) -> Problem | None:
    given = dict(node.kwargs)
    if graph.argument(node, 3, "attn_mask") is not None or given.get("enable_gqa"):
        return None
    if graph.argument(node, 4, "dropout_p", 0.0):
        return None
    causal = bool(graph.argument(node, 5, "is_causal", False))
    q = graph.leaf(node.args[0])
    scale = graph.argument(node, 6, "scale")
    if scale is None and q is not None and q.shape:
        scale = 1 / math.sqrt(q.shape[-1])
    return _problem(graph, q, graph.leaf(node.args[1]), graph.leaf(node.args[2]), scale, causal)


def _by_hand(graph: Graph, node: Node) -> Problem | None:
    """``matmul(softmax(scores), v)``, with the scores scaled by one number or not."""
    if kind(node) not in PRODUCTS or graph.node(node.args[0]) is None:
        return None
    softmax, steps = graph.source(node.args[0]), 3
    if kind(softmax) != "softmax" or not softmax.shape:
        return None
    if graph.argument(softmax, 1, "dim") % len(softmax.shape) != len(softmax.shape) - 1:
        return None
    scores, scale = graph.source(softmax.args[0]), 1.0
    if kind(scores) in ("mul", "div") and isinstance(scores.args[1], int | float):
        scale = float(scores.args[1]) if kind(scores) == "mul" else 1 / scores.args[1]
        scores, steps = graph.source(scores.args[0]), 4
    if kind(scores) not in PRODUCTS:
        return None
    turned = graph.source(scores.args[1])
    if not turned.op.startswith("aten.") or not is_transpose(graph, turned):
        return None
    if len(graph.computations) != steps + 1:  # the transposition counts
        return None
    q, k, v = (graph.leaf(value) for value in (scores.args[0], turned.args[0], node.args[1]))
    return _problem(graph, q, k, v, scale, False)


def _problem(
    graph: Graph, q: Node | None, k: Node | None, v: Node | None, scale: Any, causal: bool
) -> Problem | None:
    if q is None or k is None or v is None or not q.shape or not k.shape or not v.shape:
        return None
    if q.dtype not in DTYPES or not q.dtype == k.dtype == v.dtype or len(q.shape) < 3:
        return None
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        return None
    return {
        "q": q.name,
        "k": k.name,
        "v": v.name,
        "out": graph.output_name(),
        "heads": math.prod(q.shape[:-2]),
        "q_len": q.shape[-2],
        "kv_len": k.shape[-2],
        "head": q.shape[-1],
        "head_v": v.shape[-1],
        "scale": f"{float(scale)!r}f",
        "causal": causal,
        "dtype": q.dtype,
    }


FAMILY = Family(
    serves="scaled_dot_product_attention without mask, or matmul, softmax, matmul",
    recognise=recognise,
)
