"""Whether outputs are right: compared with the truth, told apart by tier, put into words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cuda_sandbox.report import Status
from fitness.evaluation import Demand, Precision, Tier
from fitness.measure import Errors, errors_of, largest_share, unravel, worst_element
from fitness.truth import OutputTruth, Truth


@dataclass(frozen=True, slots=True)
class Comparison:
    """One output on one content.

    ``error`` is ``max|y-t|/rms(t)``, ``error_l2`` is ``||y-t||/||t||``, the reference's likewise.
    ``tier`` is the strictest whose bounds hold, None if none does. ``fault`` says what no tier
    and no tolerance excuses (NaN, an overflow, a wrong integer). ``worst`` names the worst element
    where ``tier`` is not fp32. ``allowed`` is fp32's bound on ``error``. ``share`` is the largest
    ``|y-t| / max(rms(t), |t|)``: what a tolerance is held against, so that it means on heavy tails
    what ``allclose`` means by it, and still nothing passes that is zero. ``brain``: whether it is
    within what bfloat16 would cost, three bits more than ``half``.
    """

    content: str
    output: str
    tier: Tier | None
    error: float
    error_l2: float
    reference_error: float
    reference_error_l2: float
    allowed: float = 0.0
    informative: bool = True
    fault: str = ""
    worst: str = ""
    share: float = 0.0
    brain: bool = False

    def satisfies(self, demand: Demand) -> bool:
        """Whether this output is acceptable on this content."""
        if self.fault:
            return False
        if demand.tier is not None:
            return self.tier is not None and self.tier.satisfies(demand.tier)
        assert demand.tolerance is not None
        return self.share <= demand.tolerance or self.tier is Tier.FP32


def compare(outputs: Sequence[Tensor], truth: Truth) -> list[Comparison]:
    """A kernel's outputs (as the signature has them) beside the truth, output by output."""
    pairs = zip(outputs, truth.outputs, strict=True)
    return [compare_one(output, true, truth.content) for output, true in pairs]


def verdict(
    demand: Demand, comparisons: Sequence[Comparison]
) -> tuple[Status, str, Precision | None]:
    """OK or INCORRECT with its reason, and the precision that was measured.

    The precision's tier is the strictest that holds on every content; it is None for a faulty
    kernel, whose precision means nothing.
    """
    faulty = next((found for found in comparisons if found.fault), None)
    if faulty:
        return Status.INCORRECT, f"{faulty.fault} on {faulty.content}", None
    precision = _precision(comparisons)
    failed = [found for found in comparisons if not found.satisfies(demand)]
    if failed:
        return Status.INCORRECT, _complaint(demand, failed, precision), precision
    return Status.OK, "", precision


def _complaint(demand: Demand, failed: list[Comparison], precision: Precision) -> str:
    """The reason, with the worst element of the content that fails by most."""
    worst = max(failed, key=lambda found: found.error / max(found.allowed, 1e-300))
    element = f"{worst.worst} on {worst.content}"
    if demand.tolerance is not None:
        return f"error {worst.share:.3g} exceeds tolerance {demand.tolerance:g}: {element}"
    reached = f"it reaches {precision.tier}" if precision.tier else "it reaches no tier"
    if precision.tier is None and all(found.brain for found in failed if found.tier is None):
        reached += " (about as precise as bfloat16)"
    allowed = f", {demand.tier} allows {worst.allowed:.3g}" if demand.tier is Tier.FP32 else ""
    prefix = "tier" if precision.tier else "wrong"
    return (
        f"{prefix}: {demand.tier} is demanded, {reached}: "
        f"error {worst.error:.3g} of rms{allowed}: {element}"
    )


def _precision(comparisons: Sequence[Comparison]) -> Precision:
    tiers = [found.tier for found in comparisons]
    tier = None if None in tiers else max((t for t in tiers if t), key=list(Tier).index)
    telling = [found for found in comparisons if found.informative] or list(comparisons)
    worst = max(telling, key=lambda found: found.error)
    return Precision(
        tier=tier,
        error=worst.error,
        error_l2=max(found.error_l2 for found in telling),
        reference_error=max(found.reference_error for found in telling),
        reference_error_l2=max(found.reference_error_l2 for found in telling),
        worst_on=worst.content,
    )


def compare_one(output: Tensor, true: OutputTruth, content: str) -> Comparison:
    """One output beside its truth."""
    if true.size is None:
        return _compare_exactly(output, true, content)
    values = output
    if true.ranking is not None:
        picked = true.ranking.picked(output)
        if picked is None:
            fault = f"{true.name} holds indices out of range, or one of them twice"
            return _faulty(true, content, fault)
        values = picked
    found = errors_of(values, true.values, finite=true.size.finite)
    if not found.finite:
        return _faulty(true, content, _element(values, true))
    tier = next((tier for tier in Tier if found.within(true.bounds[tier])), None)
    precise = tier is Tier.FP32
    return Comparison(
        content,
        true.name,
        tier,
        *_relative(found, true),
        *_relative(true.reference, true),
        allowed=_relative(true.bounds[Tier.FP32], true)[0],
        informative=true.informative,
        worst="" if precise else _element(values, true),
        share=0.0 if precise else _share(values, true),
        brain=tier is None and found.within(_brain(true)),
    )


def _compare_exactly(output: Tensor, true: OutputTruth, content: str) -> Comparison:
    wrong = _differ(output, true.values)
    for other in true.others:
        wrong &= _differ(output, other)
    count = int(wrong.sum())
    if count == 0:
        return Comparison(content, true.name, Tier.FP32, 0.0, 0.0, 0.0, 0.0)
    index = unravel(int(wrong.reshape(-1).byte().argmax()), tuple(output.shape))
    said = _said(true.name, index, _raw(output)[index].item(), true.values[index].item())
    share = f"{count} of {output.numel()} elements are wrong"
    return _faulty(true, content, f"{said}; {share}")


