"""What the operating system says of a process: a witness that a candidate cannot bribe."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

_PROCESS_CLOCK = 2  # CPUCLOCK_SCHED: nanoseconds, threads that have ended included


@dataclass(frozen=True, slots=True)
class Usage:
    """Since its start: CPU time of all threads, and what the main thread waited for a CPU (ms)."""

    cpu_ms: float
    delay_ms: float

    def since(self, earlier: Usage) -> Usage:
        """What came on top of ``earlier``."""
        return Usage(self.cpu_ms - earlier.cpu_ms, self.delay_ms - earlier.delay_ms)


def usage(pid: int) -> Usage:
    """The usage of process ``pid``. Raises OSError if it is gone."""
    cpu_s = time.clock_gettime((~pid << 3) | _PROCESS_CLOCK)
    return Usage(cpu_s * 1e3, _delay_ms(pid))


def _delay_ms(pid: int) -> float:
    """Zero where this kernel does not keep the figure: then a busy host looks like a slow one."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e6
    except FileNotFoundError:
        return 0.0
