"""Arguments that nobody has seen before, for every timed call, at the price of a copy.

A kernel that remembers results by a fingerprint of its arguments is right on every content and
costs nothing on the second call with one. So a content is never used twice as it is: its values
are rolled and scaled by secret amounts, for each tensor by others.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import torch
from torch import Tensor

from fitness.domains import Domain, Kind

_LEAST_SCALE = 0.9
"""Values are scaled towards zero, so that what lies between two bounds around it still does."""


def freshened(
    leaves: Mapping[str, Tensor], domains: Mapping[str, Domain], rng: random.Random
) -> dict[str, Tensor]:
    """``leaves`` with all real values moved and changed; the very same tensors where that is not
    possible within their domain (masks, indices, probabilities)."""
    return {
        name: _moved(leaf, domains[name], rng) if _movable(leaf, domains[name]) else leaf
        for name, leaf in leaves.items()
    }


def _movable(leaf: Tensor, domain: Domain) -> bool:
    return leaf.is_floating_point() and domain.kind in (Kind.REAL, Kind.UNIT)


def _moved(leaf: Tensor, domain: Domain, rng: random.Random) -> Tensor:
    scale = rng.uniform(_LEAST_SCALE, 1.0)
    if domain.symmetric or domain.pattern is not None or leaf.numel() < 2:
        return leaf * scale
    flat = leaf.reshape(-1)
    step = rng.randrange(1, flat.numel())
    return torch.cat((flat[step:], flat[:step])).mul_(scale).view(leaf.shape)
