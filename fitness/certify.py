"""Certification: what a winner must stand before anybody is told about it."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import platform
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from cuda_sandbox.backend import find
from cuda_sandbox.backend import names as backends
from cuda_sandbox.devices import cpu
from cuda_sandbox.isolation import isolation_layers
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CandidateFailure, CompileReport, Status
from cuda_sandbox.sanitizer import sanitize
from fitness import languages
from fitness.baselines import precision_flags, speedups
from fitness.certificate import SCHEMA, Terms
from fitness.contents import Bank, Content
from fitness.evaluation import Baseline, Evaluation, Interval, Precision
from fitness.profile import argument_bytes, profiled
from fitness.sitting import Sitting, quietest, seated

if TYPE_CHECKING:
    from fitness.judge import Judge
    from fitness.trial import Trial

Compiled = tuple[Kernel, CompileReport]


def certify(
    judge: Judge,
    candidate: Compiled,
    rivals: Mapping[str, Compiled],
    terms: Terms = Terms(),  # noqa: B008  # frozen
) -> Evaluation:
    """The full verdict on ``candidate``: an evaluation that carries a certificate.

    On top of an ordinary verdict: inputs of a fresh secret, bitwise repeatability, sanitizers, and
    timing against ``rivals`` (by name) and PyTorch in all its modes, interleaved in one sitting,
    from which the evaluation's figures are then taken. The first check that fails makes the
    evaluation a failure, and the certificate says which; one that could not run says
    ``not run: why``, which is no pass.
    """
    first = judge.evaluate(*candidate)
    work = _Certification(judge, candidate, rivals, terms)
    work.check("verdict", lambda: _accepted(first))
    if first.correct:
        judge.baselines.get(*judge.baselines.modes)
    work.run()
    found = work.into(first)
    if found.correct:
        found = replace(found, bottleneck=profiled(judge, candidate[0], found))
    return replace(found, certificate=work.document(found))


def _accepted(first: Evaluation) -> str:
    if not first.correct:
        raise CandidateFailure(first.status, first.reason)
    return "passed"


class _Certification:
    """Runs the checks one after the other; after one that failed the rest is not run."""

    def __init__(
        self, judge: Judge, candidate: Compiled, rivals: Mapping[str, Compiled], terms: Terms
    ) -> None:
        self.judge = judge
        self.kernel, self.compiled = candidate
        self.rivals = rivals
        self.terms = terms
        self.bank = Bank(judge.task, judge.demand, secrets.randbits(63))
        self.checks: dict[str, str] = {}
        self.failure: CandidateFailure | None = None
        self.blamed = ""
        self.precision: Precision | None = None
        self.sitting: Sitting | None = None

    def check(self, name: str, run: Callable[[], str]) -> None:
        """Enter what ``run`` says, or how it failed."""
        if self.failure is not None:
            self.checks[name] = f"not run: {self.blamed} failed"
            return
        try:
            self.checks[name] = run()
        except CandidateFailure as failure:
            self.checks[name] = f"failed: {failure.reason}"
            self.failure, self.blamed = failure, name

    def run(self) -> None:
        """All checks beyond the ordinary verdict."""
        with contextlib.ExitStack() as stack:
            trial = self._trial(stack)
            self.check("hidden inputs", lambda: self._hidden(trial()))
            self.check("repeatability", lambda: self._repeat(trial()))
            self.check("timing", lambda: self._sit(trial()))
        self._sanitize()

    def _trial(self, stack: contextlib.ExitStack) -> Callable[[], Trial]:
        """The one worker of all checks, started by the first: it may fail at that already."""
        started: list[Trial] = []

        def trial() -> Trial:
            if not started:
                judge = self.judge
                opened = judge.trial(self.kernel, self.compiled, judge.arena)
                started.append(stack.enter_context(opened))
            return started[0]

        return trial

    def _hidden(self, trial: Trial) -> str:
        self.precision = self.judge.examine(trial, self.bank)
        return f"passed on {len(self.bank.checks)} distributions"

    def _repeat(self, trial: Trial) -> str:
        content = self.bank.checks[0]
        return repeatability([trial.outputs(content.leaves) for _ in range(3)])

    def _sit(self, trial: Trial) -> str:
        with seated(self.judge, trial, self.bank, self.rivals) as sit:
            self.sitting = quietest(sit, self.judge.baselines.known())
        return f"passed: {self.sitting.summary}"

    def _sanitize(self) -> None:
        """Each sanitizer's word; all are told, and the first that found something decides."""
        judge = self.judge
        if self.kernel.language not in backends():
            self.checks["sanitizers"] = f"not run: a {self.kernel.language} is out of their reach"
            return
        runs = find(self.kernel.language).checks(judge.arch, self.kernel.flags).runs
        names = [name for run in runs for name in run.names]
        if self.failure is not None:
            self.checks |= dict.fromkeys(names, f"not run: {self.blamed} failed")
            return
        found = sanitize(
            self.kernel,
            judge.signature,
            judge.arch,
            argument_bytes(judge, self._telling().leaves),
            deadline_s=self.terms.sanitizer_s,
        )
        self.checks |= found
        wrong = [(name, said) for name, said in found.items() if said.startswith("failed")]
        if wrong:
            self.blamed, said = wrong[0]
            self.failure = CandidateFailure(Status.INCORRECT, f"{self.blamed} {said}")

    def _telling(self) -> Content:
        """What a sanitizer runs on: mostly usual numbers, with some that take rare paths."""
        return next(
            (one for one in self.bank.checks if one.name == "outliers"), self.bank.checks[0]
        )

    def into(self, first: Evaluation) -> Evaluation:
        """The first verdict with what was found since in its place."""
        if not first.correct:
            return first
        if self.failure is not None:
            reason = f"certification: {self.failure.reason}"
            return replace(first, status=self.failure.status, reason=reason)
        assert self.sitting is not None
        times, known = self.sitting.time_ms, self.judge.baselines.known()
        found = {
            mode: replace(base, time_ms=times.get(mode, base.time_ms))
            for mode, base in known.items()
        }
        self.judge.baselines.keep_faster(found)
        return replace(
            first,
            time_ms=times["kernel"],
            roofline_share=self.judge.roofline(first.precision).share(times["kernel"].median),
            baselines=found,
            speedup=speedups(found, times["kernel"], first.precision),
        )

    def document(self, found: Evaluation) -> dict[str, Any]:
        """The certificate."""
        judge, kernel = self.judge, self.kernel
        task = judge.task.description
        return {
            "schema": SCHEMA,
            "verdict": "certified" if found.correct else "not certified",
            "status": str(found.status),
            "reason": found.reason,
            "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "made_by": self.terms.made_by,
            "command": self.terms.command or command(judge, kernel),
            "task": {"name": task.name, "digest": _digest(task.source)},
            "kernel": {
                "language": kernel.language,
                "flags": list(kernel.flags),
                "digest": _digest(kernel.source),
            },
            "source_digest": judge.digest(kernel),
            "demand": dataclasses.asdict(judge.demand),
            "checks": self.checks,
            "precision": None if self.precision is None else dataclasses.asdict(self.precision),
            "distributions": [content.name for content in self.bank.checks],
            "left_out": list(self.bank.left_out),
            "figures": self.sitting.figures() if self.sitting else {},
            "baselines": _baselines(found.baselines, judge.baselines.failed, self.sitting),
            "clocks": self.sitting.clocks if self.sitting else {"summary": "not run: not timed"},
            "resources": [dataclasses.asdict(each) for each in found.resources],
            "bottleneck": found.bottleneck.lines() if found.bottleneck else [],
            "environment": environment(judge),
        }


