"""A program of our own around one candidate: built with it, run under a tool, in a jail.

It has its own buffers, each allocated for itself, and needs neither torch nor a judge.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cuda_sandbox import cache
from cuda_sandbox.backend import find
from cuda_sandbox.isolation import Mount
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.signature import Signature
from cuda_sandbox.tool import Tool, job_folder, limited, read_log, run_tool
from cuda_sandbox.toolchain import Toolchain


class NotBuilt(Exception):
    """The program did not compile; the message says why."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to build and run it: compiler and options, the driver's source, what a run sees more."""

    command: Sequence[str]
    driver: Callable[[Signature], str]
    mounts: tuple[Mount, ...] = ()


class Standalone:
    """The built program in its folder; ``log`` is what the compiler said."""

    def __init__(self, folder: Path, toolchain: Toolchain, recipe: Recipe) -> None:
        self._folder = folder
        self._toolchain = toolchain
        self._recipe = recipe
        self.log = read_log(folder)

    def run(
        self,
        prefix: Sequence[str],
        environment: Mapping[str, str],
        deadline_s: float,
        *,
        mounts: tuple[Mount, ...] = (),
        log: str = "log-run",
    ) -> tuple[int | None, str]:
        """Exit code (None at the deadline) and output of one run under the command ``prefix``.

        ``log`` names the file of what it prints: runs side by side need one each.
        """
        base = self._toolchain
        environment = {**base.environment, **environment}
        seen = (*base.mounts, *self._recipe.mounts, *mounts)
        toolchain = replace(base, mounts=seen, environment=environment)
        command = [*prefix, "../out/driver"]
        code = run_tool(Tool(command, toolchain, self._folder, proc=True, log=log), deadline_s)
        return code, read_log(self._folder, log)


@contextlib.contextmanager
def built(
    kernel: Kernel,
    signature: Signature,
    recipe: Recipe,
    inputs: Mapping[str, bytes] | None,
    deadline_s: float,
    cache_dir: Path | None = None,
) -> Iterator[Standalone]:
    """The program for ``kernel``; its folder is removed afterwards.

    ``inputs`` maps every argument of the signature to its bytes; None for a program that is built
    and not run.

    Raises:
        ValueError: an argument is missing or has another size than its tensor.
        RuntimeError: this machine lacks the compiler.
        NotBuilt: it does not compile.
    """
    if inputs is not None:
        _check_inputs(signature, inputs)
    backend = find(kernel.language)
    if why := backend.missing():
        raise RuntimeError(why)
    folder = job_folder(cache_dir or cache.cache_dir())
    try:
        sources = {
            "header.h": signature.header(kernel.language),
            f"kernel{backend.suffix}": kernel.source,
            f"driver{backend.suffix}": recipe.driver(signature),
        }
        for name, text in sources.items():
            (folder / "src" / name).write_text(text, encoding="utf-8")
        for index, tensor in enumerate(signature.arguments):
            if inputs is not None:
                (folder / "src" / f"input{index}").write_bytes(inputs[tensor.name])
        files = [f"{name}{backend.suffix}" for name in ("driver", "kernel")]
        command = [*recipe.command, "-include", "header.h", *files, "-o", "../out/driver"]
        tool = Tool(limited(command, deadline_s), backend.toolchain(), folder)
        code = run_tool(tool, deadline_s)
        if code != 0:
            raise NotBuilt(f"the driver did not compile: {_first_error(folder) or code}")
        yield Standalone(folder, backend.toolchain(), recipe)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_inputs(signature: Signature, inputs: Mapping[str, bytes]) -> None:
    for tensor in signature.arguments:
        size = len(inputs[tensor.name]) if tensor.name in inputs else None
        if size != tensor.nbytes:
            given = "is missing" if size is None else f"has {size} bytes"
            raise ValueError(f"input {tensor.name!r} {given}; {tensor.nbytes} bytes are needed")


def _first_error(folder: Path) -> str:
    lines = [line for line in read_log(folder).splitlines() if "error" in line.lower()]
    return lines[0][:300] if lines else ""
