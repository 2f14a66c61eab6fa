"""Chains and trees of pointwise operations, with broadcasting, in one kernel."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from operators.catalogue.elementwise.formulas import expression
from operators.catalogue.family import Family, Problem
from operators.catalogue.graph import LEAVES, Graph, kind

DTYPES = ("float32", "float16")
FUNCTION = re.compile(r"\bf_\w+")
CONDITIONS = ("gt", "ge", "lt", "le", "eq", "ne")


def recognise(graph: Graph) -> Problem | None:
    """The expression of ``out`` over ``inputs``, element by element.

    ``dims``: the output's sizes with neighbours merged where every input allows it, outermost
    first (row-major, so the last is contiguous in ``out``); ``size`` their product.
    ``inputs``: for each tensor its ``name``, the variable ``var`` that holds its element, and its
    ``strides`` along ``dims`` in elements (0 where it is broadcast; the last is 0 or 1).
    ``steps``: in order, ``var``, its ``code`` (see `operators.catalogue.elementwise.formulas`) and
    whether it is a ``condition``. ``result``: the variable to store. ``functions``: the ``f_...``
    used. ``whole``: every input is read like the output, from 0 to ``size``.
    """
    if not graph.computations or len(graph.outputs) != 1 or graph.output_name() is None:
        return None
    out = graph.outputs[0]
    if out.op in LEAVES or out.dtype not in DTYPES or out.shape is None:
        return None
    names = _Names(graph)
    try:
        steps = _steps(graph, names, out.dtype)
        strides = [_strides(shape, out.shape) for _, shape in names.leaves]
    except ValueError:
        return None
    dims, merged = _merge(out.shape, strides)
    inputs = [
        {"name": name, "var": var, "strides": merged[i]}
        for i, ((name, _), var) in enumerate(names.leaves.items())
    ]
    return {
        "inputs": inputs,
        "out": graph.output_name(),
        "dims": dims,
        "size": math.prod(out.shape),
        "steps": steps,
        "result": names.steps[out.name],
        "functions": sorted(set(FUNCTION.findall(" ".join(step["code"] for step in steps)))),
        "whole": len(dims) == 1 and all(item["strides"] == [1] for item in inputs),
        "dtype": out.dtype,
    }


class _Names:
    """The variables met so far: one per leaf and shape it is seen in, one per step."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.leaves: dict[tuple[str, tuple[int, ...]], str] = {}
        self.steps: dict[str, str] = {}

    def term(self, value: Any) -> Any:
        """An argument as a variable's name, or as it is. Raises ValueError for what cannot be."""
        node = self.graph.node(value)
        if node is None:
            return value
        source = self.graph.source(value)
        if source.op in LEAVES and source.dtype in DTYPES and node.shape is not None:
            return self.leaves.setdefault((source.name, node.shape), f"x{len(self.leaves)}")
        if source.name not in self.steps or source.shape != node.shape:
            raise ValueError(f"{source.name} is no element-wise operand")
        return self.steps[source.name]


def _steps(graph: Graph, names: _Names, dtype: str) -> list[dict[str, Any]]:
    """One step per computation. Raises ValueError where an operation is not pointwise."""
    steps: list[dict[str, Any]] = []
    conditions: set[str] = set()
    for node in graph.computations:
        name, var = kind(node), f"v{len(steps)}"
        terms = [names.term(value) for value in node.args]
        plain = terms[1:] if name == "where" else terms
        condition = name in CONDITIONS
        code = expression(name, terms, dict(node.kwargs))
        if code is None or conditions.intersection(t for t in plain if isinstance(t, str)):
            raise ValueError(f"{node.op} is not served")
        if node.dtype != ("bool" if condition else dtype):
            raise ValueError(f"{node.op} changes the type")
        if condition:
            conditions.add(var)
        steps.append({"var": var, "code": code, "condition": condition})
        names.steps[node.name] = var
    return steps


def _strides(shape: Sequence[int], out: Sequence[int]) -> list[int]:
    """A contiguous tensor's strides along the output's dimensions, 0 where it is broadcast."""
    padded = [1] * (len(out) - len(shape)) + list(shape)
    strides, step = [], 1
    for size, whole in zip(reversed(padded), reversed(out), strict=True):
        if size not in (1, whole):
            raise ValueError(f"{tuple(shape)} does not broadcast to {tuple(out)}")
        strides.append(0 if size == 1 else step)
        step *= size
    return strides[::-1]


def _merge(out: Sequence[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Neighbouring dimensions as one, where every input steps through both in one stride."""
    dims: list[int] = [1]
    merged: list[list[int]] = [[0] for _ in strides]
    for d, size in enumerate(out):
        if size == 1:
            continue
        joins = all(m[-1] == s[d] * size for m, s in zip(merged, strides, strict=True))
        if dims == [1] or joins:
            dims[-1] *= size
            for m, s in zip(merged, strides, strict=True):
                m[-1] = s[d]
        else:
            dims.append(size)
            for m, s in zip(merged, strides, strict=True):
                m.append(s[d])
    return dims, merged


FAMILY = Family(
    serves="chains and trees of pointwise operations (activations, arithmetic, clamps, where) "
    "with broadcasting",
    recognise=recognise,
)
