"""Compiles and runs catalogue kernels on small tasks, without the sandbox: they are our own."""

from __future__ import annotations

import ctypes
import hashlib
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.signature import Role, Signature, TensorSpec
from fitness.description import Node, TaskDescription
from operators.catalogue.shelf import Match

# -O1 halves the time to compile; what the sandbox uses else
FLAGS = ("-std=c++20", "-O1", "-march=native", "-fopenmp", "-shared", "-fPIC")
NUMPY = {"float32": np.float32, "float16": np.float16, "int64": np.int64}

Array = NDArray[np.generic]


def ref(name: str) -> dict[str, str]:
    """A reference to another node, as descriptions spell it."""
    return {"node": name}


def task(
    arguments: Sequence[TensorSpec], nodes: Sequence[Node], name: str = "task"
) -> TaskDescription:
    """A task by hand: its leaves, its nodes; the last node is the output."""
    leaves = [Node(t.name, str(t.role), shape=t.shape, dtype=t.dtype) for t in arguments]
    last = nodes[-1]
    assert last.shape is not None
    assert last.dtype is not None
    out = TensorSpec("out", last.dtype, last.shape, Role.OUTPUT)
    graph = (*leaves, *nodes, Node("output", "output", (ref(last.name),)))
    return TaskDescription(name, "", Signature(name, tuple(arguments), (out,)), graph)


def covering_sets(match: Match, rng: random.Random) -> list[tuple[str, ...]]:
    """Random sets of ideas that go together, so many that each idea is in one of them."""
    open_ = set(match.applicable())
    sets: list[tuple[str, ...]] = [()]
    while open_:
        first = rng.choice(sorted(open_))
        others = sorted(match.applicable())
        rng.shuffle(others)
        keys = match.book.joined((*match.book.with_key((), first), *others))
        assert first in keys
        sets.append(keys)
        open_ -= set(keys)
    return sets


def build(kernel: Kernel, signature: Signature, folder: Path) -> ctypes.CDLL:
    """The kernel as a loaded library. Raises AssertionError with the compiler's words."""
    header = signature.header("cpp")
    stem = folder / hashlib.sha256((header + kernel.source).encode()).hexdigest()[:16]
    Path(f"{stem}.h").write_text(header)
    Path(f"{stem}.cpp").write_text(kernel.source)
    command = ["g++", *FLAGS, *kernel.flags, "-include", f"{stem}.h", f"{stem}.cpp"]
    done = subprocess.run(
        [*command, "-o", f"{stem}.so"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stderr}\n{kernel.source}"
    return ctypes.CDLL(f"{stem}.so")


def aligned(array: Array) -> Array:
    """A copy whose first byte is on a 256-byte boundary, as the interface promises."""
    raw = np.empty(array.nbytes + 256, np.uint8)
    start = -raw.ctypes.data % 256
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def call(library: ctypes.CDLL, signature: Signature, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of one launch, in the signature's order; they and the workspace start as NaN."""
    tensors = [aligned(np.ascontiguousarray(array)) for array in inputs]
    outputs = []
    for spec in signature.outputs:
        poison = np.full(spec.nbytes, 0xFF, np.uint8)
        outputs.append(aligned(poison.view(NUMPY[spec.dtype]).reshape(spec.shape)))
    size = 0
    if hasattr(library, "workspace_bytes"):
        library.workspace_bytes.restype = ctypes.c_size_t
        size = library.workspace_bytes()
    workspace = aligned(np.full(size, 0xFF, np.uint8))
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in [*tensors, *outputs, workspace]]
    assert library.launch(*pointers) == 0
    return outputs


__all__ = ["NUMPY", "aligned", "build", "call", "covering_sets", "ref", "task"]