def repeatability(runs: Sequence[tuple[torch.Tensor, ...]]) -> str:
    """Whether calls on the same inputs agree to the bit; if not, by how much they differ."""
    spread = max(
        _difference(first, again)
        for other in runs[1:]
        for first, again in zip(runs[0], other, strict=True)
    )
    if spread == 0:
        return f"passed: {len(runs)} runs equal to the bit"
    return f"passed: declared not deterministic, spread {spread:.3g}"


def command(judge: Judge, kernel: Kernel) -> str:
    """The call that repeats a certification of this kernel, with the files' names alone."""
    demand = judge.demand
    asked = f"--tier {demand.tier}" if demand.tier else f"--tolerance {demand.tolerance:g}"
    task = judge.task.reference.file.path.name
    flags = [f"--flag={flag}" for flag in kernel.flags]
    file = f"KERNEL{languages.find(kernel.language).suffix}"
    own = ["--own-kernels"] if demand.own_kernels else []
    device = f"--device {judge.device.type}"
    return " ".join(["kernelevo certify", task, file, device, asked, *flags, *own])


def environment(judge: Judge) -> dict[str, Any]:
    """Device, versions, compiler, precision flags and isolation, for the certificate."""
    return {
        "device": judge.name,
        "arch": judge.arch,
        "threads": judge.threads,
        "cpu": cpu().name,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "compiler": judge.backend.identity(judge.arch),
        "precision_flags": precision_flags(),
        "isolation": dataclasses.asdict(isolation_layers()),
    }


def _baselines(
    found: Mapping[str, Baseline], failed: Mapping[str, str], sitting: Sitting | None
) -> dict[str, Any]:
    """Each mode's tier and time, and whether it is of this sitting; or why there is none."""
    timed = sitting.time_ms if sitting else {}
    told: dict[str, Any] = {
        mode: {
            "time_ms": _plain(base.time_ms),
            "tier": base.tier,
            "in_this_sitting": mode in timed,
        }
        for mode, base in found.items()
    }
    return told | {mode: f"not run: {why}" for mode, why in failed.items()}


def _plain(found: Interval) -> dict[str, float]:
    return dataclasses.asdict(found)


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _difference(first: torch.Tensor, again: torch.Tensor) -> float:
    if torch.equal(first, again):
        return 0.0
    return float((first.double() - again.double()).abs().max())
