"""The judge: owns inputs, truth, clock and verdict for one task on one device."""

from __future__ import annotations

import contextlib
import random
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from cuda_sandbox.compiler import Compiler
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CandidateFailure, CompileReport, Status
from cuda_sandbox.sandbox import Worker
from cuda_sandbox.slot import timing_slot
from fitness.arena import Arena
from fitness.baselines import Baselines, strongest
from fitness.contents import Bank
from fitness.correctness import Examination
from fitness.evaluation import Baseline, Demand, Evaluation, Interval, Precision, Seconds
from fitness.hardware import architecture, ceilings, device_name
from fitness.roofline import Roofline, impossible, roofline
from fitness.stopwatch import steady_heap
from fitness.task import load
from fitness.timing import Effort, interval
from fitness.trial import Trial


@dataclass(slots=True)
class Findings:
    """What is known of a candidate so far; a failure may come after each step."""

    precision: Precision | None = None
    time_ms: Interval | None = None


class Judge:
    """Judges kernels for one task on one device, one at a time.

    ``device`` is ``cpu``, ``cuda`` or ``cuda:N``; ``threads`` are the CPU threads that both
    PyTorch and the kernels get (all that this process may use, if None). ``secret`` seeds the
    inputs; nobody but the judge should know it (drawn anew if None).

    Raises TaskError where the task cannot be used.
    """

    def __init__(
        self,
        task_path: Path,
        demand: Demand,
        device: str = "cpu",
        *,
        compiler: Compiler,
        threads: int | None = None,
        secret: int | None = None,
    ) -> None:
        steady_heap()
        self.device = torch.device(device, 0) if device == "cuda" else torch.device(device)
        self.demand = demand
        self.threads = threads or torch.get_num_threads()
        torch.set_num_threads(self.threads)
        self.compiler = compiler
        self.task = load(task_path, str(self.device))
        self.signature = self.task.description.signature
        self.arch = architecture(self.device)
        self.bank = Bank(self.task, secrets.randbits(63) if secret is None else secret)
        self.rng = random.Random(secrets.randbits(63) if secret is None else secret)
        self.arena = Arena(self.signature, self.device)
        self.baselines = Baselines(self.task, self.bank.default_tier, self.threads)
        self.ceilings = ceilings(self.device, self.threads)

    @property
    def name(self) -> str:
        """The device's name, as it stands in records."""
        return device_name(self.device, self.threads)

    def evaluate(self, kernel: Kernel, compiled: CompileReport) -> Evaluation:
        """The verdict on ``kernel``, whose compilation ended as ``compiled`` says."""
        started = time.perf_counter()
        findings = Findings()
        status, reason = compiled.status, compiled.reason
        if compiled.object_key is not None:
            try:
                with self.trial(kernel, compiled) as trial:
                    findings.precision = self.examine(trial, self.bank)
                    findings.time_ms = self._time(trial, Effort())
            except CandidateFailure as failure:
                status, reason = failure.status, failure.reason
        return self._evaluation(status, reason, findings, compiled, started)

    @contextlib.contextmanager
    def trial(self, kernel: Kernel, compiled: CompileReport) -> Iterator[Trial]:
        """A worker for ``kernel``, bound to our buffers. Raises CandidateFailure."""
        assert compiled.object_key is not None
        with Worker(
            kernel.language,
            self.compiler.object_path(compiled.object_key),
            self.arena.buffers,
            device=self.device.index or 0,
            threads=self.threads,
        ) as worker:
            yield Trial(worker, self.arena, self.rng)

    def examine(self, trial: Trial, bank: Bank) -> Precision:
        """The precision over all of the bank's distributions, in secret order.

        Raises CandidateFailure(INCORRECT) as soon as the demand cannot be met any more.
        """
        examination = Examination(self.demand)
        for content in self.rng.sample(bank.checks, len(bank.checks)):
            examination.add(content.name, trial.outputs(content), content.truth)
        return examination.conclude()

    def _time(self, trial: Trial, effort: Effort) -> Interval:
        with timing_slot(str(self.device)):
            found = interval(trial.sample(self.bank.timed, effort))
        cheat = impossible(self.signature, found.median, self.ceilings)
        if cheat:
            raise CandidateFailure(Status.HACK, cheat)
        return found

    def _evaluation(
        self,
        status: Status,
        reason: str,
        findings: Findings,
        compiled: CompileReport,
        started: float,
    ) -> Evaluation:
        accepted = status is Status.OK
        baselines = self._baselines_for_verdict() if accepted else {}
        line = self._roofline(findings.precision) if accepted else None
        time_ms = findings.time_ms if accepted else None
        return Evaluation(
            status=status,
            reason=reason,
            precision=findings.precision,
            time_ms=time_ms,
            baselines=baselines,
            speedup=speedups(baselines, time_ms, findings.precision),
            roofline_share=line.share(time_ms.median) if line and time_ms else None,
            roofline_ceiling=line.ceiling if line else None,
            device=self.name,
            seconds=Seconds(compiled.seconds, time.perf_counter() - started),
            resources=compiled.resources,
        )

    def _baselines_for_verdict(self) -> dict[str, Baseline]:
        """Eager and graph, what is known already, and what the demand's baseline needs."""
        wanted = ["eager", "eager_no_tf32", "graph", *self.baselines.known()]
        if self.demand.baseline != "eager":
            wanted.append("compile")
        return self.baselines.get(*wanted)

    def _roofline(self, precision: Precision | None) -> Roofline:
        tier = precision.tier if precision and precision.tier else self.task.own_tier
        return roofline(self.signature, self.task.description.flops, tier, self.ceilings)

    def close(self) -> None:
        """Free the device's memory."""
        self.arena.close()


def speedups(
    baselines: dict[str, Baseline], time_ms: Interval | None, precision: Precision | None
) -> dict[str, float]:
    """Baseline time / kernel time for eager, graph, compile and the best of the same precision."""
    if time_ms is None:
        return {}
    fastest = strongest(baselines, precision.tier if precision else None)
    chosen = {
        **{mode: baselines[mode] for mode in ("eager", "graph", "compile") if mode in baselines},
        **({"best": fastest} if fastest else {}),
    }
    return {name: found.time_ms.median / time_ms.median for name, found in chosen.items()}
