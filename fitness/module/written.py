"""What a module's text says of libraries that compute: NumPy and SciPy work where no dispatcher is.

Read by the judge from the source. Tables that are made once, at the top of the file or in a
constructor, are nobody's kernels.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy

_COMPUTE = {
    *("scipy", "sklearn", "numexpr", "jax", "tensorflow", "onnxruntime", "openvino", "mkl"),
    *("pandas", "polars", "bottleneck", "opt_einsum", "mxnet", "tinygrad", "mlx", "sympy"),
}
"""Libraries without any use for a kernel but to compute for it."""

_COMPILE = {"numba", "llvmlite"}
"""Those that make kernels of one's own out of Python."""

_MOVING = """
    array asarray asanyarray ascontiguousarray asfortranarray require frombuffer from_dlpack
    fromiter empty empty_like zeros zeros_like ones ones_like full full_like copy copyto reshape
    ravel transpose swapaxes moveaxis expand_dims squeeze broadcast_to may_share_memory
    shares_memory iscontiguous dtype result_type iinfo finfo ndpointer as_array as_ctypes
    as_strided as_ctypes_type
"""
_MOVE = frozenset(_MOVING.split())
"""NumPy's functions that allocate, view and move."""


def compiles(source: str) -> tuple[str, ...]:
    """The compilers of Python that ``source`` uses."""
    return tuple(sorted(_COMPILE & _roots(_known(_parsed(source)))))


def foreign(source: str) -> tuple[str, ...]:
    """The libraries' functions that ``source`` names, and that compute."""
    tree = _parsed(source)
    known = _known(tree)
    return tuple(dict.fromkeys([*sorted(_COMPUTE & _roots(known)), *_numpy(tree, known)]))


def _numpy(tree: ast.Module, known: dict[str, str]) -> Iterator[str]:
    once = _once(tree)
    for node in ast.walk(tree):
        name = _dotted(node, known)
        if name.startswith("numpy.") and id(node) not in once and _computes(name):
            yield name


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])  # it does not get as far as to compute


def _roots(known: dict[str, str]) -> set[str]:
    return {name.partition(".")[0] for name in known.values()}


def _known(tree: ast.AST) -> dict[str, str]:
    """Full names of what is imported, by the names that stand for it."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                root = one.name.partition(".")[0]
                found[one.asname or root] = one.name if one.asname else root
        elif isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                found[one.asname or one.name] = f"{node.module}.{one.name}"
    return found


def _dotted(node: ast.AST, known: dict[str, str]) -> str:
    """``numpy.linalg.inv`` of the expression ``np.linalg.inv``; empty for anything else."""
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value, known)
        return f"{inner}.{node.attr}" if inner else ""
    return known.get(node.id, "") if isinstance(node, ast.Name) else ""


def _once(tree: ast.Module) -> set[int]:
    """The functions (their nodes' ids) that are called while the module is imported or made."""
    later = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    places = [node for node in tree.body if not isinstance(node, later)]
    places += [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
    ]
    calls = (node for place in places for node in _outside_functions(place))
    called = (node.func for node in calls if isinstance(node, ast.Call))
    return {id(node) for function in called for node in ast.walk(function)}


def _outside_functions(place: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(place):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _outside_functions(child)


def _computes(name: str) -> bool:
    """Whether it is a function of NumPy's that does more than move. Types and numbers do not."""
    *path, last = name.split(".")[1:]
    value: Any = numpy
    for part in (*path, last):
        value = getattr(value, part, None)
    return callable(value) and not isinstance(value, type) and last not in _MOVE
