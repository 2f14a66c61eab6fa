"""What a kernel did whose outputs are wrong: only wrong, or unstable, stateful, late?

Costs a few more calls, and only of kernels that are rejected anyway.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cuda_sandbox.report import CandidateFailure, Status
from fitness.contents import Content
from fitness.correctness import verdict
from fitness.evaluation import Demand
from fitness.trial import Trial

_SAMPLED = 997
_PATIENCE_S = 2.0
_SHARE = 0.25
"""Runs that differ by this share of the error were wrong by chance."""

Outputs = tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A content on which the outputs were right, and a sample of those."""

    content: Content
    sample: Outputs

    @classmethod
    def of(cls, content: Content, outputs: Outputs) -> Accepted:
        """From the whole outputs, of which little is kept."""
        return cls(content, _sample(outputs))


@dataclass(frozen=True, slots=True)
class Case:
    """What is known when outputs were found to be wrong: ``outputs`` on ``content``."""

    trial: Trial
    demand: Demand
    accepted: Sequence[Accepted]
    content: Content
    outputs: Outputs


def diagnosed(case: Case, failure: CandidateFailure) -> CandidateFailure:
    """A HACK that names what the kernel did, or ``failure`` where it is only wrong."""
    until = time.monotonic() + _PATIENCE_S
    for look in (_kept, _late, _unstable, _stale):
        with contextlib.suppress(CandidateFailure):  # it may fail in any way now
            if reason := look(case):
                return CandidateFailure(Status.HACK, reason)
        if time.monotonic() > until:
            break
    return failure


def _kept(case: Case) -> str:
    """The result of an earlier call, which was right there."""
    now = _sample(case.outputs)
    if all(_is_constant(output) for output in now):
        return ""  # says nothing: zeros may be right somewhere
    for earlier in case.accepted:
        if all(map(_same, now, earlier.sample)):
            return "state: gave the result of an earlier call again, on other arguments"
    return ""


def _late(case: Case) -> str:
    found = case.trial.late(case.outputs)
    return found.reason if found else ""


def _unstable(case: Case) -> str:
    """Another result on the same arguments."""
    again = case.trial.outputs(case.content.leaves)
    truths = case.content.truth.outputs
    for truth, first, second in zip(truths, case.outputs, again, strict=True):
        spread = _distance(first, second)
        wrong = _distance(first, truth.values) if truth.values.shape == first.shape else math.inf
        if spread > 0 and (truth.size is None or spread > _SHARE * min(wrong, _largest(first))):
            return (
                "unstable: two calls on the same arguments gave different results, "
                f"off by {spread:.3g}"
            )
    return ""


def _stale(case: Case) -> str:
    """A right result where nothing was called before."""
    if not case.accepted or case.trial.anew is None:
        return ""  # nothing had been called before
    with case.trial.anew() as other:
        outputs = other.outputs(case.content.leaves)
    status, _, _ = verdict(case.demand, case.content.compare(outputs))
    if status is not Status.OK:
        return ""
    return "state: wrong after calls on other arguments, right on the same ones in a fresh process"


def _sample(outputs: Sequence[Tensor]) -> Outputs:
    return tuple(
        output.reshape(-1)[:: max(1, output.numel() // _SAMPLED)].clone() for output in outputs
    )


def _same(left: Tensor, right: Tensor) -> bool:
    return torch.equal(left.view(torch.uint8), right.view(torch.uint8))


def _is_constant(tensor: Tensor) -> bool:
    return tensor.numel() < 2 or bool((tensor == tensor[0]).all())


def _distance(left: Tensor, right: Tensor) -> float:
    """The largest difference; infinite where only one of two is a number."""
    gap = (left.double() - right.double()).abs()
    alike = (left == right) | (torch.isnan(left.double()) & torch.isnan(right.double()))
    gap = torch.where(alike, 0.0, gap).nan_to_num_(nan=math.inf)
    return float(gap.max()) if gap.numel() else 0.0


def _largest(tensor: Tensor) -> float:
    return float(tensor.double().abs().nan_to_num_(nan=0.0, posinf=0.0).max())
