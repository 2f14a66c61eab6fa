"""The judge's own clock for PyTorch calls, under the conditions that a kernel is timed in."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import torch

from fitness.hardware import cache_bytes

_SPIN_CYCLES, _MOST_CYCLES = 200_000, 4_000_000
"""0.1 ms at first and 2 ms at most: until the whole call is queued before the first event fires.

A call that takes longer to queue (a network of a thousand operations) is bound by its launches.
"""


def steady_heap() -> None:
    """Let this process keep the memory it frees, so that no timed CPU call pays page faults.

    An allocation per call would make PyTorch look up to four times slower than a kernel whose
    output is preallocated.
    """
    libc = ctypes.CDLL(None)
    mmap_max, trim_threshold = -4, -1
    libc.mallopt(mmap_max, 0)
    libc.mallopt(trim_threshold, 2**31 - 1)


class Stopwatch:
    """Times one call in ms: caches flushed before it, and on a GPU the work queued ahead."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        size = 2 * cache_bytes(device)
        self._flush = torch.empty(size // 4, dtype=torch.float32, device=device)
        self._cycles = _SPIN_CYCLES
        self._time = self._on_gpu if device.type == "cuda" else self._on_cpu

    def __call__(self, call: Callable[[], object]) -> float:
        """The time of one ``call()`` in ms."""
        self._flush.zero_()
        return self._time(call)

    def _on_cpu(self, call: Callable[[], object]) -> float:
        started = time.perf_counter()
        kept = call()
        elapsed = time.perf_counter() - started
        del kept
        return elapsed * 1e3

    def _on_gpu(self, call: Callable[[], object]) -> float:
        with torch.cuda.device(self._device):  # events and streams are the current device's
            while True:
                elapsed, started_early = self._between_events(call)
                if not started_early or self._cycles >= _MOST_CYCLES:
                    return elapsed
                self._cycles *= 2
                self._flush.zero_()

    def _between_events(self, call: Callable[[], object]) -> tuple[float, bool]:
        """The time in ms, and whether the device began before all of the call was queued.

        Then it may have waited for us: guards of torch.compile alone take 0.1 ms.
        """
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(self._cycles)
        before.record()
        kept = call()
        after.record()
        started_early = before.query()
        after.synchronize()
        del kept
        return float(before.elapsed_time(after)), started_early
