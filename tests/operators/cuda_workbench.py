"""Catalogue kernels in CUDA as far as they can be tried without a GPU: rendered and compiled."""

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


def idle_ideas(case: Case) -> list[str]:
    """Ideas that do not change the code."""
    match = case.match
    found = []
    for key in match.applicable():
        with_idea = closure(match, [key])
        without = match.book.without(with_idea, key)
        if code(kernel(case, with_idea).source) == code(kernel(case, without).source):
            found.append(key)
    return found
