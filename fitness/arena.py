"""The judge's side of the shared buffers: what the candidate reads and writes, as tensors."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import numpy
import torch

from cuda_sandbox.buffers import WORKSPACE, Buffers, Region
from cuda_sandbox.report import CandidateFailure, Status
from cuda_sandbox.signature import Signature, TensorSpec
from fitness.inputs import poison

_GLIMPSED = 200


class Arena:
    """One set of buffers, shared with every worker that is bound to it.

    Arguments are rewritten and outputs poisoned before each call; ``close`` frees the memory,
    after which no tensor taken from here may be used.
    """

    def __init__(self, signature: Signature, device: torch.device, buffers: Buffers) -> None:
        self.signature = signature
        self.device = device
        self.buffers = buffers
        self._tensors = {spec.name: self._typed(spec) for spec in signature.tensors}
        self._workspace: torch.Tensor | None = None
        self._places = {spec.name: _places(self._tensors[spec.name]) for spec in signature.outputs}

    def _bytes(self, region: Region) -> torch.Tensor:
        if self.device.type == "cpu":
            return torch.from_numpy(numpy.asarray(region))
        return torch.as_tensor(region, device=self.device)

    def _typed(self, spec: TensorSpec) -> torch.Tensor:
        raw = self._bytes(self.buffers.region(spec.name))
        return raw.view(getattr(torch, spec.dtype)).view(spec.shape)

    def write(self, contents: Mapping[str, torch.Tensor]) -> None:
        """Put ``contents`` (by argument name) into the arguments; poison outputs and workspace."""
        for spec in self.signature.arguments:
            self._tensors[spec.name].copy_(contents[spec.name])
        for spec in self.signature.outputs:
            poison(self._tensors[spec.name])
        if self._workspace is not None:
            poison(self._workspace)
        self.settle()

    def take_workspace(self) -> None:
        """Poison the workspace too from now on: the one that a worker was just bound with."""
        region = self.buffers.region(WORKSPACE)
        self._workspace = self._bytes(region) if region.nbytes else None

    def settle(self) -> None:
        """Wait until the device has done what this process asked of it."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def outputs(self) -> tuple[torch.Tensor, ...]:
        """Copies of the outputs, out of the candidate's reach."""
        return tuple(self._tensors[spec.name].clone() for spec in self.signature.outputs)

    def glimpse(self) -> tuple[torch.Tensor, ...]:
        """The outputs at a few places that no candidate knows; quick enough to be done at once."""
        return tuple(self._tensors[name].view(-1)[at] for name, at in self._places.items())

    def inspect(
        self, contents: Mapping[str, torch.Tensor], glimpse: tuple[torch.Tensor, ...]
    ) -> None:
        """Raise CandidateFailure(HACK) where an argument changed or a guard zone was written.

        Also where an output is no longer what ``glimpse`` saw when the call had just returned.
        """
        if not all(map(_same_bytes, self.glimpse(), glimpse)):
            raise CandidateFailure(Status.HACK, "wrote to its outputs after launch had returned")
        for spec in self.signature.arguments:
            if not _same_bytes(self._tensors[spec.name], contents[spec.name]):
                raise CandidateFailure(Status.HACK, f"changed its {spec.role} {spec.name}")
        damaged = self.buffers.damaged()
        if damaged:
            raise CandidateFailure(Status.HACK, f"wrote out of bounds of {', '.join(damaged)}")

    def close(self) -> None:
        """Free the buffers."""
        self._tensors.clear()
        self._workspace = None
        self.buffers.close()


def _places(tensor: torch.Tensor) -> torch.Tensor:
    """Indices into the flat ``tensor``: its end, where work often ends, and anywhere."""
    count, chance = tensor.numel(), secrets.SystemRandom()
    found = [max(0, count - 1), *(chance.randrange(count) for _ in range(_GLIMPSED))]
    return torch.tensor(found if count else [], dtype=torch.int64, device=tensor.device)


def _same_bytes(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left.numel() == 0:
        return True
    # The widest integer that divides the size: comparing bytes one by one takes eight times longer.
    width = next(w for w in (8, 4, 2, 1) if left.nbytes % w == 0)
    word = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}[width]
    words = (tensor.contiguous().view(-1).view(word) for tensor in (left, right))
    return torch.equal(*words)
