"""The seam between the search and the judges: small picklable records, nothing else."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from cuda_sandbox.kernel import Kernel
from fitness.evaluation import Evaluation


class Purpose(StrEnum):
    """How deep a verdict goes."""

    SEARCH = "search"
    CERTIFY = "certify"


@dataclass(frozen=True, slots=True)
class Job:
    """One kernel to judge. ``rivals`` are timed against it in one sitting when certifying."""

    kernel: Kernel
    purpose: Purpose = Purpose.SEARCH
    rivals: tuple[Kernel, ...] = ()


class Executor(Protocol):
    """Runs jobs on whatever devices it was made with.

    A future's exception means that we (or the machine) failed, never the candidate.
    """

    devices: tuple[str, ...]

    def submit(self, job: Job) -> Future[Evaluation]:
        """Queue ``job``; returns at once."""
        ...

    def close(self) -> None:
        """Stop every process that this executor started."""
        ...
