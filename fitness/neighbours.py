"""Other programs on a GPU: what they disturb must not be held against a kernel."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from cuda_sandbox.nvml import Gpu, NvmlError

if TYPE_CHECKING:
    import torch

_FORGET_S = 1.1
"""The driver tells of up to the last second: until then our own work is in its figure."""

_LOOKS, _APART_S = 4, 0.2


def at_work(device: torch.device, gpu: Callable[[str], Gpu] = Gpu) -> bool:
    """Whether others work on a GPU, looked at while nothing of ours does.

    That takes two seconds, or no time where no other process than this one has the GPU open. False
    where the driver does not tell.
    """
    import torch

    try:
        watched = gpu(f"GPU-{torch.cuda.get_device_properties(device).uuid}")
    except NvmlError:
        return False
    if watched.processes() == 1:
        return False
    time.sleep(_FORGET_S)
    return any(_seen(watched) for _ in range(_LOOKS))


def _seen(gpu: Gpu) -> bool:
    time.sleep(_APART_S)
    return bool(gpu.busy())
