"""What the operating system says of a process: a witness that a candidate cannot bribe."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

_PROCESS_CLOCK = 2  # CPUCLOCK_SCHED: nanoseconds, threads that have ended included


@dataclass(frozen=True, slots=True)
class Usage:
    """Since its start, in ms: CPU time of all threads and of the first; what that one waited."""

    cpu_ms: float
    main_ms: float
    delay_ms: float

    def since(self, earlier: Usage) -> Usage:
        """What came on top of ``earlier``."""
        return Usage(
            self.cpu_ms - earlier.cpu_ms,
            self.main_ms - earlier.main_ms,
            self.delay_ms - earlier.delay_ms,
        )

    def busy_ms(self, threads: int) -> float:
        """The least wall-clock time in which ``threads`` threads can have used this much CPU."""
        return max(self.main_ms, self.cpu_ms / threads)


def usage(pid: int) -> Usage:
    """The usage of process ``pid``. Raises OSError or ValueError if it is gone."""
    cpu_s = time.clock_gettime((~pid << 3) | _PROCESS_CLOCK)
    main_ms, delay_ms = _main_thread(pid)
    return Usage(cpu_s * 1e3, main_ms, delay_ms)


def _main_thread(pid: int) -> tuple[float, float]:
    """Zeros where this kernel does not keep the figures."""
    try:
        running, waiting, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    except FileNotFoundError:
        return 0.0, 0.0
    return int(running) / 1e6, int(waiting) / 1e6
