"""No device at all: every job waits for a sitting on a machine that has one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from evo.executor import Job
from fitness.evaluation import Evaluation


class AbsentExecutor:
    """Takes jobs and never answers; ``hardware`` is what the run was judged on so far."""

    devices: tuple[str, ...] = ()

    def __init__(self, hardware: str) -> None:
        self.hardware = hardware

    def submit(self, job: Job) -> Future[Evaluation]:  # noqa: ARG002  # the protocol's
        """A future that stays open."""
        return Future()

    def heed(self, say: Callable[[str], None]) -> None:
        """There is no device that could be taken out."""

    def close(self) -> None:
        """Nothing was started."""
