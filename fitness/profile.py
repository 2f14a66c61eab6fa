"""A kernel's bottleneck: the profiler's figures beside the roofline, boiled down."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cuda_sandbox.backend import find, names
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.profiler import Launch, Profile, profile
from cuda_sandbox.slot import timing_slot
from fitness.bottleneck import UNITS, Bottleneck, Occupancy, Stall, bound_by
from fitness.evaluation import Evaluation
from fitness.hardware import slot
from fitness.roofline import Roofline, compulsory_bytes

if TYPE_CHECKING:
    from fitness.judge import Judge

DEADLINE_S = 90.0
_STALLS = 3
_SHOWN = (*UNITS, "sm")


def profiled(
    judge: Judge, kernel: Kernel, verdict: Evaluation, deadline_s: float = DEADLINE_S
) -> Bottleneck:
    """The bottleneck of an accepted ``kernel``, whose ``verdict`` is this judge's.

    A machine that does not allow profiling leaves what the roofline says, and why.
    """
    if kernel.language in names():
        found = _looked_into(judge, kernel, deadline_s)
    else:
        found = Profile(missing=f"a {kernel.language} is out of the profiler's reach")
    line = judge.roofline(verdict.precision)
    moved = compulsory_bytes(judge.task.description)
    return boiled_down(found, line, verdict, moved)


def _looked_into(judge: Judge, kernel: Kernel, deadline_s: float) -> Profile:
    probe = find(kernel.language).probe(judge.arch, kernel.flags)
    content = judge.bank.checks[0]
    with timing_slot(slot(judge.device)):
        return profile(
            kernel,
            judge.signature,
            probe,
            lambda: argument_bytes(judge, content.leaves),
            deadline_s=deadline_s,
        )


def boiled_down(
    found: Profile, line: Roofline, verdict: Evaluation, moved_bytes: int
) -> Bottleneck:
    """One record of all launches: of the function that takes the most time, the others named."""
    share = verdict.roofline_share
    notes = [*_split(line, verdict, moved_bytes), *found.notes]
    if not found.launches:
        return Bottleneck(
            bound="",
            roofline_share=share,
            roofline_ceiling=line.ceiling,
            notes=tuple(notes),
            missing=found.missing,
        )
    functions = _by_function(found.launches)
    total = sum(one.time_ms for one in found.launches)
    name, launches = functions[0]
    busy = _mean(launches, "busy")
    longest = max(launches, key=lambda one: one.time_ms)
    stalls = sorted(_mean(launches, "stalls").items(), key=lambda item: -item[1])
    occupancy = Occupancy(*longest.occupancy, longest.limit) if longest.occupancy else None
    return Bottleneck(
        bound=bound_by(busy),
        function=name,
        function_share=sum(one.time_ms for one in launches) / total if total else None,
        busy={unit: busy[unit] for unit in _SHOWN if unit in busy},
        occupancy=occupancy,
        stalls=tuple(Stall(reason, percent) for reason, percent in stalls[:_STALLS]),
        roofline_share=share,
        roofline_ceiling=line.ceiling,
        notes=(*notes, *_others(functions[1:], total)),
    )


def _by_function(launches: Iterable[Launch]) -> list[tuple[str, list[Launch]]]:
    """The launches of each function, the one that takes the most time first."""
    groups: dict[str, list[Launch]] = defaultdict(list)
    for one in launches:
        groups[one.function].append(one)
    return sorted(groups.items(), key=lambda item: -sum(one.time_ms for one in item[1]))


def _mean(launches: Sequence[Launch], field: str) -> dict[str, float]:
    """Figures of several launches, weighed by their time."""
    weights = [max(one.time_ms, 1e-9) for one in launches]
    sums: dict[str, float] = defaultdict(float)
    for one, weight in zip(launches, weights, strict=True):
        for name, value in getattr(one, field).items():
            sums[name] += value * weight
    return {name: value / sum(weights) for name, value in sums.items()}


def _others(functions: Sequence[tuple[str, Sequence[Launch]]], total_ms: float) -> list[str]:
    shares = [
        f"{name} {sum(one.time_ms for one in launches) / total_ms:.0%}"
        for name, launches in functions[:4]
    ]
    return [f"other functions: {', '.join(shares)}"] if shares else []


def _split(line: Roofline, verdict: Evaluation, moved_bytes: int) -> list[str]:
    """What the time is made of at least, in figures that hold on any device."""
    if verdict.time_ms is None or not moved_bytes:
        return []
    rate = moved_bytes / (verdict.time_ms.median * 1e-3) / 1e9
    floor = f"floor {line.floor_ms:.3g} ms of {verdict.time_ms.median:.3g} ms"
    return [f"{moved_bytes / 1e6:.4g} MB must move: {rate:.4g} GB/s as it is; {floor}"]


def argument_bytes(judge: Judge, leaves: Mapping[str, Tensor]) -> dict[str, bytes]:
    """Every argument as its bytes, for a program of its own."""
    return {
        spec.name: leaves[spec.name].cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        for spec in judge.signature.arguments
    }
