"""Modes that a candidate leaves switched on: they see every later call of PyTorch, ours too."""

from __future__ import annotations

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from cuda_sandbox.protocol import Failure
from fitness.module.runner.orders import Refused


def require_none() -> None:
    """Raise Refused(FORBIDDEN) if one is on: it could do forward's work when the clock has stopped.

    What torch.set_default_device leaves is no harm.
    """
    if not torch._C._len_torch_dispatch_stack() and not torch._C._len_torch_function_stack():
        return
    modes = (*_get_current_dispatch_mode_stack(), *_get_current_function_mode_stack())
    for mode in modes:
        if type(mode) is not DeviceContext:
            kind = type(mode).__qualname__
            raise Refused(
                Failure.FORBIDDEN,
                f"leaves a mode switched on ({kind}), which comes between later calls of PyTorch: "
                "close it before forward returns",
            )
