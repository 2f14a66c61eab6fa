"""What ran in a call: the operators that PyTorch dispatched, the kernels that the device saw.

All of it is told by the candidate's own process: evidence, no proof.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]  # not declared there

from fitness.dispatch import Mode


class Operators(Mode):
    """Notes each operator that goes through PyTorch's dispatcher, C++ extensions' calls too."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types here
        self._seen: dict[str, int] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = str(getattr(func, "_schema", func)).partition("(")[0]
        self._seen[name] = self._seen.get(name, 0) + 1
        return func(*args, **(kwargs or {}))

    def names(self) -> list[str]:
        """``aten::softmax`` and the like, in the order of their first call."""
        return list(self._seen)


def device_kernels(call: Callable[[], object]) -> tuple[list[str], str]:
    """The names of what the GPU ran in ``call``, copies and fills of memory included.

    Where the profiler does not work here, no names, and why; ``call`` has been made all the same.
    """
    # torch.profiler would do the same, after importing all of torch's compiler
    profile = torch.autograd.profiler.profile(use_device="cuda", use_kineto=True, use_cpu=False)
    try:
        profile.__enter__()
    except (RuntimeError, OSError) as error:
        call()
        return [], f"the profiler did not start: {error}"
    call()
    torch.cuda.synchronize()
    profile.__exit__(None, None, None)
    events = profile.function_events or []
    names = [event.name for event in events if event.device_type == DeviceType.CUDA]
    return list(dict.fromkeys(names)), "" if names else "the profiler saw nothing"
