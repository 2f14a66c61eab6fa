"""Convolution, ReLU and max pooling in one kernel."""

from __future__ import annotations

from fitness.description import Node
from operators.catalogue.conv import conv_problem
from operators.catalogue.family import Family, Problem
from operators.catalogue.graph import Graph, kind

# ReLU and the maximum may change places: both are monotonic.
ORDERS = (("conv", "relu", "max_pool2d"), ("conv", "max_pool2d", "relu"))


def recognise(graph: Graph) -> Problem | None:
    """``conv_problem`` plus the pool's windows; ``out`` is (n, filters, ph, pw).

    Windows are ``pool_h`` by ``pool_w`` every ``pool_stride_h``, ``pool_stride_w`` elements of
    the (oh, ow) convolution, and never reach over its edge.
    """
    nodes = graph.computations
    if graph.kinds() not in ORDERS or len(graph.outputs) != 1 or graph.outputs[0] != nodes[2]:
        return None
    if graph.source(nodes[1].args[0]) != nodes[0] or graph.source(nodes[2].args[0]) != nodes[1]:
        return None
    problem = conv_problem(graph, nodes[0])
    pool = _pool(graph, next(node for node in nodes if kind(node) == "max_pool2d"))
    if problem is None or pool is None:
        return None
    return {**problem, **pool, "out": graph.output_name()}


def _pool(graph: Graph, node: Node) -> Problem | None:
    size = graph.pair(node, 1, "kernel_size", 1)
    given = graph.argument(node, 2, "stride")
    stride = size if given is None or given == [] else graph.pair(node, 2, "stride", 1)
    plain = graph.pair(node, 3, "padding", 0) == (0, 0) and (
        graph.pair(node, 4, "dilation", 1) == (1, 1)
    )
    if size is None or stride is None or node.shape is None or not plain:
        return None
    if graph.argument(node, 5, "ceil_mode", False):
        return None
    return {
        "pool_h": size[0],
        "pool_w": size[1],
        "pool_stride_h": stride[0],
        "pool_stride_w": stride[1],
        "ph": node.shape[-2],
        "pw": node.shape[-1],
    }


FAMILY = Family(serves="conv2d, then ReLU and max_pool2d in either order", recognise=recognise)
