"""Outputs that are indices (argmax, topk, sort): judged by the values they pick, so ties pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fitness.dispatch import Mode

# operation -> (position of the dimension among its arguments, its default)
_RANKINGS: dict[str, tuple[int, int | None]] = {
    "argmax": (1, None),
    "argmin": (1, None),
    "max": (1, None),
    "min": (1, None),
    "topk": (2, -1),
    "sort": (1, -1),
}


@dataclass(frozen=True)
class Ranking:
    """``values`` (float) were ranked along ``dim``, and ``count`` indices of each came out."""

    values: Tensor
    dim: int
    count: int
    indices: Tensor

    def picked(self, output: Tensor) -> Tensor | None:
        """The values at the indices that ``output`` holds; None if they are no such indices."""
        size = self.values.shape[self.dim]
        if bool(((output < 0) | (output >= size)).any()):
            return None
        shape = list(self.values.shape)
        shape[self.dim] = self.count
        index = output.reshape(shape)
        if self.count > 1 and bool((index.sort(dim=self.dim).values.diff(dim=self.dim) == 0).any()):
            return None
        return self.values.gather(self.dim, index)


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
        if name in _RANKINGS and isinstance(args[0], Tensor) and args[0].is_floating_point():
            self._note(name, args, kwargs, out)
        return out

    def _note(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        position, dim = _RANKINGS[name]
        dim = args[position] if len(args) > position else kwargs.get("dim", dim)
        indices = out if isinstance(out, Tensor) else out[1]
        if indices.dtype is not torch.int64:
            return  # max() without a dimension
        values = args[0].reshape(-1) if dim is None else args[0]
        if values.ndim == 0:
            return
        dim = 0 if dim is None else dim % values.ndim
        count = indices.numel() * values.shape[dim] // max(1, values.numel())
        self._rankings.append(Ranking(values, dim, count, indices))

    def find(self, output: Tensor) -> Ranking | None:
        """The ranking whose indices ``output`` is, if one of them."""
        for ranking in self._rankings:
            same = ranking.indices.data_ptr() == output.data_ptr()
            if same and ranking.indices.numel() == output.numel() and output.is_contiguous():
                return ranking
        return None
