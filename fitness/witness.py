"""What the operating system says of a process: a witness that a candidate cannot bribe."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_PROCESS_CLOCK = 2  # CPUCLOCK_SCHED: nanoseconds, threads that have ended included


@dataclass(frozen=True, slots=True)
class Usage:
    """Since its start, in ms: CPU time of all threads and of each; what the first one waited.

    Exact for a process that is stopped.
    """

    cpu_ms: float
    threads_ms: Mapping[int, float] = field(default_factory=dict)
    delay_ms: float = 0.0

    def since(self, earlier: Usage) -> Usage:
        """What came on top of ``earlier``."""
        return Usage(
            self.cpu_ms - earlier.cpu_ms,
            {
                thread: used - earlier.threads_ms.get(thread, 0.0)
                for thread, used in self.threads_ms.items()
            },
            self.delay_ms - earlier.delay_ms,
        )

    def busy_ms(self, cpus: int) -> float:
        """The least wall-clock time in which ``cpus`` CPUs can have been used this much."""
        return max(self.cpu_ms / cpus, *self.threads_ms.values(), 0.0)


def usage(pid: int) -> Usage:
    """The usage of process ``pid``. Raises OSError or ValueError if it is gone."""
    cpu_s = time.clock_gettime((~pid << 3) | _PROCESS_CLOCK)
    threads, delay_ms = {}, 0.0
    for folder in Path(f"/proc/{pid}/task").iterdir():
        # a thread may end meanwhile, and not every kernel keeps these figures
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            running, waiting, _ = (folder / "schedstat").read_text().split()
            threads[int(folder.name)] = int(running) / 1e6
            if folder.name == str(pid):
                delay_ms = int(waiting) / 1e6
    return Usage(cpu_s * 1e3, threads, delay_ms)
