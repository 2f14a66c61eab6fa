"""Certification: run a kernel under the sanitizers of its language, in a driver program of ours.

The driver has its own buffers, each allocated for itself, so that an access one byte past a tensor
is found. It is compiled together with the candidate and run in a jail.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cuda_sandbox.backend import Check, find
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.signature import Signature
from cuda_sandbox.standalone import NotBuilt, Recipe, Standalone, built

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
    checks = find(kernel.language).checks(arch, kernel.flags)
    recipe = Recipe(checks.command, checks.driver, checks.mounts)
    try:
        with (
            built(kernel, signature, recipe, inputs, deadline_s, cache_dir) as program,
            ThreadPoolExecutor(len(checks.runs)) as pool,
        ):
            found = [pool.submit(_run, program, run, threads, deadline_s) for run in checks.runs]
            return {name: verdict for run in found for name, verdict in run.result().items()}
    except NotBuilt as error:
        return {name: f"not run: {error}" for run in checks.runs for name in run.names}


def _run(program: Standalone, run: Check, threads: int, deadline_s: float) -> dict[str, str]:
    if run.missing:
        return dict.fromkeys(run.names, f"not run: {run.missing}")
    environment = {**run.environment, "OMP_NUM_THREADS": str(threads)}
    # the tools run side by side: a log each
    code, said = program.run(run.prefix, environment, deadline_s, log=f"log-{run.names[0]}")
    if code is None:
        return dict.fromkeys(run.names, f"not run: no end within {deadline_s:g} s")
    wrong = run.verdict(code, said)
    return {name: wrong.get(name) or PASSED for name in run.names}
