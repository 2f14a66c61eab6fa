"""Distances between tensors, in float64, a slice at a time: outputs may be gigabytes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

_SLICE = 1 << 23  # elements: 64 MiB of float64, so that a slice's temporaries stay near the cache


@dataclass(frozen=True, slots=True)
class Errors:
    """``max|y-t|`` and ``||y-t||``, in the output's unit; infinite where y is NaN or overflows."""

    max: float
    l2: float

    def within(self, bound: Errors) -> bool:
        """Whether both are at most those of ``bound``."""
        return self.max <= bound.max and self.l2 <= bound.l2

    def times(self, factor: float) -> Errors:
        """Both, multiplied."""
        return Errors(self.max * factor, self.l2 * factor)

    def or_more(self, other: Errors) -> Errors:
        """The larger of each."""
        return Errors(max(self.max, other.max), max(self.l2, other.l2))

    def or_less(self, other: Errors) -> Errors:
        """The smaller of each."""
        return Errors(min(self.max, other.max), min(self.l2, other.l2))

    @property
    def finite(self) -> bool:
        """Whether neither is infinite."""
        return math.isfinite(self.max) and math.isfinite(self.l2)


@dataclass(frozen=True, slots=True)
class Size:
    """How large a tensor's finite values are; ``finite``: whether all are finite."""

    rms: float
    norm: float
    largest: float
    finite: bool


def _slices(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    flat = [tensor.reshape(-1) for tensor in tensors]
    for start in range(0, flat[0].numel(), _SLICE):
        yield tuple(tensor[start : start + _SLICE] for tensor in flat)


def size_of(tensor: Tensor) -> Size:
    """The size of a float tensor."""
    device = tensor.device
    total = torch.zeros((), dtype=torch.float64, device=device)
    largest = torch.zeros((), dtype=torch.float64, device=device)
    bad = torch.zeros((), dtype=torch.int64, device=device)
    for (part,) in _slices(tensor):
        values = part.double()
        finite = torch.isfinite(values)
        values = torch.where(finite, values, 0.0)
        total += torch.dot(values, values)
        largest = torch.maximum(largest, values.abs().amax())
        bad += finite.logical_not().sum()
    count = tensor.numel() - int(bad)
    norm = math.sqrt(float(total))
    return Size(norm / math.sqrt(max(1, count)), norm, float(largest), int(bad) == 0)


def errors_of(output: Tensor, truth: Tensor, *, finite: bool = True) -> Errors:
    """How far ``output`` is from ``truth`` (same shape). ``finite``: whether the truth is.

    Where it is not, equal infinities count as no error, anything else as an infinite one.
    """
    top = torch.zeros((), dtype=torch.float64, device=truth.device)
    total = torch.zeros((), dtype=torch.float64, device=truth.device)
    for part, true in _slices(output, truth):
        gap = _gap(part, true, finite)
        total += torch.dot(gap, gap)
        top = torch.maximum(top, gap.abs_().amax())
    largest, squares = float(top), float(total)
    if not (math.isfinite(largest) and math.isfinite(squares)):
        return Errors(math.inf, math.inf)
    return Errors(largest, math.sqrt(squares))


def largest_share(output: Tensor, truth: Tensor, rms: float, *, finite: bool = True) -> float:
    """The largest ``|y-t| / max(rms, |t|)``: errors of large elements relative to themselves."""
    top = torch.zeros((), dtype=torch.float64, device=truth.device)
    for part, true in _slices(output, truth):
        share = _gap(part, true, finite).abs_().div_(true.abs().double().clamp_(min=rms))
        top = torch.maximum(top, share.nan_to_num_(nan=0.0 if not finite else math.inf).amax())
    return float(top)


def worst_element(output: Tensor, truth: Tensor, *, finite: bool = True) -> tuple[int, ...]:
    """Where ``output`` is farthest from ``truth``; the first NaN or infinity, if there is one."""
    best, where, start = -1.0, 0, 0
    for part, true in _slices(output, truth):
        gap = _gap(part, true, finite).abs_().nan_to_num_(nan=math.inf)
        value, index = gap.max(dim=0)
        if float(value) > best:
            best, where = float(value), start + int(index)
        start += part.numel()
    return unravel(where, tuple(truth.shape))


def unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of the ``flat``-th element of a contiguous tensor."""
    index = []
    for size in reversed(shape):
        flat, rest = divmod(flat, size)
        index.append(rest)
    return tuple(reversed(index))


def _gap(part: Tensor, true: Tensor, finite: bool) -> Tensor:
    gap = part.double() - true
    return gap if finite else torch.where(part == true, 0.0, gap)
