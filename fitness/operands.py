"""Operands as each tier has them, and moved by what no honest kernel can be held to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from fitness.evaluation import Tier
from fitness.reference import Leaves

_NUDGE = 2  # units in the last place
_NUDGES = 2  # one may by chance move two neighbours of a softmax the same way


def as_tiers(leaves: Leaves) -> Iterator[tuple[Tier, dict[str, Tensor]]]:
    """Operands as each tier has them; nothing where rounding changes nothing or overflows."""
    movable = _movable(leaves)
    for salt in range(_NUDGES):
        nudged = {name: _nudged(f"{name}/{salt}", leaf) for name, leaf in movable.items()}
        yield Tier.FP32, nudged
    yield Tier.FP32, {name: _lifted(leaf) for name, leaf in movable.items()}
    if movable is not leaves:
        return
    yield Tier.TF32, {name: _rounded(tensor, to_tf32) for name, tensor in leaves.items()}
    halves = {name: _rounded(tensor, to_half) for name, tensor in leaves.items()}
    if all(_same_finiteness(leaves[name], half) for name, half in halves.items()):
        yield Tier.HALF, halves


def on_both_sides(leaves: Leaves) -> Iterator[dict[str, Tensor]]:
    """All floats moved down, then up: an integer made of them may lie on either side."""
    movable = _movable(leaves)
    for units in (-_NUDGE, _NUDGE):
        yield {name: _moved(leaf, units) for name, leaf in movable.items()}


def _movable(leaves: Leaves) -> Leaves:
    """``leaves``, in float32 where all of their floats are narrower."""
    if any(_is_wide(tensor) for tensor in leaves.values()):
        return leaves
    return {name: _widened(leaf) for name, leaf in leaves.items()}


def _is_wide(tensor: Tensor) -> bool:
    return tensor.dtype in (torch.float32, torch.float64)


def _widened(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.is_floating_point() else tensor


def _nudged(salt: str, tensor: Tensor) -> Tensor:
    """Each value moved by up to two units in its last place, up or down; zeros stay."""
    if not _is_wide(tensor):
        return tensor
    rng = torch.Generator(tensor.device)
    rng.manual_seed(int.from_bytes(hashlib.sha256(salt.encode()).digest()[:7], "little"))
    shift = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    eps = torch.finfo(tensor.dtype).eps
    shift.uniform_(-_NUDGE * eps, _NUDGE * eps, generator=rng).mul_(tensor)
    return _within(shift.nan_to_num_(0.0, 0.0, 0.0).add_(tensor), tensor)


def _moved(tensor: Tensor, units: int) -> Tensor:
    """Each value moved by so many units in its last place."""
    if not _is_wide(tensor):
        return tensor
    return _within(tensor * (1 + units * torch.finfo(tensor.dtype).eps), tensor)


def _lifted(tensor: Tensor) -> Tensor:
    """Each value moved by two units in its last place towards positive infinity.

    What a sum of numbers of both signs owes to rounding grows with the numbers; moved at random
    they would make up for each other, as the sum's own terms do.
    """
    if not _is_wide(tensor):
        return tensor
    shift = tensor.abs().mul_(_NUDGE * torch.finfo(tensor.dtype).eps).nan_to_num_(0.0, 0.0, 0.0)
    return _within(shift.add_(tensor), tensor)


def _within(moved: Tensor, tensor: Tensor) -> Tensor:
    """A probability above 1 is out of some operators' domain: on a GPU that ends the process."""
    low, high = torch.aminmax(tensor)
    return moved.clamp_(0, 1) if low >= 0 and high <= 1 else moved


def _rounded(tensor: Tensor, how: Callable[[Tensor], Tensor]) -> Tensor:
    return how(tensor.float()).to(tensor.dtype) if _is_wide(tensor) else tensor


def to_tf32(tensor: Tensor) -> Tensor:
    """A float32 tensor rounded to 10 mantissa bits, to nearest, ties to even."""
    bits = tensor.contiguous().view(torch.int32)
    odd = (bits >> 13) & 1
    rounded = ((bits + (0xFFF + odd)) & ~0x1FFF).view(torch.float32)
    return torch.where(torch.isfinite(tensor), rounded, tensor)


def to_half(tensor: Tensor) -> Tensor:
    """A float32 tensor rounded to float16 (overflowing to infinity)."""
    return tensor.half().float()


def _same_finiteness(tensor: Tensor, rounded: Tensor) -> bool:
    if not _is_wide(tensor):
        return True
    return bool((torch.isfinite(tensor) == torch.isfinite(rounded)).all())
