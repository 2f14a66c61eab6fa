"""Answers that cost no work. A task on which one of them passes says nothing about a kernel.

Each is what a kernel could return without doing what the task asks for: zeros, one constant, an
input handed through, what PyTorch gave for the task's first inputs, and the result with weights
that are left out or taken as they were at first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cuda_sandbox.signature import Role, TensorSpec
from fitness.correctness import compare_one
from fitness.errors import TaskError
from fitness.evaluation import Demand
from fitness.loaded import LoadedTask
from fitness.reference import Leaves, exact
from fitness.truth import OutputTruth, Truth

Outputs = tuple[Tensor | None, ...]
Give = Callable[[Leaves, Truth], Outputs]

OTHER_INPUTS = "the output for other inputs"

_EVEN = 1e-5
"""A spread below this share of the largest value is rounding: such an output is even by nature."""


@dataclass(frozen=True)
class Lazy:
    """``give`` answers on a content, one entry per output; None where there is no such answer.

    ``trivial``: whether it is right on the task's own inputs by its very making.
    """

    name: str
    give: Give
    trivial: bool = False


@dataclass
class Standing:
    """How an answer stands for one output: on how many contents it was tried, whether it failed."""

    lazy: Lazy
    position: int
    output: str
    tried: int = 0
    failed: bool = False

    @property
    def passes(self) -> bool:
        """Whether it was accepted wherever it was tried."""
        return self.tried > 0 and not self.failed

    @property
    def name(self) -> str:
        """The answer's."""
        return self.lazy.name


def said(winners: Sequence[Standing]) -> str:
    """As ``zeros and one constant as out0; zeros as out1``."""
    outputs = dict.fromkeys(standing.output for standing in winners)
    return "; ".join(
        f"{listed([one.name for one in winners if one.output == output])} as {output}"
        for output in outputs
    )


def listed(names: Sequence[str]) -> str:
    """As ``a, b and c``."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


class Contest:
    """All lazy answers for one task, tried on one content after the other until they fail."""

    def __init__(self, task: LoadedTask, demand: Demand, own: Leaves) -> None:
        self._demand = demand
        self.lazies = tuple(lazy_answers(task, own))
        outputs = task.signature.outputs
        self._standings = [
            Standing(lazy, position, spec.name)
            for lazy in self.lazies
            for position, spec in enumerate(outputs)
        ]

    def enter(self, leaves: Leaves, truth: Truth) -> None:
        """Try all that have not failed yet on this content."""
        for lazy in self.lazies:
            standings = [s for s in self._standings if s.lazy is lazy and not s.failed]
            if not standings:
                continue
            answers = given(lazy, leaves, truth)
            for standing in standings:
                accepted = accepts(
                    answers[standing.position], truth, standing.position, self._demand
                )
                standing.tried += accepted is not None
                standing.failed = accepted is False

    @property
    def winners(self) -> tuple[Standing, ...]:
        """Those that were accepted wherever they were tried."""
        return tuple(standing for standing in self._standings if standing.passes)


def given(lazy: Lazy, leaves: Leaves, truth: Truth) -> Outputs:
    """Its answers; none where the reference does not take what it would feed it."""
    try:
        with exact():
            return lazy.give(leaves, truth)
    except TaskError:
        return tuple(None for _ in truth.outputs)


def accepts(answer: Tensor | None, truth: Truth, position: int, demand: Demand) -> bool | None:
    """Whether ``answer`` passes as that output; None if it is none."""
    if answer is None:
        return None
    return compare_one(answer, truth.outputs[position], truth.content).satisfies(demand)


def lazy_answers(task: LoadedTask, own: Leaves) -> Iterable[Lazy]:
    """Those that fit the task; ``own`` are leaves with its own inputs and weights."""
    outputs = task.signature.outputs
    with exact():
        first = task.run(own)
    yield Lazy("zeros", lambda *_: tuple(_filled(output, 0) for output in first))
    if any(output.dtype is torch.bool for output in first):
        yield Lazy("all true", lambda *_: tuple(_only_bool(output) for output in first))
    yield Lazy("one constant", lambda *_: tuple(map(_typical, first)))
    yield Lazy("the mean", lambda _, truth: tuple(map(_mean, truth.outputs, first)))
    yield Lazy(OTHER_INPUTS, lambda *_: first)
    for spec in task.signature.arguments:
        if spec.role in (Role.INPUT, Role.STATE) and any(_fits(spec, one) for one in outputs):
            yield _passed_through(spec, outputs)
    yield from _with_other_weights(task, own)


def _filled(output: Tensor, value: float) -> Tensor:
    return torch.full_like(output, value)


def _only_bool(output: Tensor) -> Tensor | None:
    return _filled(output, 1) if output.dtype is torch.bool else None


def _typical(output: Tensor) -> Tensor:
    """Filled with the mean of its finite values, or with the value that comes most often."""
    if not output.is_floating_point():
        return _filled(output, int(output.reshape(-1).long().mode().values))
    finite = output[torch.isfinite(output)].double()
    return _filled(output, float(finite.mean()) if finite.numel() else 0.0)


def _mean(true: OutputTruth, output: Tensor) -> Tensor | None:
    """The truth's own mean everywhere; None where all elements are equal by nature."""
    if true.ranking is not None or true.size is None or not true.size.finite:
        return None
    mean = true.values.mean()
    if bool((true.values - mean).abs().max() <= _EVEN * true.size.largest):
        return None
    return mean.to(output.dtype).expand_as(output).contiguous()


def _fits(spec: TensorSpec, output: TensorSpec) -> bool:
    sizes = [torch.Size(one.shape).numel() for one in (spec, output)]
    kinds = [getattr(torch, one.dtype).is_floating_point for one in (spec, output)]
    return (
        sizes[0] == sizes[1] and kinds[0] == kinds[1] and "bool" not in (spec.dtype, output.dtype)
    )


def _passed_through(spec: TensorSpec, outputs: Sequence[TensorSpec]) -> Lazy:
    def give(leaves: Leaves, _: Truth) -> Outputs:
        return tuple(
            leaves[spec.name].reshape(output.shape).to(getattr(torch, output.dtype))
            if _fits(spec, output)
            else None
            for output in outputs
        )

    return Lazy(f"{spec.name} passed through", give)


def _with_other_weights(task: LoadedTask, own: Leaves) -> Iterable[Lazy]:
    """With weights left out (those that are constant, as 1 and 0), or as they were at first."""
    parameters = [spec.name for spec in task.signature.arguments if spec.role is Role.PARAMETER]
    flat = {name: own[name] for name in parameters if _is_flat(own[name])}

    def instead(weights: Leaves) -> Give:
        return lambda leaves, _: task.run({**leaves, **weights})

    if flat:
        said = ", ".join(f"{name} = {float(leaf.reshape(-1)[0]):g}" for name, leaf in flat.items())
        said = said if len(said) < 60 else f"{said[:57]}..."
        yield Lazy(f"the output for unit weights ({said})", instead(flat))
    if len(flat) < len(parameters):
        first = {name: own[name] for name in parameters}
        yield Lazy("the output for the weights as they were at first", instead(first), trivial=True)


def _is_flat(leaf: Tensor) -> bool:
    return leaf.numel() > 1 and bool((leaf == leaf.reshape(-1)[0]).all())
