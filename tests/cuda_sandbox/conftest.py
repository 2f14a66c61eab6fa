"""One compile pool for all tests of this folder, over a cache of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cuda_sandbox.compiler import Compiler
from cuda_sandbox.signature import Role, Signature, TensorSpec


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def compiler(cache: Path) -> Iterator[Compiler]:
    with Compiler(cache, jobs=1) as pool:
        yield pool


@pytest.fixture(scope="session")
def signature() -> Signature:
    """x and a number in, out as large as x; x ends neither at a page nor at 256 bytes."""
    return Signature(
        "relu",
        (
            TensorSpec("x", "float32", (50, 41), Role.INPUT),
            TensorSpec("what", "int32", (), Role.INPUT),
        ),
        (TensorSpec("out", "float32", (50, 41), Role.OUTPUT),),
    )
