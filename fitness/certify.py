"""Certification: what a winner must stand before anybody is told about it."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from cuda_sandbox.isolation import isolation_layers
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CandidateFailure, CompileReport, Status
from cuda_sandbox.sanitizer import sanitize
from cuda_sandbox.slot import timing_slot
from fitness.baselines import Baselines, speedups
from fitness.contents import Bank, Content
from fitness.evaluation import Evaluation, Interval
from fitness.hardware import slot, throttling
from fitness.timing import Effort, interleave, interval, ratio
from fitness.trial import Trial

if TYPE_CHECKING:
    from fitness.judge import Judge

_EFFORT = Effort(least=31, most=200, seconds=6.0, width=0.005)

_SANITIZER_S = 120.0
"""What each sanitizer may take: racecheck slows a large kernel down a thousandfold."""

Compiled = tuple[Kernel, CompileReport]


def certify(judge: Judge, candidate: Compiled, rivals: Mapping[str, Compiled]) -> Evaluation:
    """The full verdict on ``candidate``: an evaluation that carries a certificate.

    On top of an ordinary verdict: inputs of a fresh secret, sanitizers, bitwise repeatability, and
    timing against ``rivals`` (by name) and PyTorch, interleaved in one sitting, from which the
    evaluation's figures are then taken. A check that failed makes the evaluation a failure; one
    that could not run says ``not run: why``.
    """
    judge.baselines.get(*judge.baselines.modes)
    first = judge.evaluate(*candidate)
    if not first.correct:
        return first
    try:
        certificate = _Certification(judge, candidate, rivals).run()
    except CandidateFailure as failure:
        return dataclasses.replace(
            first, status=failure.status, reason=f"certification: {failure.reason}"
        )
    return _with_figures(first, certificate, judge.baselines)


class _Certification:
    """Runs the checks one after the other; raises CandidateFailure at the first that fails."""

    def __init__(self, judge: Judge, candidate: Compiled, rivals: Mapping[str, Compiled]) -> None:
        self.judge = judge
        self.kernel, self.compiled = candidate
        self.rivals = rivals
        self.bank = Bank(judge.task, judge.demand, secrets.randbits(63))

    def run(self) -> dict[str, Any]:
        """The certificate."""
        checks: dict[str, str] = {}
        with self.judge.trial(self.kernel, self.compiled, self.judge.arena) as trial:
            precision = self.judge.examine(trial, self.bank)
            checks["hidden inputs"] = f"passed on {len(self.bank.checks)} distributions"
            checks["repeatability"] = self._repeat(trial)
            figures = self._sitting(trial)
        checks.update(self._sanitize())
        return {
            "task": self.judge.task.description.name,
            "source_digest": self.kernel.digest(self.judge.signature.header(self.kernel.language)),
            "checks": checks,
            "precision": dataclasses.asdict(precision),
            "distributions": [content.name for content in self.bank.checks],
            "figures": figures,
            "environment": environment(self.judge),
        }

    def _repeat(self, trial: Trial) -> str:
        """Whether calls on the same inputs agree to the bit; if not, by how much they differ."""
        content = self.bank.checks[0]
        runs = [trial.outputs(content.leaves) for _ in range(3)]
        spread = max(
            _difference(first, again)
            for other in runs[1:]
            for first, again in zip(runs[0], other, strict=True)
        )
        return "bitwise equal" if spread == 0 else f"not deterministic: spread {spread:.3g}"

    def _sitting(self, trial: Trial) -> dict[str, Any]:
        """Times and ratios of the kernel, its rivals and PyTorch, taken in turns."""
        with contextlib.ExitStack() as stack:
            calls = {"kernel": self._timed(trial)}
            for name, rival in self.rivals.items():
                arena = self.judge.new_arena()
                stack.callback(arena.close)
                with contextlib.suppress(CandidateFailure):
                    calls[name] = self._timed(stack.enter_context(self.judge.trial(*rival, arena)))
            for mode in self.judge.baselines.known():
                # torch.compile may fail where its figure is known from elsewhere: one ratio less
                with contextlib.suppress(Exception):
                    calls[mode] = stack.enter_context(self.judge.baselines.ready(mode))
            # An A/A control: the same kernel twice tells what a ratio of 1 looks like here.
            calls["kernel again"] = calls["kernel"]
            stack.enter_context(timing_slot(slot(self.judge.device)))
            before = throttling(self.judge.device)
            times = interleave(calls, _EFFORT, self.judge.rng)
            missing = trial.compare_clocks(self.bank.timed)
        for name in ("kernel", "kernel again"):
            times[name] = [told + missing for told in times[name]]
        return {
            "time_ms": {name: _plain(interval(taken)) for name, taken in times.items()},
            "speedup": {
                name: _plain(ratio(taken, times["kernel"]))
                for name, taken in times.items()
                if name != "kernel"
            },
            "rounds": len(times["kernel"]),
            "clocks before": before,
            "clocks after": throttling(self.judge.device),
        }

    def _timed(self, trial: Trial) -> Callable[[], float]:
        contents = self.bank.timed
        for _ in range(3):
            trial.timed(contents)
        return lambda: trial.timed(contents)

    def _sanitize(self) -> dict[str, str]:
        content = self.bank.checks[0]
        found = sanitize(
            self.kernel,
            self.judge.signature,
            self.judge.arch,
            _bytes(content, self.judge),
            deadline_s=_SANITIZER_S,
        )
        for check, verdict in found.items():
            if verdict.startswith("failed"):
                raise CandidateFailure(Status.INCORRECT, f"{check} {verdict}")
        return found


def environment(judge: Judge) -> dict[str, Any]:
    """Device, versions, precision flags and isolation, for the certificate."""
    return {
        "device": judge.name,
        "arch": judge.arch,
        "threads": judge.threads,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "allow_tf32": {
            "matmul": torch.backends.cuda.matmul.allow_tf32,
            "cudnn": torch.backends.cudnn.allow_tf32,
        },
        "isolation": dataclasses.asdict(isolation_layers()),
    }


def _with_figures(
    first: Evaluation, certificate: dict[str, Any], baselines: Baselines
) -> Evaluation:
    """The evaluation with the sitting's figures in place of those taken one after the other."""
    times = {name: Interval(**value) for name, value in certificate["figures"]["time_ms"].items()}
    found = {
        mode: dataclasses.replace(known, time_ms=times[mode])
        for mode, known in first.baselines.items()
        if mode in times
    }
    baselines.keep_faster(found)
    return dataclasses.replace(
        first,
        time_ms=times["kernel"],
        baselines=found,
        speedup=speedups(found, times["kernel"], first.precision),
        certificate=certificate,
    )


def _plain(found: Interval) -> dict[str, float]:
    return dataclasses.asdict(found)


def _difference(first: torch.Tensor, again: torch.Tensor) -> float:
    if torch.equal(first, again):
        return 0.0
    return float((first.double() - again.double()).abs().max())


def _bytes(content: Content, judge: Judge) -> dict[str, bytes]:
    return {
        spec.name: content.leaves[spec.name]
        .cpu()
        .contiguous()
        .view(-1)
        .view(torch.uint8)
        .numpy()
        .tobytes()
        for spec in judge.signature.arguments
    }
