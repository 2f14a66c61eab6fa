"""The judge: owns inputs, truth, clock and verdict for one task on one device."""

from __future__ import annotations

import contextlib
import functools
import random
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from cuda_sandbox.backend import Backend, find, names
from cuda_sandbox.compiler import Compiler
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CandidateFailure, CompileReport, Status
from cuda_sandbox.slot import timing_slot
from fitness import languages
from fitness.arena import Arena, sets_of
from fitness.baselines import Baselines, speedups
from fitness.contents import Bank
from fitness.correctness import Comparison, verdict
from fitness.diagnosis import Accepted, Case, diagnosed
from fitness.evaluation import (
    Baseline,
    Demand,
    Evaluation,
    Execution,
    Interval,
    Precision,
    Seconds,
    Tier,
)
from fitness.hardware import architecture, ceilings, ceilings_anew, device_name, slot
from fitness.module.berths import Berths, spare
from fitness.overhead import Overhead
from fitness.pulse import DeviceShared, Pulse
from fitness.roofline import Roofline, impossible, roofline
from fitness.stopwatch import steady_heap
from fitness.task import load
from fitness.timing import Effort, interval
from fitness.trial import Trial

_PATIENCE_S, _PATIENCE = 10.0, 100.0
"""A call may take this long, and so many times what PyTorch takes, before it counts as hanging."""

_TUNING_S = 30.0
"""So much longer a module's on a GPU: a first one tunes itself, loads libraries, is captured."""

_CALMER_S = (0.0, 3.0, 30.0)
"""How long others on the device are waited for before a kernel is judged once more."""


@dataclass(slots=True)
class Findings:
    """What is known of a candidate so far; a failure may come after each step."""

    precision: Precision | None = None
    execution: Execution | None = None
    time_ms: Interval | None = None


class UnfitOutputs(CandidateFailure):
    """Outputs that are not what was demanded, with their precision where it means something."""

    def __init__(self, status: Status, reason: str, precision: Precision | None) -> None:
        super().__init__(status, reason)
        self.precision = precision


@contextlib.contextmanager
def _closed_unless_done(arena: Arena) -> Iterator[None]:
    """Free the device's memory where a judge does not come to be."""
    try:
        yield
    except BaseException:
        arena.close()
        raise


