"""Recurrent layers without data: one step's worth of work instead of every time step's.

Under fake tensors PyTorch unrolls an LSTM over all its time steps in Python, which takes minutes
to learn a shape. Here a layer is its two matrix products over all steps at once: the same shapes,
types and operation count.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._dispatch.python import enable_python_dispatcher

_KEY = DispatchKey.CompositeImplicitAutograd
_LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")


@contextlib.contextmanager
def unrolled_at_once() -> Iterator[None]:
    """Within, recurrent layers on tensors without data are not unrolled."""
    operators: list[Any] = [getattr(torch.ops.aten, name).input for name in _LAYERS]
    saved = [operator.py_kernels.get(_KEY) for operator in operators]
    for operator in operators:
        _install(operator, _at_once)
    try:
        with enable_python_dispatcher():
            yield
    finally:
        for operator, kernel in zip(operators, saved, strict=True):
            _install(operator, kernel)


def _install(operator: Any, kernel: Any) -> None:
    operator.py_kernels.pop(_KEY, None)
    if kernel is not None:
        operator.py_kernels[_KEY] = kernel
    operator._dispatch_cache.clear()


def _at_once(
    x: Tensor,
    hx: Tensor | Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,  # noqa: ARG001  # the operators' own signature
    train: bool,  # noqa: ARG001
    bidirectional: bool,
    batch_first: bool,  # noqa: ARG001
) -> tuple[Tensor, ...]:
    states = [hx] if isinstance(hx, Tensor) else list(hx)
    width = states[0].shape[-1]
    projected = len(states) == 2 and width != states[1].shape[-1]
    stride = (4 if has_biases else 2) + projected
    weights = iter(range(0, len(params), stride))
    for _ in range(num_layers):
        directions = []
        for _ in range(2 if bidirectional else 1):
            at = next(weights)
            _ = x.reshape(-1, x.shape[-1]) @ params[at].t()
            hidden = x.new_empty((*x.shape[:-1], width))
            _ = hidden.reshape(-1, width) @ params[at + 1].t()
            directions.append(hidden)
        x = torch.cat(directions, dim=-1)
    return (x, *(state.clone() for state in states))
