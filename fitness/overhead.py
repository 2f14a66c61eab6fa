"""What goes by around a GPU's calls, told by a kernel of our own that does nothing.

A candidate's worker must not be asked: it could make this slow on purpose, and do work in it.
"""

from __future__ import annotations

import statistics
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CompileReport
from cuda_sandbox.signature import Signature
from fitness import languages, neighbours
from fitness.arena import Arena
from fitness.clocks import JITTER_MS, spread

if TYPE_CHECKING:
    from fitness.judge import Judge

_LANGUAGE = "cuda"
_CALLS, _LOOKS = 15, 3


class Overhead:
    """The time (ms) from asking for calls to knowing that they are done, less that of the calls.

    Mostly it is the GPU's switch between processes. Measured when first asked for.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        # Ahead of need; where no CUDA kernel can be compiled none comes to be timed either.
        self._compiled = None if judge.backend.missing() else _compiling(judge)
        self._ms: float | None = None

    def ms(self) -> float:
        """What was measured. Raises RuntimeError if our own kernel does not even compile."""
        if self._ms is None:
            self._steady()
        assert self._ms is not None
        return self._ms

    def undisturbed(self) -> bool:
        """Measured anew: whether it is steady, and nobody else at work on the device.

        Nothing of ours may run meanwhile. Where there is no compiler to tell (modules are judged
        there too) the driver alone is asked.
        """
        steady = self._compiled is None or any(self._steady() for _ in range(_LOOKS))
        return steady and not neighbours.at_work(self._judge.device)

    def _steady(self) -> bool:
        """Measure it; whether it is the same each time."""
        judge = self._judge
        buffers = judge.backend.buffers(judge.signature.tensors, judge.device.index or 0)
        arena = Arena(judge.signature, judge.device, buffers)
        try:
            times = self._measure(arena)
        finally:
            arena.close()
        self._ms = statistics.median(times)
        return spread(times) <= JITTER_MS

    def _measure(self, arena: Arena) -> list[float]:
        compiled = (self._compiled or _compiling(self._judge)).result()
        if compiled.object_key is None:
            raise RuntimeError(f"a kernel that does nothing fails: {compiled.reason}")
        leaves = self._judge.bank.timed[0].leaves
        times = []
        with languages.find(_LANGUAGE).worker(compiled, self._judge, arena) as worker:
            worker.bind()
            for _ in range(_CALLS):
                with worker.frozen():
                    arena.write(leaves)
                started = time.perf_counter()
                worker.run_bare(1)
                times.append((time.perf_counter() - started) * 1e3)
        return times


def _compiling(judge: Judge) -> Future[CompileReport]:
    return judge.compiler.submit(nothing(judge.signature), judge.signature, judge.arch)


def nothing(signature: Signature) -> Kernel:
    """A kernel of this signature that leaves its outputs alone."""
    return Kernel(
        "__global__ void nothing() {}\n"
        f'extern "C" int launch({", ".join(signature.parameters(_LANGUAGE))}) {{\n'
        "    nothing<<<1, 1, 0, stream>>>();\n"
        "    return (int)cudaGetLastError();\n"
        "}\n",
        _LANGUAGE,
    )
