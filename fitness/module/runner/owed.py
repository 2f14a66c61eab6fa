"""What a tensor leaves to whoever reads it: work that seems to have been done, and has not.

PyTorch can put off a negation, a conjugation or a copy, and a view needs no copy at all. All of
that is done where an output is read, when the clock has stopped.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

LAZY, OVERLAPPING, SHARED = "lazy", "overlapping", "shared"
"""The ways: values yet to be computed; an element written once that stands for several; memory of
what forward was given."""


def owed(tensor: Tensor, plain: Tensor, given: Sequence[Tensor]) -> dict[str, str]:
    """The ways in which ``tensor`` owes work, each in words; empty if all of it is there.

    ``plain`` is any plain tensor on the same device; ``given`` are inputs and parameters.
    """
    if put_off := _put_off(tensor, plain):  # hands off its memory: looking at it may compute it
        return {LAZY: f"is not computed yet ({put_off})"}
    found = {}
    if _overlaps(tensor):
        strides = ", ".join(map(str, tensor.stride()))
        found[OVERLAPPING] = f"has several elements at one place in memory (strides {strides})"
    if any(_meet(tensor, other) for other in given):
        found[SHARED] = "lies in the memory of an input or parameter"
    return found


def _put_off(tensor: Tensor, plain: Tensor) -> str:
    """What PyTorch has still to do with it: Negative, Conjugate, Functionalize, ..."""
    if torch._C._is_cow_tensor(tensor):  # type: ignore[attr-defined]  # not declared there
        return "copied on write"
    more = torch._C._dispatch_keys(tensor) - torch._C._dispatch_keys(plain)
    return str(more).removeprefix("DispatchKeySet(").removesuffix(")")


def _overlaps(tensor: Tensor) -> bool:
    """Whether two elements may share memory: a step is shorter than all that lies below it."""
    if tensor.is_contiguous() or not tensor.numel():
        return False
    steps = sorted(
        (step, size) for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1
    )
    extent = 1
    for step, size in steps:
        if step < extent:
            return True
        extent += step * (size - 1)
    return False


def _meet(one: Tensor, other: Tensor) -> bool:
    """Whether the stretches of memory from first to last element have bytes in common."""
    (start, end), (other_start, other_end) = _stretch(one), _stretch(other)
    return start < other_end and other_start < end


def _stretch(tensor: Tensor) -> tuple[int, int]:
    if not tensor.numel():
        return 0, 0
    if tensor.is_contiguous():
        return (start := tensor.data_ptr()), start + tensor.nbytes
    last = sum(s * (n - 1) for s, n in zip(tensor.stride(), tensor.shape, strict=True))
    start = tensor.data_ptr()
    return start, start + (last + 1) * tensor.element_size()
