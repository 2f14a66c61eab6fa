"""What values a leaf may take: judged from two draws of the task's own, and from its operators."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor

from cuda_sandbox.signature import Role
from fitness.description import TaskDescription

_UNIT_OPERATORS = ("binary_cross_entropy.", "bernoulli", "multinomial", "xlogy", "logit.")
_GLANCE = 65536  # elements looked at where a few tell enough
_CATEGORIES = 8


class Kind(StrEnum):
    """How values of a leaf are drawn."""

    REAL = "real"  # any number
    UNIT = "unit"  # between 0 and 1
    SIMPLEX = "simplex"  # not negative, sums to 1 along a dimension
    CATEGORY = "category"  # one of a few values, as labels of -1 and 1
    INTEGER = "integer"  # a range
    PERMUTATION = "permutation"  # each number of a range once, along the last dimension
    BOOL = "bool"
    FIXED = "fixed"  # as the task has it


@dataclass(frozen=True)
class Domain:
    """The values of one leaf. ``sample`` is what the task itself drew, kept where it is needed.

    ``mean`` and ``deviation`` are the sample's; ``low`` and ``high`` a range, ends included;
    ``pattern`` is True where an entry may be other than zero (triangular matrices and such).
    """

    kind: Kind
    mean: float = 0.0
    deviation: float = 0.0
    low: int = 0
    high: int = 0
    dim: int = -1
    ordered: bool = False
    symmetric: bool = False
    values: tuple[float, ...] = ()
    pattern: Tensor | None = None
    sample: Tensor | None = None


def find_domain(
    name: str, role: Role, first: Tensor, second: Tensor, description: TaskDescription
) -> Domain:
    """The domain of leaf ``name`` from two draws (the same tensor for what the model holds)."""
    if role is Role.INPUT:
        return _input(first, second, description)
    if role is Role.PARAMETER and first.is_floating_point():
        return _spread(first)
    if role is Role.BUFFER and name.endswith(("running_mean", "running_var")):
        return _spread(first)
    if role is Role.STATE and _looks_drawn(first):
        return _spread(first)
    return Domain(Kind.FIXED, sample=first)


def _input(first: Tensor, second: Tensor, description: TaskDescription) -> Domain:
    if first.is_floating_point():
        return _real(first, second, description)
    if torch.equal(first, second):
        return Domain(Kind.FIXED, sample=first)
    if first.dtype is torch.bool:
        return Domain(Kind.BOOL, mean=float(first.double().mean()))
    return _integer(first, second)


def _integer(first: Tensor, second: Tensor) -> Domain:
    low = int(min(first.min(), second.min()))
    high = int(max(first.max(), second.max()))
    if first.ndim and first.shape[-1] == high - low + 1 > 1:
        ranked = first.sort(dim=-1).values
        if bool((ranked.diff(dim=-1) == 1).all()):
            return Domain(Kind.PERMUTATION, low=low, high=high)
    ordered = first.ndim > 0 and first.shape[-1] > 2
    ordered = ordered and all(bool((t.diff(dim=-1) >= 0).all()) for t in (first, second))
    return Domain(Kind.INTEGER, low=low, high=high, ordered=ordered)


def _real(first: Tensor, second: Tensor, description: TaskDescription) -> Domain:
    if not bool(torch.isfinite(first).all()):
        return Domain(Kind.FIXED, sample=first)
    few = _distinct(first)
    if 1 < few.numel() <= _CATEGORIES and first.numel() > 8 * _CATEGORIES:
        return Domain(Kind.CATEGORY, values=tuple(few.tolist()))
    low, high = float(first.min()), float(first.max())
    if low >= 0 and high <= 1 and (dim := _sums_to_one(first)) is not None:
        return Domain(Kind.SIMPLEX, dim=dim)
    if low >= 0 and high <= 1 and _has_operator(description, _UNIT_OPERATORS):
        return Domain(Kind.UNIT)
    return Domain(Kind.REAL, pattern=_pattern(first, second), symmetric=_is_symmetric(first))


def _glance(tensor: Tensor) -> Tensor:
    flat = tensor.reshape(-1)
    return flat[:: max(1, flat.numel() // _GLANCE)]


def _distinct(tensor: Tensor) -> Tensor:
    values: Tensor = torch.unique(_glance(tensor))
    return values


def _sums_to_one(tensor: Tensor) -> int | None:
    """The dimension along which ``tensor`` sums to 1, if there is one."""
    for dim in (-1, 1):
        if tensor.ndim > abs(dim) - (dim < 0) and tensor.shape[dim] > 1:
            sums = tensor.sum(dim=dim, dtype=torch.float32)
            if bool(((sums - 1).abs() < 1e-2).all()):
                return dim
    return None


def _has_operator(description: TaskDescription, parts: tuple[str, ...]) -> bool:
    return any(part in node.op for node in description.graph for part in parts)


def _pattern(first: Tensor, second: Tensor) -> Tensor | None:
    """Where entries may be other than zero, if the same tenth or more is zero in both draws."""
    pattern = first != 0
    if bool(pattern.float().mean() > 0.9) or not bool(pattern.any()):
        return None
    return pattern if torch.equal(pattern, second != 0) else None


def _is_symmetric(tensor: Tensor) -> bool:
    square = tensor.ndim >= 2 and tensor.shape[-1] == tensor.shape[-2] > 1
    return square and torch.equal(tensor, tensor.mT) and not _is_constant(tensor)


def _is_constant(tensor: Tensor) -> bool:
    return bool((tensor == tensor.reshape(-1)[0]).all())


def _looks_drawn(tensor: Tensor) -> bool:
    """Whether nearly all values are different, as random ones are."""
    if not tensor.is_floating_point() or tensor.numel() < 8:
        return False
    some = _glance(tensor)
    return _distinct(tensor).numel() > 0.9 * some.numel() and bool(torch.isfinite(tensor).all())


def _spread(tensor: Tensor) -> Domain:
    """Normal around the model's own mean, wide enough that no value can be taken for granted."""
    mean = float(tensor.double().mean())
    deviation = float(tensor.double().std(correction=0))
    is_vector = sum(size > 1 for size in tensor.shape) <= 1
    if deviation == 0 or is_vector:
        deviation = max(deviation, 0.5 * max(abs(mean), 1.0))
    return Domain(Kind.REAL, mean=mean, deviation=deviation)
