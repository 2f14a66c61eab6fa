"""Brings kernels before the judges: each digest once, each verdict committed before it is used."""

from __future__ import annotations

import asyncio

from cuda_sandbox.kernel import Kernel
from evo.budget import Budget
from evo.executor import Executor, Job, JobFailed, Purpose
from evo.recorder import Recorder
from evo.waiting import Waiting
from fitness.evaluation import Evaluation

PATIENCE = 3  # failures of ours in a row, after which the run is stopped


class Docket:
    """Evaluates kernels through an executor; equal kernels share one verdict."""

    def __init__(
        self, executor: Executor, recorder: Recorder, budget: Budget, waiting: Waiting
    ) -> None:
        self._executor = executor
        self._recorder = recorder
        self._budget = budget
        self._judging = waiting.working if executor.devices else waiting.for_device
        self._under_way: dict[str, asyncio.Task[Evaluation | None]] = {}
        self._profiles: dict[str, asyncio.Task[None]] = {}
        self._failures = 0
        self.last_failure = ""

    async def evaluate(self, kernel: Kernel, digest: str) -> Evaluation | None:
        """The verdict on a kernel; None where the budget or the machine brought none."""
        recorded = self._recorder.evaluation(digest, self._executor.hardware, Purpose.SEARCH)
        if recorded is not None:
            return recorded
        task = self._under_way.get(digest)
        if task is None:
            if not self._budget.grant_evaluation():
                return None
            task = asyncio.ensure_future(self._judge(kernel, digest))
            self._under_way[digest] = task
        return await asyncio.shield(task)

    async def _judge(self, kernel: Kernel, digest: str) -> Evaluation | None:
        evaluation: Evaluation | None = None
        try:
            evaluation = await self._verdict(Job(kernel))
            if evaluation is not None:
                hardware = self._executor.hardware
                self._recorder.add_evaluation(digest, hardware, Purpose.SEARCH, evaluation)
        finally:
            del self._under_way[digest]
            self._budget.evaluated(committed=evaluation is not None)
        return evaluation

    async def certify(
        self, kernel: Kernel, digest: str, rivals: tuple[Kernel, ...]
    ) -> Evaluation | None:
        """The certifying verdict, from the record or made now."""
        recorded = self._recorder.evaluation(digest, self._executor.hardware, Purpose.CERTIFY)
        if recorded is not None:
            return recorded
        evaluation = await self._verdict(Job(kernel, Purpose.CERTIFY, rivals))
        if evaluation is not None:
            hardware = self._executor.hardware
            self._recorder.add_evaluation(digest, hardware, Purpose.CERTIFY, evaluation)
        return evaluation

    def profile(self, kernel: Kernel, digest: str, verdict: Evaluation) -> None:
        """Have an accepted kernel looked into once a judge has nothing else to do.

        Nobody waits for it: what is found is recorded, and authors are told from then on.
        """
        hardware = self._executor.hardware
        known = self._recorder.evaluation(digest, hardware, Purpose.PROFILE)
        if known is None and digest not in self._profiles and self._executor.devices:
            task = asyncio.ensure_future(self._profile(kernel, digest, verdict))
            self._profiles[digest] = task

    async def _profile(self, kernel: Kernel, digest: str, verdict: Evaluation) -> None:
        job = Job(kernel, Purpose.PROFILE, verdict=verdict)
        try:
            with self._judging():
                found = await asyncio.wrap_future(self._executor.submit(job))
        except JobFailed as failure:
            self._recorder.add_event("failure", str(job.purpose), reason=str(failure))
            return
        if found.bottleneck is not None:
            hardware = self._executor.hardware
            self._recorder.add_evaluation(digest, hardware, Purpose.PROFILE, found)

    async def _verdict(self, job: Job) -> Evaluation | None:
        try:
            with self._judging():
                evaluation = await asyncio.wrap_future(self._executor.submit(job))
        except JobFailed as failure:
            self._failures += 1
            self.last_failure = str(failure)
            self._recorder.add_event("failure", str(job.purpose), reason=str(failure))
            if self._failures >= PATIENCE:
                raise
            return None
        self._failures = 0
        return evaluation
