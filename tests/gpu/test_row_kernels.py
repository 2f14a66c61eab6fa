"""Softmax, norms and reductions on the device: every idea alone and random recipes are right.

Measured as the judge does, against float64 and PyTorch's own error; twice, for equal bits.
"""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.operators.cuda_workbench import Case, closure, kernel, random_recipe
from tests.operators.test_row_cuda import norm, reduction, softmax

torch: Any = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc"),
]

CASES = {
    "softmax": softmax(300, 32768),
    "softmax of uneven rows": softmax(77, 20001),
    "log softmax of short rows": softmax(3000, 1000, log=True),
    "layer norm": norm(5, 1048576),
    "layer norm of short rows": norm(1001, 768),
    "layer norm of uneven rows": norm(3, 100001),
    "RMS norm": norm(400, 4096, rms=True),
    "RMS norm over channels": norm(3, 37, 1002, rms=True),
    "var": reduction("var", 33, 16384),
    "argmax": reduction("argmax", 33, 10001),
    "sum over the middle": reduction("sum", 3, 5000, 66),
    "std over the middle": reduction("std", 3, 5000, 66),
}
RANDOM_RECIPES = 4
DISTRIBUTIONS = {"normal": (0.0, 1.0), "shifted": (1000.0, 0.1), "large": (0.0, 100.0)}
ULP = 2.0**-23


def recipes(name: str) -> list[tuple[list[str], dict[str, str]]]:
    case, rng = CASES[name], random.Random(name)
    alone = [(list(closure(case.match, [key])), {}) for key in case.match.applicable()]
    return [([], {}), *alone, *(random_recipe(case, rng) for _ in range(RANDOM_RECIPES))]


JOBS = [(name, *recipe) for name in CASES for recipe in recipes(name)]


def build(folder: Path, job: tuple[str, list[str], dict[str, str]]) -> Path | str:
    """The shared object, or the compiler's words."""
    name, keys, values = job
    folder.mkdir()
    (folder / "header.h").write_text(CASES[name].signature.header("cuda"))
    (folder / "kernel.cu").write_text(kernel(CASES[name], keys, values).source)
    major, minor = torch.cuda.get_device_capability()
    arch = f"{major}{minor}" + ("a" if major >= 9 else "")
    command = ["nvcc", "-O3", f"-gencode=arch=compute_{arch},code=sm_{arch}", "-cudart", "shared"]
    command += ["-shared", "-Xcompiler", "-fPIC", "-include", "header.h", "kernel.cu", "-o", "k.so"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else folder / "k.so"


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path | str]]:
    root = tmp_path_factory.mktemp("rows")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield list(pool.map(lambda n: build(root / str(n), JOBS[n]), range(len(JOBS))))


def reference(case: Case, tensors: list[Any]) -> Any:
    x, problem = tensors[0], case.problem
    functional = torch.nn.functional
    if case.family == "softmax":
        return (functional.log_softmax if problem["log"] else functional.softmax)(x, 1)
    if case.family == "reduction":
        options = {"correction": problem["correction"]} if problem["op"] in ("var", "std") else {}
        return getattr(torch, problem["op"])(x, 1, **options)
    weight = tensors[1][:, None] if problem["weight"] else 1.0
    if problem["rms"]:
        return x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-5) * weight
    flat = x.reshape(x.shape[0], -1)
    return functional.layer_norm(flat, flat.shape[1:], tensors[1], tensors[2], 1e-5)


def errors(y: Any, truth: Any) -> tuple[float, float]:
    gap, truth = y.double().flatten() - truth.flatten(), truth.flatten()
    rms = truth.pow(2).mean().sqrt()
    return float(gap.norm() / truth.norm()), float(gap.abs().max() / rms)


def run(library: ctypes.CDLL, case: Case, tensors: list[Any], out: Any, workspace: Any) -> Any:
    out.view(torch.uint8).fill_(0xFF)
    workspace.fill_(0xCD)
    pointers = [ctypes.c_void_p(t.data_ptr()) for t in (*tensors, out, workspace)]
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    assert library.launch(*pointers, stream) == 0
    torch.cuda.synchronize()
    return out.clone()


@pytest.mark.parametrize(
    "number", range(len(JOBS)), ids=lambda n: " ".join((JOBS[n][0], *JOBS[n][1]))
)
def test_recipe_is_right_on_every_distribution(number: int, objects: list[Path | str]) -> None:
    built, case = objects[number], CASES[JOBS[number][0]]
    assert isinstance(built, Path), built
    library = ctypes.CDLL(str(built))
    library_size = getattr(library, "workspace_bytes", None)
    if library_size is not None:
        library_size.restype = ctypes.c_size_t
    size = library_size() if library_size is not None else 0
    workspace = torch.empty(max(size, 16), dtype=torch.uint8, device="cuda")
    (spec,) = case.signature.outputs
    out = torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device="cuda")
    torch.manual_seed(number)
    for mean, deviation in DISTRIBUTIONS.values():
        shapes = [t.shape for t in case.signature.arguments]
        tensors = [torch.randn(s, device="cuda") * deviation + mean for s in shapes[:1]]
        tensors += [torch.randn(s, device="cuda") * 0.5 + 1 for s in shapes[1:]]
        y = run(library, case, tensors, out, workspace)
        assert torch.equal(y, run(library, case, tensors, out, workspace))
        truth = reference(case, [t.double() for t in tensors])
        if not truth.is_floating_point():
            assert torch.equal(y.flatten(), truth.flatten())
            continue
        limits = errors(reference(case, tensors), truth)
        for error, limit in zip(errors(y, truth), limits, strict=True):
            assert error <= 4 * max(limit, ULP)
