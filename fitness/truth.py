"""The truth for one set of inputs, and how far a kernel of each tier may be from it.

Truth is the reference in float64. A tier's bound is four times PyTorch's own error on operands as
that tier has them, at least 8 units in the last place of the output type (4 of a 16-bit one): a
float32 sum of many terms is off by that much where PyTorch's happens to be exact. As operands
count all floating-point leaves: inputs, parameters, buffers and states. They are rounded here, in
float32 arithmetic, so that tiers mean the same on every device:

- ``fp32``: as they are, and with each float32 operand moved by up to two units in its last place,
  twice at random and once all of them upwards: so an honest kernel that sums or scales in another
  order passes where the problem itself is ill-conditioned (a constant row before a normalisation,
  large numbers before an exponential, a mean of numbers of both signs). Tasks of 16-bit types run
  in float32 for that, their operands moved by as little.
- ``tf32``: rounded to 10 mantissa bits. ``half``: rounded to float16. These bounds never exceed
  half of the truth's size, so that zeros pass nowhere; a tier whose operands overflow on these
  inputs gets the next stricter one's bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from fitness.errors import TaskError, UnfitTask
from fitness.evaluation import Tier
from fitness.inputs import Inputs, rungs
from fitness.loaded import LoadedTask
from fitness.measure import Errors, Size, errors_of, size_of
from fitness.operands import as_tiers, on_both_sides
from fitness.rankings import Ranking, Recorder
from fitness.reference import Leaves, exact

_FACTOR = 4.0
_CAP = 0.5
_INFORMATIVE = 0.04
_NOTHING = Errors(0.0, 0.0)


class NotFinite(Exception):
    """The reference is not finite on these inputs, which therefore say nothing about a kernel."""


@dataclass(frozen=True)
class OutputTruth:
    """One output's truth.

    ``values``: float64 ``(*shape)`` for floats and (the picked values) for indices, else the
    output itself. ``bounds`` and ``reference`` (PyTorch's own error) are absolute. ``others``:
    for integers and bools, what the reference gives in its own types and on operands moved by two
    units in their last place, up, down or at random: an element may be any of these, as where a
    number is rounded that lies halfway. ``informative``: whether relative errors mean something
    (not on ill-conditioned inputs).
    """

    name: str
    dtype: torch.dtype
    values: Tensor
    size: Size | None
    bounds: Mapping[Tier, Errors]
    reference: Errors
    others: tuple[Tensor, ...] = ()
    ranking: Ranking | None = None
    informative: bool = True


@dataclass(frozen=True)
class Truth:
    """The truth for one content. ``content`` names it; ``wide``: whether float64 was possible."""

    content: str
    outputs: tuple[OutputTruth, ...]
    wide: bool


def find_content(
    inputs: Inputs, distribution: str, index: int = 0
) -> tuple[dict[str, Tensor], Truth] | None:
    """The first form of ``distribution`` on which the reference is finite; None if there is none.

    Raises TaskError if the reference fails on the task's own inputs, UnfitTask if it gives NaN.
    """
    for rung in range(rungs(distribution)):
        leaves = inputs.draw(distribution, index, rung)
        try:
            return leaves, find_truth(inputs.task, leaves, distribution)
        except NotFinite:
            continue
        except TaskError:
            if distribution == "own":
                raise  # elsewhere an assertion of the reference's own: not in its domain
    return None


def find_truth(task: LoadedTask, leaves: Leaves, content: str) -> Truth:
    """The truth for ``leaves``. Raises NotFinite, and TaskError if the reference fails."""
    with exact():
        own = task.run(leaves)
        _require_finite(task, own, content)
        wide, recorder = _wide(task, leaves)
        if wide is None and not all(output.is_floating_point() for output in own):
            own, recorder = _recorded(task, leaves)
        narrow = all(tensor.dtype is not torch.float64 for tensor in leaves.values())
        truths = [
            _Output(spec.name, output, true, recorder, narrow)
            for spec, output, true in zip(task.signature.outputs, own, wide or own, strict=True)
        ]
        for tier, rounded in as_tiers(leaves):
            for truth, output in zip(truths, _run(task, rounded), strict=False):
                truth.add(tier, output)
        if any(truth.exact for truth in truths):
            for moved in on_both_sides(leaves):
                for truth, output in zip(truths, _run(task, moved), strict=False):
                    truth.add_side(output)
    return Truth(content, tuple(truth.done() for truth in truths), wide is not None)


def _require_finite(task: LoadedTask, outputs: tuple[Tensor, ...], content: str) -> None:
    for spec, output in zip(task.signature.outputs, outputs, strict=True):
        if not output.is_floating_point() or bool(torch.isfinite(output).all()):
            continue
        if content != "own":
            raise NotFinite(f"{spec.name} is not finite on {content}")
        if bool(torch.isnan(output).any()):
            raise UnfitTask(
                f"{task.reference.file.path}: {spec.name} is NaN on the task's own inputs; "
                "no kernel can be judged against that"
            )


def _run(task: LoadedTask, rounded: Leaves) -> tuple[Tensor, ...]:
    """The reference on rounded operands; nothing if it does not take operands of that width."""
    try:
        return task.run(rounded)
    except TaskError:
        return ()


def _wide(task: LoadedTask, leaves: Leaves) -> tuple[tuple[Tensor, ...] | None, Recorder]:
    """The float64 outputs, or None where the reference does not run in float64."""
    recorder = Recorder()
    try:
        with recorder:
            return task.run64(leaves), recorder
    except TaskError:
        return None, recorder


def _recorded(task: LoadedTask, leaves: Leaves) -> tuple[tuple[Tensor, ...], Recorder]:
    recorder = Recorder()
    with recorder:
        return task.run(leaves), recorder


class _Output:
    """Collects the errors of one output under each tier's operands."""

    def __init__(
        self, name: str, own: Tensor, true: Tensor, recorder: Recorder, narrow: bool
    ) -> None:
        self.name = name
        self.dtype = own.dtype
        self.ranking = None if own.is_floating_point() else recorder.find(true)
        whole = self.ranking is not None and self.ranking.whole
        self.precision = _precision(torch.float64 if whole else own.dtype, narrow and not whole)
        self.values = self._comparable(true)
        self.others: list[Tensor] = []
        self.size: Size | None = None
        self.errors: dict[Tier, Errors] = {}
        self.reference = _NOTHING
        if self.values is not None and self.values.is_floating_point():
            self.values = _as_infinite(self.values.double(), own)
            self.size = size_of(self.values)
            self.reference = self._error(own)
            self.errors[Tier.FP32] = self.reference
        else:
            self.add_side(own)

    def _comparable(self, output: Tensor) -> Tensor:
        picked = self.ranking.picked(output) if self.ranking else output
        return output if picked is None else picked

    def _error(self, output: Tensor) -> Errors:
        assert self.size is not None
        return errors_of(self._comparable(output), self.values, finite=self.size.finite)

    def add(self, tier: Tier, output: Tensor) -> None:
        """Take into account what the reference gives on operands as ``tier`` has them."""
        if self.size is None:
            if tier is Tier.FP32:
                self.add_side(output)
            return
        error = self._error(output.to(self.dtype))
        if error.finite:
            self.errors[tier] = self.errors.get(tier, _NOTHING).or_more(error)

    @property
    def exact(self) -> bool:
        """Whether elements are equal to the truth or wrong."""
        return self.size is None

    def add_side(self, output: Tensor) -> None:
        """Take into account that an element may lie on this side of a boundary too."""
        if self.exact and not any(map(output.equal, (self.values, *self.others))):
            self.others.append(output)

    def done(self) -> OutputTruth:
        """The finished record."""
        bounds = self._bounds()
        norm = self.size.norm if self.size else 0.0
        return OutputTruth(
            self.name,
            self.dtype,
            self.values,
            self.size,
            bounds,
            self.reference,
            tuple(self.others),
            self.ranking,
            informative=not bounds
            or bounds[Tier.FP32].l2 <= max(_INFORMATIVE, self.precision.eps * _FACTOR) * norm,
        )

    def _least(self) -> Errors:
        """One unit in the last place of the largest values, or what cannot be represented."""
        assert self.size is not None
        eps, smallest = self.precision.eps, _smallest(self.precision)
        return Errors(
            max(self.size.largest * eps, smallest),
            max(self.size.norm * eps, smallest * math.sqrt(self.values.numel())),
        )

    def _bounds(self) -> dict[Tier, Errors]:
        if self.size is None:
            return {}
        whole = Errors(self.size.largest, self.size.norm)
        least = self._least()
        floor = least.times(_FACTOR if self.precision.bits == 16 else 2 * _FACTOR)
        bound = self.errors[Tier.FP32].times(_FACTOR).or_more(floor)
        bounds = {Tier.FP32: bound}
        for tier in (Tier.TF32, Tier.HALF):
            error = self.errors.get(tier, _NOTHING)
            bound = bound.or_more(error.times(_FACTOR).or_less(whole.times(_CAP)))
            bounds[tier] = bound
        return bounds


def _as_infinite(values: Tensor, own: Tensor) -> Tensor:
    """``values`` with the infinities that the reference gives in its own type.

    Otherwise its error there would be infinite, and anything would be within four times that.
    """
    if not own.is_floating_point() or not bool(torch.isinf(own).any()):
        return values
    return torch.where(torch.isinf(own), own.double(), values)


def _precision(dtype: torch.dtype, narrow: bool) -> torch.finfo:
    """The type whose unit in the last place counts; ``narrow``: whether no leaf is float64."""
    if not dtype.is_floating_point or (narrow and dtype is torch.float64):
        return torch.finfo(torch.float32)
    return torch.finfo(dtype)


def _smallest(precision: torch.finfo) -> float:
    """Below this a kernel may flush to zero: 16-bit types keep their subnormals."""
    return precision.tiny * precision.eps if precision.bits == 16 else precision.tiny
