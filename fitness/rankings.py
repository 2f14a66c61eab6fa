"""Outputs that are indices (argmax, topk, sort, pooling): judged by the values they pick.

So ties pass: any index is right whose value is the one that the reference picked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fitness.dispatch import Mode

# operation -> (position of the dimension among its arguments, its default)
_ALONG: dict[str, tuple[int, int | None]] = {
    "argmax": (1, None),
    "argmin": (1, None),
    "max": (1, None),
    "min": (1, None),
    "topk": (2, -1),
    "sort": (1, -1),
    "kthvalue": (2, -1),
    "median": (1, None),
    "nanmedian": (1, None),
    "cummax": (1, None),
    "cummin": (1, None),
}
_DISTINCT = frozenset({"topk", "sort"})
# operation -> how many last dimensions an index counts through
_POOLS = {
    "max_pool2d_with_indices": 2,
    "max_pool3d_with_indices": 3,
    "adaptive_max_pool2d": 2,
    "adaptive_max_pool3d": 3,
}


@dataclass(frozen=True)
class Ranking:
    """``values`` (float) were ranked along ``dim``, and ``count`` indices of each came out.

    ``distinct``: whether no index may come twice. ``whole``: whether the values are whole numbers,
    which are equal or not, and never nearly so.
    """

    values: Tensor
    dim: int
    count: int
    indices: Tensor
    distinct: bool = True
    whole: bool = False

    def picked(self, output: Tensor) -> Tensor | None:
        """The values at the indices that ``output`` holds; None if they are no such indices."""
        size = self.values.shape[self.dim]
        if bool(((output < 0) | (output >= size)).any()):
            return None
        shape = list(self.values.shape)
        shape[self.dim] = self.count
        index = output.reshape(shape).long()
        if self.distinct and self._has_twins(index):
            return None
        return self.values.gather(self.dim, index)

    def _has_twins(self, index: Tensor) -> bool:
        ranked = index.sort(dim=self.dim).values
        return self.count > 1 and bool((ranked.diff(dim=self.dim) == 0).any())

    def explains(self, output: Tensor) -> bool:
        """Whether ``output`` (of any integer type and shape) holds these very indices."""
        if output.dtype is torch.bool or output.numel() != self.indices.numel():
            return False
        return torch.equal(output.reshape(-1).long(), self.indices.reshape(-1))


class Recorder(Mode):
    """Notes every ranking that runs inside it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types here
        self._rankings: list[Ranking] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = func._overloadpacket.__name__
        if (name in _ALONG or name in _POOLS) and isinstance(args[0], Tensor):
            self._note(name, args, kwargs, out)
        return out

    def _note(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        indices = out if isinstance(out, Tensor) else out[1]
        if indices.dtype is not torch.int64:
            return  # max() without a dimension
        values, dim = _ranked(name, args, kwargs)
        if values.ndim == 0:
            return
        count = indices.numel() * values.shape[dim] // max(1, values.numel())
        whole = not values.is_floating_point()
        values = values.double() if whole else values
        self._rankings.append(Ranking(values, dim, count, indices, name in _DISTINCT, whole))

    def find(self, output: Tensor) -> Ranking | None:
        """The ranking whose indices ``output`` is, if one of them."""
        return next((ranking for ranking in self._rankings if ranking.explains(output)), None)


def _ranked(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, int]:
    """The values that an operation ranks, and the dimension that its indices count along."""
    values: Tensor = args[0]
    if name in _POOLS:
        return values.flatten(-_POOLS[name]), values.ndim - _POOLS[name]
    position, default = _ALONG[name]
    dim = args[position] if len(args) > position else kwargs.get("dim", default)
    if dim is None:
        return values.reshape(-1), 0
    return values, dim % max(1, values.ndim)
