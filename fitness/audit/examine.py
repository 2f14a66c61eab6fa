"""The audit of one loaded task: can it tell a kernel that does the work from one that does not?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cuda_sandbox.signature import TensorSpec
from fitness.audit.effects import effects
from fitness.audit.record import Finding, Level
from fitness.contents import Bank, Content
from fitness.evaluation import Demand
from fitness.inputs import DISTRIBUTIONS, Inputs
from fitness.lazy import (
    OTHER_INPUTS,
    Lazy,
    Standing,
    accepts,
    given,
    lazy_answers,
    listed,
    said,
)
from fitness.loaded import LoadedTask
from fitness.reference import exact
from fitness.truth import find_content

PUBLISHED = 1e-2
"""The tolerance of the published check, absolute and relative, on one draw of the task's inputs."""

_SEED = 3
"""Fixed, so that an audit can be repeated; the judge's inputs stay secret."""

_ENOUGH = 6
_MOSTLY = 0.9


@dataclass(frozen=True)
class Examined:
    """The findings, and the distributions that verdicts on this task rest on."""

    findings: tuple[Finding, ...]
    distributions: tuple[str, ...]
    left_out: tuple[str, ...]
    further: tuple[str, ...]


def examine(task: LoadedTask, demand: Demand, deadline: float) -> Examined:
    """Audit ``task`` for ``demand``, until ``deadline`` (of the monotonic clock) at the latest.

    Raises TaskError where the reference fails, or gives NaN, on the task's own inputs.
    """
    bank = Bank(task, demand, _SEED)
    contents, winners = bank.contest
    used = tuple(content.name for content in contents)
    if varying := tuple(_varying(task, contents[0])):
        return Examined(varying, used, bank.left_out, ())
    further = tuple(name for name in used if name not in DISTRIBUTIONS)
    inputs = Inputs(task, _SEED)
    again = find_content(inputs, "own", index=1)
    findings = [
        *_repeatable(task, contents[0]),
        *_finite(contents[0]),
        *(_fooled(winners) if winners else _telling(contents)),
        *(_weak_spots(task, demand, contents, Content(*again), winners) if again else ()),
        *_reinforced(further, winners),
        *_few(bank.left_out, used),
    ]
    if not any(finding.level is Level.REFUSES for finding in findings):
        findings += effects(task, demand, contents, inputs, deadline)
    return Examined(tuple(findings), used, bank.left_out, further)


def _varying(task: LoadedTask, own: Content) -> Iterator[Finding]:
    """Outputs that differ by more than rounding from one call to the next."""
    for spec, first, again in _twice(task, own):
        if _distance(first, again) > _rounding(first):
            yield Finding(
                Level.REFUSES,
                f"the reference is not deterministic: two calls on the same inputs give other "
                f"{spec.name} (by {_distance(first, again):.2g} of its size), and no kernel can be "
                "held to either",
            )


def _repeatable(task: LoadedTask, own: Content) -> Iterator[Finding]:
    """Outputs that differ by rounding: sums whose order is left to chance."""
    varying = [spec.name for spec, *pair in _twice(task, own) if _distance(*pair) > 0]
    if varying:
        text = f"the reference is not bitwise repeatable in {', '.join(varying)}"
        yield Finding(Level.NOTE, text)


def _twice(task: LoadedTask, own: Content) -> Iterator[tuple[TensorSpec, Tensor, Tensor]]:
    with exact():
        outputs = task.run(own.leaves), task.run(own.leaves)
    yield from zip(task.signature.outputs, *outputs, strict=True)


def _distance(first: Tensor, again: Tensor) -> float:
    """``||a-b|| / ||a||``; infinite where anything but floats differs."""
    if torch.equal(first.nan_to_num(), again.nan_to_num()):
        return 0.0
    if not first.is_floating_point():
        return math.inf
    a, b = (tensor.nan_to_num().double() for tensor in (first, again))
    return float((a - b).norm() / a.norm().clamp(min=1e-300))


def _rounding(output: Tensor) -> float:
    """What chance in the order of sums may amount to."""
    if not output.is_floating_point():
        return 0.0
    return min(0.02, 64 * torch.finfo(output.dtype).eps)


def _finite(own: Content) -> Iterator[Finding]:
    """Infinities among the outputs on the task's own inputs."""
    for true in own.truth.outputs:
        if true.size is None or true.size.finite or true.ranking:
            continue
        share = float(torch.isinf(true.values).double().mean())
        level = Level.REFUSES if share > _MOSTLY else Level.NOTE
        yield Finding(level, f"{share:.0%} of {true.name} is infinite on the task's own inputs")


