"""This machine as an executor: a compile pool, and a judge process for each device."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from cuda_sandbox.backend import find
from cuda_sandbox.compiler import Compiler
from cuda_sandbox.errors import UserError
from cuda_sandbox.report import CompileReport, Status
from cuda_sandbox.signature import Signature
from evo.executor import Job, JobFailed
from evo.executors._bench import Bench, fail, resolve
from evo.executors._jobs import Jobs, Ticket
from evo.executors._judge_process import Order, Post
from evo.executors._ward import Ward
from evo.machine import Machine
from fitness.certificate import SANITIZER_S
from fitness.evaluation import Demand, Evaluation, Seconds


class LocalExecutor:
    """Compiles on the cores, judges on ``machine.devices``; any idle judge takes the next job.

    ``workers`` judges sit at each device: one for a GPU, as many as wanted for a CPU;
    ``sanitizer_s`` bounds each sanitizer. Raises UserError where there is no compiler.
    """

    def __init__(
        self,
        machine: Machine,
        task_path: Path,
        signature: Signature,
        demand: Demand,
        workers: int = 1,
        sanitizer_s: float = SANITIZER_S,
    ) -> None:
        if why := find(machine.language).missing():
            raise UserError(why)
        self.devices = machine.devices
        self.hardware = machine.hardware
        self._arch = machine.arch
        self._signature = signature
        self._compiler = Compiler()
        self._queue = Jobs()
        self._ward = Ward(len(machine.devices) * workers)
        posts = [
            Post(task_path, demand, device, machine.threads, sanitizer_s)
            for device in machine.devices
            for _ in range(workers)
        ]
        self._benches = [Bench(post, self._queue, self._ward) for post in posts]

    def heed(self, say: Callable[[str], None]) -> None:
        """Tell ``say`` of every device that is taken out of the run."""
        self._ward.say = say

    def submit(self, job: Job) -> Future[Evaluation]:
        """Compile the job's kernels, then queue it for a judge; returns at once."""
        future: Future[Evaluation] = Future()
        try:
            compiled = [
                self._compiler.submit(kernel, self._signature, self._arch)
                for kernel in (job.kernel, *job.rivals)
            ]
        except (ValueError, RuntimeError) as error:
            future.set_exception(JobFailed(str(error)))
            return future
        _when_all_done(compiled, lambda: self._enter(job, compiled, future))
        return future

    def _enter(
        self, job: Job, compiled: list[Future[CompileReport]], future: Future[Evaluation]
    ) -> None:
        try:
            report, *rivals = [one.result() for one in compiled]
        except Exception as error:  # noqa: BLE001  # any: the engine must hear of it
            fail(future, f"compiling failed: {type(error).__name__}: {error}")
            return
        if report.status is Status.OK:
            self._queue.put(Ticket(Order(job, report, tuple(rivals)), future))
        else:
            resolve(future, self._not_compiled(report))

    def _not_compiled(self, report: CompileReport) -> Evaluation:
        """What does not compile needs no judge."""
        return Evaluation(
            report.status,
            report.reason,
            device=self.hardware,
            seconds=Seconds(compile=report.seconds),
            resources=report.resources,
            log=report.log,
        )

    def close(self) -> None:
        """Kill the judges and what is compiling; jobs that are not done fail."""
        for bench in self._benches:
            bench.stop()
        for bench in self._benches:
            bench.join()
        self._compiler.close()
        for ticket in self._queue.drain():
            fail(ticket.future, "the run ended before it was judged")


def _when_all_done(futures: list[Future[CompileReport]], call: Callable[[], None]) -> None:
    """Call once when the last of ``futures`` is done."""
    lock, left = threading.Lock(), len(futures)

    def one_done(_: Future[CompileReport]) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            call()

    for future in futures:
        future.add_done_callback(one_done)
