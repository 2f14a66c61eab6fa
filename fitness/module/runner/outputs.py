"""What a module returns: checked, copied to where the judge looks, and wiped where it lay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from cuda_sandbox.protocol import Failure
from fitness.module.runner import modes
from fitness.module.runner.orders import Refused, Spec
from fitness.module.runner.owed import owed
from fitness.module.runner.weights import held


class Outputs:
    """The outputs of one task's modules."""

    def __init__(self, specs: Sequence[Spec], device: torch.device) -> None:
        self._specs = specs
        self._device = device

    def take(
        self, result: Any, targets: Sequence[Tensor], given: Sequence[Tensor] = ()
    ) -> list[Tensor]:
        """Copy what forward returned into ``targets``; the tensors it returned.

        ``given`` are inputs and parameters. Raises Refused where a tensor is not exactly what it
        must be, or owes work that the reference's does not. Strided ones are welcome.
        """
        modes.require_none()
        found = list(flat(result))
        if len(found) != len(self._specs):
            wanted = ", ".join(spec.said for spec in self._specs)
            reason = f"forward returns {len(found)} tensors, not {len(self._specs)}: {wanted}"
            raise Refused(Failure.WRONG_OUTPUT, reason)
        for tensor, spec, target in zip(found, self._specs, targets, strict=True):
            self._check(tensor, spec)
            _require_whole(tensor, spec, target, given)
            target.copy_(tensor)
        return found

    def _check(self, tensor: Any, spec: Spec) -> None:
        if type(tensor) is not Tensor:
            kind = type(tensor)
            raise Refused(
                Failure.FORBIDDEN,
                f"{spec.name} is a {kind.__module__}.{kind.__qualname__}, not a plain torch.Tensor",
            )
        if tensor.layout is not torch.strided or tensor.device.type != self._device.type:
            reason = f"{spec.name} is a {tensor.layout} tensor on {tensor.device}, not a dense one"
            raise Refused(Failure.WRONG_OUTPUT, f"{reason} on {self._device.type}")
        dtype = str(tensor.dtype).removeprefix("torch.")
        if tuple(tensor.shape) != spec.shape or dtype != spec.dtype:
            got = f"{dtype}[{', '.join(map(str, tensor.shape))}]"
            raise Refused(Failure.WRONG_OUTPUT, f"{got} is returned where {spec.said} is expected")


def _require_whole(tensor: Tensor, spec: Spec, plain: Tensor, given: Sequence[Tensor]) -> None:
    for way, words in owed(tensor, plain, given).items():
        if way not in spec.owes:
            reason = f"{spec.name} {words}, which the reference's does not"
            remedy = "return a tensor of its own, written whole before forward returns"
            raise Refused(Failure.WRONG_OUTPUT, f"{reason}: {remedy}")


def flat(result: Any) -> Iterable[Any]:
    """Nested lists and tuples flattened, None left out, as for the reference."""
    if isinstance(result, (list, tuple)):
        for item in result:
            if item is not None:
                yield from flat(item)
    else:
        yield result


def wipe(tensors: Iterable[Tensor], spared: Iterable[Tensor], model: nn.Module) -> None:
    """Overwrite the memory behind ``tensors``: no later call is to find an answer there.

    Spared is what shares memory with ``spared`` or with what the model holds.
    """
    kept = {_where(tensor) for tensor in spared}
    kept |= {_where(one.tensor) for one in held(model)}
    for tensor in tensors:
        if _where(tensor) not in kept:
            erase(tensor)


def erase(tensor: Tensor) -> None:
    """Fill the whole storage behind ``tensor`` with bytes that read as NaN in every float type."""
    memory = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    memory.set_(tensor.untyped_storage())
    memory.fill_(0xFF)


def _where(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def blank(specs: Sequence[Spec], device: torch.device) -> tuple[Tensor, ...]:
    """Tensors as ``specs`` say, for a call of nothing to return."""
    return tuple(
        torch.zeros(spec.shape, dtype=getattr(torch, spec.dtype), device=device) for spec in specs
    )
