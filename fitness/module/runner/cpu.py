"""Modules on the CPU: the judge's memory files are the inputs, and cannot be written to."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import numpy
import torch
from torch import Tensor

from cuda_sandbox.protocol import Request
from fitness.module.runner.evidence import Operators
from fitness.module.runner.jail import Jail
from fitness.module.runner.orders import Spec
from fitness.module.runner.outputs import wipe
from fitness.module.runner.stage import Stage

_clock = time.perf_counter  # before any candidate can put another in its place


def prepare() -> None:
    """Keep freed memory, as the judge does for PyTorch: else each output costs page faults."""
    libc = ctypes.CDLL(None)
    mmap_max, trim_threshold = -4, -1
    libc.mallopt(mmap_max, 0)
    libc.mallopt(trim_threshold, 2**31 - 1)


class CpuStage(Stage):
    """Calls the model on tensors over the judge's memory. The judge empties the caches."""

    def view(
        self, request: Request, descriptor: int, spec: Spec, jail: Jail
    ) -> Callable[[], Tensor]:
        """Over a memory file, mapped between stretches without access."""
        address = jail.map(request, descriptor)
        array = numpy.ctypeslib.as_array((ctypes.c_ubyte * request.nbytes).from_address(address))
        dtype = getattr(torch, spec.dtype)
        return lambda: torch.from_numpy(array).view(dtype).view(spec.shape)

    def run(self, request: Request) -> list[float]:
        """Call the model."""
        return [self._timed(request.index + i, self.model) for i in range(request.calls)]

    def run_empty(self, request: Request) -> list[float]:
        """Everything but the model."""
        blank = self.blank()
        return [self._timed(request.index + i, lambda *_: blank) for i in range(request.calls)]

    def _timed(self, index: int, function: Callable[..., Any]) -> float:
        leaves, targets = self.shared(index)
        arguments = self.arguments(leaves)
        with self.blamed():
            started = _clock()
            result = function(*arguments)
            elapsed = _clock() - started
        returned = self.outputs.take(result, targets, self.given(leaves))
        wipe(returned, (*leaves, *targets), self.model)
        return elapsed * 1e3

    def settle(self) -> None:
        """The CPU is done when a call returns."""

    def trace(self) -> dict[str, Any]:
        """The operators of PyTorch that one call goes through."""
        leaves, targets = self.shared(0)
        arguments = self.arguments(leaves)
        with self.blamed(), Operators() as operators:
            result = self.model(*arguments)
        returned = self.outputs.take(result, targets, self.given(leaves))
        wipe(returned, (*leaves, *targets), self.model)
        return {"kernels": [], "unseen": "", "operators": operators.names()}