def _raw(output: Tensor) -> Tensor:
    """Bools as the bytes they are: memory that holds anything but 0 and 1 is no bool."""
    return output.view(torch.uint8) if output.dtype is torch.bool else output


def _differ(output: Tensor, true: Tensor) -> Tensor:
    return _raw(output) != _raw(true)


def _faulty(true: OutputTruth, content: str, fault: str) -> Comparison:
    return Comparison(
        content, true.name, None, math.inf, math.inf, *_relative(true.reference, true), fault=fault
    )


_BRAIN = 2.0**-8
"""What bfloat16 rounds away of a value: it has 8 significant bits, where float16 has 11."""


def _brain(true: OutputTruth) -> Errors:
    """What bfloat16 operands and outputs may cost; never so much that zeros pass."""
    assert true.size is not None
    whole = Errors(true.size.largest, true.size.norm)
    bound = true.bounds[Tier.HALF].times(8.0).or_more(whole.times(_BRAIN))
    return bound.or_less(whole.times(0.5))


def _relative(found: Errors, true: OutputTruth) -> tuple[float, float]:
    """As ``max|y-t|/rms(t)`` and ``||y-t||/||t||``; absolute where the truth is all zeros."""
    if true.size is None or true.size.norm == 0:
        return found.max, found.l2
    return found.max / true.size.rms, found.l2 / true.size.norm


def _share(values: Tensor, true: OutputTruth) -> float:
    assert true.size is not None
    rms = true.size.rms or 1.0
    return largest_share(values, true.values, rms, finite=true.size.finite)


def _element(values: Tensor, true: OutputTruth) -> str:
    assert true.size is not None
    index = worst_element(values, true.values, finite=true.size.finite)
    return _said(true.name, index, values[index].item(), true.values[index].item())


def _said(name: str, index: tuple[int, ...], got: float, expected: float) -> str:
    place = f"[{', '.join(map(str, index))}]" if index else ""
    return f"{name}{place} is {_figure(got)}, expected {_figure(expected)}"


def _figure(value: float) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Quick:
    """What timed calls are compared with: the truth in the outputs' own width, absolute bounds.

    ``checks`` are (truth, bound on ``max|y-t|``); bound None means equal to it or to ``others``.
    ``tolerance`` excuses more where an element itself is large.
    """

    checks: tuple[tuple[OutputTruth, float | None], ...]
    tolerance: float | None


def quick(truth: Truth, demand: Demand) -> Quick:
    """Prepare ``truth`` for `quick_check` under ``demand``; keeps no float64 copy of floats."""
    return Quick(tuple(_narrow(true, demand) for true in truth.outputs), demand.tolerance)


def _narrow(true: OutputTruth, demand: Demand) -> tuple[OutputTruth, float | None]:
    if true.size is None:
        return true, None
    if demand.tier is not None:
        bound = true.bounds[demand.tier].max
    else:
        assert demand.tolerance is not None
        bound = max(demand.tolerance * true.size.rms, true.bounds[Tier.FP32].max)
    if true.dtype is torch.float64 or true.ranking is not None:
        return true, bound
    # rounding the truth to float32 moves it by half a unit in the last place at most
    slack = torch.finfo(torch.float32).eps * true.size.largest
    return replace(true, values=true.values.float()), bound + slack


_LOOSER = 2.0
"""Bounds on renewed contents: the reference in its own precision stands in for the truth there."""


def plain(expected: Quick) -> bool:
    """Whether all outputs are floats that are compared as they are."""
    return all(bound is not None and not true.ranking for true, bound in expected.checks)


def renewed(expected: Quick, outputs: Sequence[Tensor]) -> Quick | None:
    """``expected`` for other arguments of the same kind, on which the reference gave ``outputs``.

    None if they are less finite than before. Only for `plain` ones.
    """
    checks = []
    for (true, bound), output in zip(expected.checks, outputs, strict=True):
        assert bound is not None
        assert true.size is not None
        if true.size.finite and not bool(torch.isfinite(output).all()):
            return None
        values = output.to(true.values.dtype)
        checks.append((replace(true, values=values), _LOOSER * bound))
    return replace(expected, checks=tuple(checks))


def quick_check(outputs: Sequence[Tensor], expected: Quick) -> str:
    """Empty if ``outputs`` are right, else what is wrong where. One pass, in float32."""
    for output, check in zip(outputs, expected.checks, strict=True):
        complaint = _quick(output, *check, expected.tolerance)
        if complaint:
            return complaint
    return ""


def _quick(output: Tensor, true: OutputTruth, bound: float | None, tolerance: float | None) -> str:
    if bound is None:
        return _compare_exactly(output, true, "").fault
    picked = true.ranking.picked(output) if true.ranking else output
    if picked is None:
        return f"{true.name} holds indices out of range, or one of them twice"
    assert true.size is not None
    gap = _largest_gap(picked, true.values, true.size.finite)
    if gap <= bound:  # False for NaN
        return ""
    if tolerance is not None and _share(picked, true) <= tolerance:
        return ""
    return f"{_element(picked, true)} (off by {gap:.3g}, allowed {bound:.3g})"


def _largest_gap(output: Tensor, expected: Tensor, finite: bool) -> float:
    gap = output.to(expected.dtype) - expected
    if not finite:
        gap = torch.where(output == expected, 0.0, gap)
    low, high = torch.aminmax(gap)  # NaN comes through
    return float(torch.maximum(-low, high))
