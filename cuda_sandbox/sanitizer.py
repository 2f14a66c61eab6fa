"""Certification: run a kernel under the sanitizers of its language, in a driver program of ours.

The driver has its own buffers, each allocated for itself, so that an access one byte past a tensor
is found. It is compiled together with the candidate and run in a jail.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from cuda_sandbox import cache
from cuda_sandbox.backend import Backend, Check, Checks, Toolchain, find
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.signature import Signature
from cuda_sandbox.tool import Tool, job_folder, limited, read_log, run_tool

PASSED = "passed"


def sanitize(
    kernel: Kernel,
    signature: Signature,
    arch: str,
    inputs: Mapping[str, bytes],
    *,
    threads: int = 2,
    deadline_s: float = 60.0,
    cache_dir: Path | None = None,
) -> dict[str, str]:
    """The verdict of each sanitizer: ``passed``, ``failed: what``, or ``not run: why``.

    ``inputs`` maps every argument of the signature to its bytes; ``deadline_s`` bounds the
    compilation and each run.

    Raises:
        ValueError: an argument is missing or has another size than its tensor.
    """
    _check_inputs(signature, inputs)
    backend = find(kernel.language)
    if why := backend.missing():
        raise RuntimeError(why)
    checks = backend.checks(arch, kernel.flags)
    folder = job_folder(cache_dir or cache.cache_dir())
    try:
        _write(folder, backend, kernel, signature, checks, inputs)
        if why := _compile(folder, backend, checks, deadline_s):
            return {name: f"not run: {why}" for run in checks.runs for name in run.names}
        tools = backend.toolchain()
        with ThreadPoolExecutor(len(checks.runs)) as pool:
            found = [
                pool.submit(_run, folder, tools, checks, run, threads, deadline_s)
                for run in checks.runs
            ]
        return {name: verdict for run in found for name, verdict in run.result().items()}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_inputs(signature: Signature, inputs: Mapping[str, bytes]) -> None:
    for tensor in signature.arguments:
        size = len(inputs[tensor.name]) if tensor.name in inputs else None
        if size != tensor.nbytes:
            given = "is missing" if size is None else f"has {size} bytes"
            raise ValueError(f"input {tensor.name!r} {given}; {tensor.nbytes} bytes are needed")


def _write(
    folder: Path,
    backend: Backend,
    kernel: Kernel,
    signature: Signature,
    checks: Checks,
    inputs: Mapping[str, bytes],
) -> None:
    source = folder / "src"
    (source / "header.h").write_text(signature.header(kernel.language), encoding="utf-8")
    (source / f"kernel{backend.suffix}").write_text(kernel.source, encoding="utf-8")
    (source / f"driver{backend.suffix}").write_text(checks.driver(signature), encoding="utf-8")
    for index, tensor in enumerate(signature.arguments):
        (source / f"input{index}").write_bytes(inputs[tensor.name])


def _compile(folder: Path, backend: Backend, checks: Checks, deadline_s: float) -> str:
    """Why the driver could not be built; empty if it was."""
    files = [f"{name}{backend.suffix}" for name in ("driver", "kernel")]
    command = [*checks.command, "-include", "header.h", *files, "-o", "../out/driver"]
    tool = Tool(limited(command, deadline_s), backend.toolchain(), folder)
    code = run_tool(tool, deadline_s)
    if code == 0:
        return ""
    lines = [line for line in read_log(folder).splitlines() if "error" in line.lower()]
    return f"the driver did not compile: {lines[0][:300] if lines else code}"


def _run(
    folder: Path, base: Toolchain, checks: Checks, run: Check, threads: int, deadline_s: float
) -> dict[str, str]:
    if run.missing:
        return dict.fromkeys(run.names, f"not run: {run.missing}")
    environment = {**base.environment, **run.environment, "OMP_NUM_THREADS": str(threads)}
    toolchain = replace(base, mounts=(*base.mounts, *checks.mounts), environment=environment)
    log = f"log-{run.names[0]}"  # the tools run side by side
    tool = Tool([*run.prefix, "../out/driver"], toolchain, folder, proc=True, log=log)
    code = run_tool(tool, deadline_s)
    if code is None:
        return dict.fromkeys(run.names, f"not run: no end within {deadline_s:g} s")
    wrong = run.verdict(code, read_log(folder, log))
    return {name: wrong.get(name) or PASSED for name in run.names}
