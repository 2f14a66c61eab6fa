"""The kernel of our own that tells what goes by around a GPU's calls."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cuda_sandbox.compiler import Compiler
from cuda_sandbox.signature import Role, Signature, TensorSpec
from fitness import neighbours
from fitness.overhead import Overhead, nothing

X = TensorSpec("x", "float32", (4,), Role.INPUT)
OUT = TensorSpec("out", "float32", (4,), Role.OUTPUT)
SIGNATURE = Signature("copy", (X,), (OUT,))


def test_a_judge_of_modules_needs_no_cuda_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain PyTorch and Triton run where there is no nvcc."""

    class Nobody:
        def submit(self, *_: object) -> object:
            raise RuntimeError("no nvcc")

    judge: Any = SimpleNamespace(
        backend=SimpleNamespace(missing=lambda: "no nvcc"),
        compiler=Nobody(),
        signature=SIGNATURE,
        arch="sm_89",
        device="cuda:0",
    )
    monkeypatch.setattr(neighbours, "at_work", lambda _: False)
    assert Overhead(judge).undisturbed()

    monkeypatch.setattr(neighbours, "at_work", lambda _: True)
    assert not Overhead(judge).undisturbed()


@pytest.mark.parametrize("arch", ["sm_89", "sm_90a"])
def test_it_compiles_for_any_signature(arch: str) -> None:
    with Compiler() as compiler:
        try:
            report = compiler.submit(nothing(SIGNATURE), SIGNATURE, arch).result()
        except RuntimeError as missing:
            pytest.skip(str(missing))
    assert report.object_key, report.reason
