"""Arguments that nobody has seen before, for every timed call, at the price of a copy.

A kernel that remembers results by a fingerprint of its arguments is right on every content and
costs nothing on the second call with one. So a content is never used twice as it is: real values
are mixed with themselves, rolled and scaled by secret amounts, for each tensor by others. Two rolls
are added up, so that not even ratios of neighbours are those of the content; integers and the like
are rolled alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from fitness.domains import Domain, Kind

_LEAST_SHARE = 0.9
"""Shares add up to less than 1, so that what lies between two bounds around zero still does."""


def freshened(
    leaves: Mapping[str, Tensor], domains: Mapping[str, Domain], rng: random.Random
) -> dict[str, Tensor]:
    """``leaves`` with all values moved, real ones changed too; the very same tensors where that is
    not possible within their domain (masks, matrices of a pattern, sorted offsets)."""
    return {name: _moved(leaf, domains[name], rng) for name, leaf in leaves.items()}


def _moved(leaf: Tensor, domain: Domain, rng: random.Random) -> Tensor:
    if leaf.numel() < 2:
        return leaf * rng.uniform(_LEAST_SHARE, 1.0) if _is_real(leaf, domain) else leaf
    if _is_real(leaf, domain):
        return _mixed(leaf, domain, rng)
    return _ROLLS.get(domain.kind, _kept)(leaf, domain, rng)


def _is_real(leaf: Tensor, domain: Domain) -> bool:
    return leaf.is_floating_point() and domain.kind in (Kind.REAL, Kind.UNIT)


def _mixed(leaf: Tensor, domain: Domain, rng: random.Random) -> Tensor:
    """``(1-e) s x[i+a] + e s x[i+b]``, all secret; only scaled where the tensor has a form."""
    if domain.symmetric or domain.pattern is not None:
        return leaf * rng.uniform(_LEAST_SHARE, 1.0)
    flat, scale = leaf.reshape(-1), rng.uniform(_LEAST_SHARE, 1.0)
    share = rng.uniform(_LEAST_SHARE, 1.0)
    first, second = (rng.randrange(1, flat.numel()) for _ in range(2))
    mixed = torch.empty_like(flat)
    torch.mul(flat[first:], share * scale, out=mixed[:-first])
    torch.mul(flat[:first], share * scale, out=mixed[-first:])
    mixed[:-second].add_(flat[second:], alpha=(1 - share) * scale)
    mixed[-second:].add_(flat[:second], alpha=(1 - share) * scale)
    return mixed.view(leaf.shape)


def _kept(leaf: Tensor, domain: Domain, rng: random.Random) -> Tensor:
    del domain, rng
    return leaf


def _rolled(leaf: Tensor, domain: Domain, rng: random.Random) -> Tensor:
    """Values that have nothing to do with their neighbours may lie anywhere."""
    if domain.ordered:
        return leaf
    return leaf.reshape(-1).roll(rng.randrange(1, leaf.numel())).view(leaf.shape)


def _rolled_along(leaf: Tensor, domain: Domain, rng: random.Random) -> Tensor:
    """Values that belong together along a dimension: rows of a simplex, permutations."""
    dim = domain.dim if domain.kind is Kind.SIMPLEX else -1
    return leaf.roll(rng.randrange(leaf.shape[dim]), dims=dim)


_ROLLS: Mapping[Kind, Callable[[Tensor, Domain, random.Random], Tensor]] = {
    Kind.INTEGER: _rolled,
    Kind.CATEGORY: _rolled,
    Kind.PERMUTATION: _rolled_along,
    Kind.SIMPLEX: _rolled_along,
}
