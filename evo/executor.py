"""The seam between the search and the judges: small picklable records, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from cuda_sandbox.errors import UserError
from cuda_sandbox.kernel import Kernel
from fitness.evaluation import Evaluation


class Purpose(StrEnum):
    """How deep a verdict goes."""

    SEARCH = "search"
    CERTIFY = "certify"
    PROFILE = "profile"  # what holds it back: no verdict, and the last to be taken


@dataclass(frozen=True, slots=True)
class Job:
    """One kernel to judge. ``rivals`` are timed against it in one sitting when certifying.

    ``verdict`` is the search's on a kernel that is to be profiled.
    """

    kernel: Kernel
    purpose: Purpose = Purpose.SEARCH
    rivals: tuple[Kernel, ...] = ()
    verdict: Evaluation | None = None


class JobFailed(UserError):
    """There is no verdict: we or the machine failed, never the candidate. The message says how."""

    exit_code = 70


class Executor(Protocol):
    """Runs jobs on whatever devices it was made with.

    ``hardware`` names what the figures are measured on, as ``Evaluation.device`` does: all devices
    of an executor are of one kind. No ``devices``: none is here, and jobs wait for ever. A future's
    exception is JobFailed.
    """

    devices: tuple[str, ...]
    hardware: str

    def submit(self, job: Job) -> Future[Evaluation]:
        """Queue ``job``; returns at once."""
        ...

    def heed(self, say: Callable[[str], None]) -> None:
        """Tell ``say``, from any thread, of every device that is taken out of the run."""
        ...

    def close(self) -> None:
        """Stop every process that this executor started."""
        ...
