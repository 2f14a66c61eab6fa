"""Softmax, norms, reductions and pointwise chains in CUDA: every recipe is a kernel.

What needs a GPU (right answers, speed) is checked there; here templates render, ideas change the
code, and the compiler accepts what they make.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.signature import Role, Signature, TensorSpec
from operators.catalogue.render import TUNABLE, Recipe, render
from operators.catalogue.shelf import Match, load_book

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


@dataclass(frozen=True)
class Case:
    """A problem as its family's recogniser answers it, and the tensors that go with it."""

    family: str
    problem: dict[str, Any]
    tensors: tuple[tuple[str, tuple[int, ...]], ...]
    out: tuple[int, ...]

    @property
    def match(self) -> Match:
        return Match(self.family, "cuda", load_book(self.family, "cuda"), self.problem)

    @property
    def signature(self) -> Signature:
        dtype = self.problem["dtype"]
        given = [TensorSpec(name, dtype, shape, Role.INPUT) for name, shape in self.tensors]
        result = "int64" if self.problem.get("op", "").startswith("arg") else dtype
        return Signature("case", tuple(given), (TensorSpec("out", result, self.out, Role.OUTPUT),))


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


def closure(match: Match, keys: Sequence[str]) -> tuple[str, ...]:
    chosen: tuple[str, ...] = ()
    for key in keys:
        chosen = match.book.with_key(chosen, key)
    return chosen


def kernel(case: Case, keys: Sequence[str], values: dict[str, str] | None = None) -> Kernel:
    return render(case.match, case.signature, Recipe(closure(case.match, keys), values or {}))


def code(source: str) -> str:
    """What the compiler sees: no comments, no white space."""
    return re.sub(r"\s+", " ", re.sub(r"//[^\n]*", "", source))


def compile_errors(case: Case, source: str, folder: Path, arch: str) -> str:
    """The compiler's words where it refuses a kernel; empty where it accepts it."""
    (folder / "header.h").write_text(case.signature.header("cuda"))
    (folder / "kernel.cu").write_text(source)
    target = f"-gencode=arch=compute_{arch},code=sm_{arch}"
    command = ["nvcc", "-O3", target, "-include", "header.h", "-c", "kernel.cu", "-o", "kernel.o"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def random_recipe(case: Case, rng: random.Random) -> tuple[list[str], dict[str, str]]:
    keys = list(case.match.applicable())
    rng.shuffle(keys)
    keys = keys[: rng.randrange(1, len(keys) + 1)]
    found = TUNABLE.findall(kernel(case, keys).source)
    return keys, {name: rng.choice(tail.split("tune:")[1].split()) for _, name, _, tail in found}


@pytest.mark.parametrize("name", CASES)
def test_every_idea_changes_the_code(name: str) -> None:
    case = CASES[name]
    match = case.match
    keys = match.applicable()
    assert len(keys) >= 5
    for key in keys:
        with_idea = closure(match, [key])
        without = match.book.without(with_idea, key)
        assert code(kernel(case, with_idea).source) != code(kernel(case, without).source), key


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