class Judge:
    """Judges kernels for one task on one device, one at a time.

    ``device`` is ``cpu``, ``cuda`` or ``cuda:N``; ``threads`` are the CPU threads that both
    PyTorch and the kernels get (all that this process may use, if None). ``secret`` seeds the
    inputs; nobody but the judge should know it (drawn anew if None). ``berths`` are those of its
    modules, where several judges share them.

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
        berths: Berths | None = None,
    ) -> None:
        steady_heap()
        self.device = torch.device(device, 0) if device == "cuda" else torch.device(device)
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        self.demand = demand
        self.threads = threads or torch.get_num_threads()
        torch.set_num_threads(self.threads)
        self.compiler = compiler
        self.berths = berths or Berths(min(1, spare(self.device.type)))
        self._lent_berths = berths is not None
        self.task = load(task_path, str(self.device))
        self.signature = self.task.description.signature
        self.arch = architecture(self.device)
        on_gpu = self.device.type == "cuda"
        self.overhead = Overhead(self) if on_gpu else None
        self.pulse = Pulse(self.device) if on_gpu else None
        secret = secrets.randbits(63) if secret is None else secret
        self.rng = random.Random(secret)
        self.bank = Bank(self.task, demand, secret)
        self.arena = self.new_arena()
        with _closed_unless_done(self.arena):
            with timing_slot(slot(self.device)):
                self.ceilings = ceilings(self.device, self.threads)
            tier = self.bank.default_tier
            self.baselines = Baselines(self.task, tier, self.threads, self.ceilings)
            eager = self.baselines.eager().time_ms.median
        self.deadline_s = _PATIENCE_S + _PATIENCE * eager / 1e3
        self.tuning_s = _TUNING_S

    @property
    def name(self) -> str:
        """The device's name, as it stands in records."""
        return device_name(self.device, self.threads)

    def compile(self, kernel: Kernel) -> CompileReport:
        """Make a kernel of any language ready for `evaluate`.

        Raises:
            ValueError: there is no such language, or it does not know this device's chip.
            RuntimeError: this machine lacks what compiling needs.
        """
        return languages.find(kernel.language).compile(kernel, self)

    def digest(self, kernel: Kernel) -> str:
        """Hex SHA-256 of what makes a kernel of any language what it is."""
        return languages.find(kernel.language).digest(kernel, self.signature)

    def evaluate(self, kernel: Kernel, compiled: CompileReport) -> Evaluation:
        """The verdict on ``kernel``, whose compilation ended as ``compiled`` says.

        Where something else keeps the device busy it is not looked whether the kernel does, and
        the verdict waits for a calmer moment if it needs one. Raises DeviceShared if none comes.
        """
        usual = self.pulse
        try:
            for rest_s in _CALMER_S:
                try:
                    return self._evaluate(kernel, compiled)
                except DeviceShared:
                    self.pulse = None
                    time.sleep(rest_s)
            return self._evaluate(kernel, compiled)
        finally:
            self.pulse = usual

    def _evaluate(self, kernel: Kernel, compiled: CompileReport) -> Evaluation:
        started = time.perf_counter()
        findings = Findings()
        status, reason = Status.OK, ""
        try:
            with self.trial(kernel, compiled, self.arena) as trial:
                findings.precision = self.examine(trial, self.bank)
                findings.execution = trial.asked(languages.find(kernel.language).execution)
                self._require_own(findings.execution)
                findings.time_ms = self._time(trial, Effort())
        except CandidateFailure as failure:
            status, reason = failure.status, failure.reason
            if isinstance(failure, UnfitOutputs):
                findings.precision = failure.precision
        return self._evaluation(status, reason, findings, compiled, started)

    @property
    def backend(self) -> Backend:
        """The one backend whose kernels run on this judge's device."""
        return next(found for found in map(find, names()) if found.device == self.device.type)

    def new_arena(self) -> Arena:
        """Buffers for one worker at a time."""
        sets = (
            self.backend.buffers(self.signature.tensors, self.device.index or 0)
            for _ in range(sets_of(self.signature, self.device))
        )
        return Arena(self.signature, self.device, *sets)

    @contextlib.contextmanager
    def trial(self, kernel: Kernel, compiled: CompileReport, arena: Arena) -> Iterator[Trial]:
        """A worker for ``kernel``, bound to ``arena``. Raises CandidateFailure."""
        language = languages.find(kernel.language)
        if self.device.type not in language.devices:
            raise CandidateFailure(
                Status.REJECTED, f"a {kernel.language} kernel cannot run on {self.device}"
            )
        if compiled.object_key is None:
            raise CandidateFailure(compiled.status, compiled.reason)
        arena = arena if language.in_rows else arena.alone()
        for buffers in arena.sets:
            buffers.damaged()  # what an earlier candidate broke is not this one's doing
        with language.worker(compiled, self, arena) as worker:
            worker.bind(*arena.sets[1:])
            arena.take_workspace()
            again = functools.partial(self.trial, kernel, compiled, arena)
            yield Trial(
                worker,
                arena,
                self.rng,
                self.threads,
                pulse=self.pulse,
                anew=again,
                overhead=self.overhead,
                in_rows=language.in_rows,
                idle_ms=language.idle_ms,
            )

    def _require_own(self, ran: Execution | None) -> None:
        """Raises CandidateFailure(REJECTED) where others compute and that is not wanted."""
        if objection := self.demand.objection(ran):
            raise CandidateFailure(Status.REJECTED, objection)

    def examine(self, trial: Trial, bank: Bank) -> Precision:
        """The precision over all of the bank's distributions, in secret order.

        Raises CandidateFailure at the first content whose outputs cannot be accepted: INCORRECT,
        or HACK where they are unstable or depend on earlier calls.
        """
        found: list[Comparison] = []
        accepted: list[Accepted] = []
        for content in self.rng.sample(bank.checks, len(bank.checks)):
            outputs = trial.outputs(content.leaves)
            found += content.compare(outputs)
            status, reason, precision = verdict(self.demand, found)
            if status is not Status.OK or precision is None:
                case = Case(trial, self.demand, accepted, content, outputs)
                raise diagnosed(case, UnfitOutputs(status, reason, precision))
            accepted.append(Accepted.of(content, outputs))
        assert precision is not None
        return precision

    def _time(self, trial: Trial, effort: Effort) -> Interval:
        with timing_slot(slot(self.device)):
            found = interval(trial.sample(self.bank.timed, effort))
            if impossible(self.task.description, found.median, self.ceilings):
                # the machine may have been busy when they were measured
                self.ceilings = ceilings_anew(self.device, self.threads)
        if cheat := impossible(self.task.description, found.median, self.ceilings):
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
        baselines = self._baselines_for_verdict(findings.precision) if accepted else {}
        line = self.roofline(findings.precision) if accepted else None
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
            log=compiled.log,
            execution=findings.execution,
        )

    def _baselines_for_verdict(self, precision: Precision | None) -> dict[str, Baseline]:
        """Eager and graph, what is known already, and what precision and demand ask for beside."""
        wanted = ["eager", "eager_no_tf32", "graph", *self.baselines.known()]
        wanted += self.baselines.same_precision(precision.tier if precision else None)
        wanted += {"eager": (), "compile": ("compile",)}.get(
            self.demand.baseline, self.baselines.modes
        )
        return self.baselines.get(*wanted)

    def roofline(self, precision: Precision | None) -> Roofline:
        """The ceiling for kernels of this precision, of fp32 where it is not known."""
        tier = precision.tier if precision and precision.tier else Tier.FP32
        return roofline(self.task.description, tier, self.ceilings)

    def close(self) -> None:
        """Free the device's memory, and end processes that wait for a module."""
        self.arena.close()
        if not self._lent_berths:
            self.berths.close()
