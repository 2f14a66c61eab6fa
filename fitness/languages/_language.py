"""What a language is to a judge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CompileReport
from cuda_sandbox.sandbox import Worker
from cuda_sandbox.signature import Signature
from fitness.evaluation import Execution

if TYPE_CHECKING:
    from fitness.arena import Arena
    from fitness.judge import Judge


class Language(ABC):
    """How candidates of one language are made ready and run. No torch is imported for this."""

    name: str
    suffix: str
    devices: tuple[str, ...]  # kinds of device, the one to prefer first
    in_rows = True  # whether calls on a GPU can be made one right behind the other
    idle_ms = 0.1  # CPU time that a call of nothing takes at most

    @abstractmethod
    def compile(self, kernel: Kernel, judge: Judge) -> CompileReport:
        """Make the kernel ready to run on the judge's device.

        Raises:
            RuntimeError: this machine lacks what that needs.
        """

    @abstractmethod
    def worker(self, compiled: CompileReport, judge: Judge, arena: Arena) -> Worker:
        """A worker for a kernel that was compiled; not started, not bound."""

    def execution(self, worker: Worker) -> Execution | None:
        """What ran in one call, where the language's interface leaves that open."""
        del worker
        return None

    @abstractmethod
    def digest(self, kernel: Kernel, signature: Signature) -> str:
        """Hex SHA-256 of what makes the kernel what it is."""
