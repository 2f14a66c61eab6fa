"""Convolutions over one or two dimensions, with stride, padding and bias."""

from __future__ import annotations

from fitness.description import Node
from operators.catalogue.family import Family, Problem
from operators.catalogue.graph import Graph

DTYPES = ("float32", "float16")


def recognise(graph: Graph) -> Problem | None:
    """A convolution and nothing else; see `conv_problem` for the problem."""
    if graph.kinds() != ("conv",) or graph.outputs != graph.computations:
        return None
    problem = conv_problem(graph, graph.computations[0])
    return problem and {**problem, "out": graph.output_name()}


def conv_problem(graph: Graph, node: Node) -> Problem | None:
    """The sizes of one convolution; None with groups, dilation, transposition or three dimensions.

    ``x`` (n, c, h, w), ``weight`` (filters, c, kh, kw), ``bias`` (filters,) or None: names.
    ``stride_h``, ``stride_w``, ``pad_h``, ``pad_w``; the convolution's output is
    (n, filters, oh, ow). A 1-D convolution has ``h`` = ``kh`` = ``oh`` = 1.
    """
    x, weight = graph.leaf(node.args[0]), graph.leaf(node.args[1])
    bias = graph.leaf(graph.argument(node, 2, "bias"))
    stride, pad = graph.pair(node, 3, "stride", 1), graph.pair(node, 4, "padding", 0)
    if x is None or weight is None or stride is None or pad is None or not _plain(graph, node):
        return None
    if x.dtype not in DTYPES or weight.dtype != x.dtype or (bias and bias.dtype != x.dtype):
        return None
    if bias is None and graph.argument(node, 2, "bias") is not None:
        return None
    sizes = _sizes(x.shape or (), weight.shape or (), node.shape or ())
    if sizes is None:
        return None
    flat = len(x.shape or ()) == 3
    return {
        "x": x.name,
        "weight": weight.name,
        "bias": bias.name if bias else None,
        **sizes,
        "stride_h": 1 if flat else stride[0],
        "stride_w": stride[1],
        "pad_h": 0 if flat else pad[0],
        "pad_w": pad[1],
        "dtype": x.dtype,
    }


def _plain(graph: Graph, node: Node) -> bool:
    full = "convolution" in node.op
    groups = graph.argument(node, 8 if full else 6, "groups", 1)
    transposed = full and graph.argument(node, 6, "transposed", False)
    return graph.pair(node, 5, "dilation", 1) == (1, 1) and groups == 1 and not transposed


def _sizes(
    x: tuple[int, ...], weight: tuple[int, ...], out: tuple[int, ...]
) -> dict[str, int] | None:
    if len(x) == 3:
        x, weight, out = ((*s[:2], 1, s[2]) for s in (x, weight, out))
    if len(x) != 4 or x[1] != weight[1]:
        return None
    names = ("n", "c", "h", "w", "filters", "kh", "kw", "oh", "ow")
    return dict(zip(names, (*x, weight[0], *weight[2:], *out[2:]), strict=True))


FAMILY = Family(
    serves="conv1d and conv2d with stride, padding and bias, groups and dilation 1",
    recognise=recognise,
)