def _telling(contents: Sequence[Content]) -> Iterator[Finding]:
    """Outputs that PyTorch itself gets wrong in float32, wherever it is looked at."""
    for position, true in enumerate(contents[0].truth.outputs):
        outputs = [content.truth.outputs[position] for content in contents]
        if any(output.informative for output in outputs):
            continue
        sizes = [(one.reference.l2, one.size.norm) for one in outputs if one.size]
        worst = min((error / norm for error, norm in sizes if norm), default=0.0)
        yield Finding(
            Level.REFUSES,
            f"{true.name} is ill-conditioned on every distribution: PyTorch's own result is off by "
            f"{worst:.0%} at best, so that nearly anything would pass",
        )


def _fooled(winners: Sequence[Standing]) -> Iterator[Finding]:
    constant = any(one.name == OTHER_INPUTS for one in winners)
    always = "the output is the same whatever the inputs are: " if constant else ""
    yield Finding(
        Level.REFUSES,
        f"{always}{said(winners)} would pass on every distribution of inputs tried",
    )


def _weak_spots(
    task: LoadedTask,
    demand: Demand,
    contents: Sequence[Content],
    again: Content,
    winners: Sequence[Standing],
) -> Iterator[Finding]:
    """Lazy answers that pass on ``again``, the task's own inputs, and what rejects them."""
    with exact():
        right = task.run(again.leaves)
    fooling = {(one.name, one.output) for one in winners}
    lazies = tuple(lazy_answers(task, contents[0].leaves))
    for position, output in enumerate(task.signature.outputs):
        weak: dict[tuple[str, ...], list[str]] = {}
        for lazy in lazies:
            if lazy.trivial or (lazy.name, output.name) in fooling:
                continue
            how = _how_it_passes(lazy, position, again, right[position], demand)
            if how:
                rejecting = _rejecting(lazy, position, contents, demand)
                weak.setdefault((how, *rejecting), []).append(lazy.name)
        for (how, *by), names in weak.items():
            yield Finding(
                Level.STRENGTHENS,
                f"on the task's own inputs {listed(names)} would pass as {output.name} {how}; "
                f"rejected here on {_named(by, contents)}",
            )


def _named(names: Sequence[str], contents: Sequence[Content]) -> str:
    """The distributions ``names``, shorter where they are all, or all but the task's own."""
    others = [content.name for content in contents[1:]]
    if list(names) == others:
        return "all other distributions"
    return "these too, and on all others" if len(names) > len(others) else ", ".join(names)


def _reinforced(further: Sequence[str], winners: Sequence[Standing]) -> Iterator[Finding]:
    if further and not winners:
        yield Finding(
            Level.STRENGTHENS,
            "answers that cost no work pass all seven distributions: further inputs are drawn "
            f"({', '.join(further)}), on which they fail",
        )


def _how_it_passes(lazy: Lazy, position: int, own: Content, right: Tensor, demand: Demand) -> str:
    """Under which check ``lazy`` passes on the task's own inputs; empty if under none."""
    answer = given(lazy, own.leaves, own.truth)[position]
    if accepts(answer, own.truth, position, demand):
        return f"under {_demanded(demand)}"
    if answer is None or not right.is_floating_point():
        return ""
    if torch.allclose(answer, right, rtol=PUBLISHED, atol=PUBLISHED):
        return f"under the published check (allclose, {PUBLISHED:g})"
    return ""


def _demanded(demand: Demand) -> str:
    if demand.tier is not None:
        return f"tier {demand.tier}"
    return f"a tolerance of {demand.tolerance:g}, which is wider than what it differs by"


def _rejecting(
    lazy: Lazy, position: int, contents: Sequence[Content], demand: Demand
) -> Iterator[str]:
    for content in contents:
        answer = given(lazy, content.leaves, content.truth)[position]
        if accepts(answer, content.truth, position, demand) is False:
            yield content.name


def _few(left_out: Sequence[str], used: Sequence[str]) -> Iterator[Finding]:
    if left_out:
        yield Finding(
            Level.NOTE,
            f"left out, as the reference is not finite or not defined there: {', '.join(left_out)}",
        )
    if len(used) < _ENOUGH:
        yield Finding(Level.NOTE, f"verdicts rest on no more than {len(used)} distributions")
