"""A GPU's pulse: work whose answer and time are known, to tell a sick device or a busy one."""

from __future__ import annotations

import functools

import numpy
import torch

from cuda_sandbox.errors import UserError

_COUNT = 8 << 20  # int32: 32 MiB
_FACTOR, _SUMMAND = 1664525, 1013904223
_BEAT_MS = 5.0
"""Longer than the time slice that a GPU gives to each of several processes (about 2 ms)."""

_SLOW = 1.4
_LOOKS = 3


class DeviceSick(UserError):
    """A device that computes wrongly, or slowly, after a kernel went wrong on it."""

    exit_code = 70


class DeviceShared(UserError):
    """Something that is not ours keeps the device busy: what is seen there says nothing."""

    exit_code = 70


class Pulse:
    """Beats of known work on one CUDA device. ``usual_ms`` is a beat's time when all is well.

    Raises DeviceSick where the very first beats are wrong.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._start = torch.arange(_COUNT, dtype=torch.int32, device=device)
        self._work = torch.empty_like(self._start)
        self._rounds = 1
        once = min(self.beat() for _ in range(5))
        self._rounds = max(1, min(1000, round(_BEAT_MS / once)))
        self.usual_ms = min(self.beat() for _ in range(5))

    def beat(self) -> float:
        """The time of one beat in ms. Raises DeviceSick if its answer is wrong."""
        try:
            elapsed, found = self._run()
        except RuntimeError as error:
            raise DeviceSick(f"{self._device} fails on work of ours: {error}") from error
        if found != _expected(self._rounds):
            raise DeviceSick(f"{self._device} computes wrongly: known work gives {found}")
        return elapsed

    def disturbed(self) -> bool:
        """Whether beats are slow again and again: something else is running on the device."""
        return all(self.beat() > _SLOW * self.usual_ms for _ in range(_LOOKS))

    def prove(self, usual_ms: float | None = None) -> None:
        """Raise DeviceSick unless the device computes as well and as fast as it did.

        ``usual_ms`` is what another process of ours found to be usual before.
        """
        usual = usual_ms or self.usual_ms
        fastest = min(self.beat() for _ in range(2 * _LOOKS))
        if fastest > _SLOW * usual:
            raise DeviceSick(
                f"{self._device} is slow: known work takes {fastest:.3g} ms, before {usual:.3g} ms"
            )

    def _run(self) -> tuple[float, int]:
        with torch.cuda.device(self._device):
            before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self._work.copy_(self._start)
            before.record()
            for _ in range(self._rounds):
                self._work.mul_(_FACTOR).add_(_SUMMAND)
            after.record()
            total = int(self._work.sum(dtype=torch.int64))  # waits for the device
            return float(before.elapsed_time(after)), total


@functools.cache
def _expected(rounds: int) -> int:
    """The sum after so many rounds, computed here on the host, in 32 bits as the device does."""
    factor, summand = 1, 0
    for _ in range(rounds):
        factor = factor * _FACTOR % 2**32
        summand = (summand * _FACTOR + _SUMMAND) % 2**32
    start = numpy.arange(_COUNT, dtype=numpy.uint32)
    work = start * numpy.uint32(factor) + numpy.uint32(summand)
    return int(work.view(numpy.int32).sum(dtype=numpy.int64))
