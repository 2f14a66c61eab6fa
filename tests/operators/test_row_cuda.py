"""Softmax, norms, reductions and pointwise chains in CUDA: every recipe is a kernel.

What needs a GPU (right answers, speed) is checked there; here templates render, ideas change the
code, and the compiler accepts what they make.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from operators.catalogue.render import TUNABLE
from tests.operators.cuda_workbench import (
    Case,
    compile_errors,
    idle_ideas,
    kernel,
    needs_nvcc,
    random_recipe,
)


def softmax(rows: int, cols: int, dtype: str = "float32", log: bool = False) -> Case:
    sizes = {"rows": rows, "cols": cols, "log": log, "dtype": dtype}
    return Case("softmax", {"x": "x", "out": "out", **sizes}, (("x", (rows, cols)),), (rows, cols))


def norm(
    outer: int, cols: int, inner: int = 1, *, rms: bool = False, dtype: str = "float32"
) -> Case:
    names = {"x": "x", "out": "out", "weight": "w" if inner == 1 else None}
    names["bias"] = None if rms else "b"
    shape = (outer, cols, inner)
    tensors = [("x", shape)]
    tensors += [("w", (cols,))] if inner == 1 else []
    tensors += [] if rms else [("b", (cols,))]
    sizes = {"outer": outer, "cols": cols, "inner": inner, "eps": "1e-05f", "rms": rms}
    return Case("layer_norm", {**names, **sizes, "dtype": dtype}, tuple(tensors), shape)


def reduction(op: str, outer: int, cols: int, inner: int = 1, dtype: str = "float32") -> Case:
    sizes = {"outer": outer, "cols": cols, "inner": inner, "correction": 1, "dtype": dtype}
    problem = {"x": "x", "out": "out", "op": op, **sizes}
    return Case("reduction", problem, (("x", (outer, cols, inner)),), (outer, inner))


def chain(dims: tuple[int, ...], dtype: str = "float32") -> Case:
    """``tanh(x + row) * sigmoid(x)``, ``row`` being broadcast along all but the last dimension."""
    whole = [0] * len(dims)
    for d in range(len(dims)):
        whole[d] = 1 if d == len(dims) - 1 else dims[-1]
    codes = ("x0 + x1", "f_tanh(v0)", "x0 > v1", "f_where(v2, v1, f_sigmoid(x0))")
    steps = [{"var": f"v{n}", "code": c, "condition": " > " in c} for n, c in enumerate(codes)]
    size = 1
    for d in dims:
        size *= d
    problem = {
        "inputs": [
            {"name": "x", "var": "x0", "strides": whole},
            {"name": "row", "var": "x1", "strides": [0] * (len(dims) - 1) + [1]},
        ],
        **{"out": "out", "dims": list(dims), "size": size, "steps": steps, "result": "v3"},
        **{"functions": ["f_sigmoid", "f_tanh", "f_where"], "whole": False, "dtype": dtype},
    }
    return Case("elementwise", problem, (("x", dims), ("row", dims[-1:])), dims)


CASES = {
    "softmax": softmax(4096, 65536),
    "log softmax of uneven rows": softmax(77, 20001, log=True),
    "half softmax of short rows": softmax(5000, 1000, dtype="float16"),
    "layer norm": norm(16, 4194304),
    "layer norm of short rows": norm(8192, 768),
    "layer norm of uneven rows": norm(3, 100001, dtype="float16"),
    "RMS norm": norm(4096, 4096, rms=True),
    "RMS norm over channels": norm(16, 64, 65536, rms=True),
    "sum": reduction("sum", 4096, 65536),
    "argmax": reduction("argmax", 33, 10001),
    "var": reduction("var", 4, 1048576, dtype="float16"),
    "max over the middle": reduction("max", 16, 4096, 256),
    "std over the middle": reduction("std", 3, 5000, 66, dtype="float16"),
    "chain": chain((1 << 20,)),
    "broadcast chain": chain((300, 4096), dtype="float16"),
}

BEST = {
    "softmax": "vector cluster online keep_exp exp2 stream ahead",
    "layer norm": "vector team ahead weights stream",
    "max over the middle": "vector unroll slices split",
    "broadcast chain": "vector unroll ahead lines stream",
}


@pytest.mark.parametrize("name", CASES)
def test_every_idea_changes_the_code(name: str) -> None:
    case = CASES[name]
    assert len(case.match.applicable()) >= 5
    assert idle_ideas(case) == []


@pytest.mark.parametrize("name", CASES)
def test_the_plain_port_has_a_tunable_and_no_workspace_of_its_own(name: str) -> None:
    source = kernel(CASES[name], ()).source
    assert TUNABLE.search(source)
    assert "workspace_bytes" not in source


def test_only_rows_that_one_block_cannot_hold_are_offered_to_several() -> None:
    assert {"cluster", "team"} <= set(CASES["softmax"].match.applicable())
    assert not {"cluster", "team", "split"} & set(
        CASES["layer norm of short rows"].match.applicable()
    )
    assert "warp_rows" not in CASES["softmax"].match.applicable()


def test_ideas_for_contiguous_rows_are_not_offered_over_a_middle_dimension() -> None:
    for name in ("RMS norm over channels", "max over the middle"):
        offered = set(CASES[name].match.applicable())
        assert "slices" in offered
        assert not {"shuffle", "registers", "warp_rows", "persistent", "weights"} & offered


def test_lower_precision_is_offered_to_half_alone() -> None:
    assert "quick" in CASES["broadcast chain"].match.applicable()
    assert "quick" not in CASES["chain"].match.applicable()


@needs_nvcc
@pytest.mark.parametrize("name", BEST)
def test_the_best_recipes_compile(name: str, tmp_path: Path) -> None:
    source = kernel(CASES[name], BEST[name].split()).source
    assert compile_errors(CASES[name], source, tmp_path, "90a") == ""


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("arch", ["80", "89", "90a"])
@pytest.mark.parametrize("name", CASES)
def test_random_recipes_compile(name: str, arch: str, tmp_path: Path) -> None:
    case, rng = CASES[name], random.Random(f"{name}{arch}")
    keys, values = random_recipe(case, rng)
    source = kernel(case, keys, values).source
    assert compile_errors(case, source, tmp_path, arch) == "", (keys, values)
