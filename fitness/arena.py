"""The judge's side of the shared buffers: what the candidate reads and writes, as tensors."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import numpy
import torch
from torch import Tensor

from cuda_sandbox.buffers import WORKSPACE, Buffers, Region
from cuda_sandbox.report import CandidateFailure, Status
from cuda_sandbox.signature import Signature, TensorSpec
from fitness.inputs import poison
from fitness.measure import unravel

_GLIMPSED = 200
_SETS_BYTES, _MOST_SETS = 128 << 20, 32
"""On a GPU small tensors are there several times over: a row of calls on all of them has arguments
of its own for each, and finds little in the L2."""


def sets_of(signature: Signature, device: torch.device) -> int:
    """How many sets of buffers a kernel is called on in turns."""
    if device.type == "cpu":
        return 1
    nbytes = sum(spec.nbytes for spec in signature.tensors)
    return max(1, min(_MOST_SETS, _SETS_BYTES // max(1, nbytes)))


class Arena:
    """Sets of buffers, shared with every worker that is bound to them; ``at`` is a set's number.

    Arguments are rewritten and outputs poisoned before each call; ``close`` frees the memory,
    after which no tensor taken from here may be used.
    """

    def __init__(self, signature: Signature, device: torch.device, *sets: Buffers) -> None:
        self.signature = signature
        self.device = device
        self.sets = sets
        self._views = [_View(signature, device, buffers) for buffers in sets]

    def __len__(self) -> int:
        return len(self.sets)

    @property
    def buffers(self) -> Buffers:
        """The first set."""
        return self.sets[0]

    def alone(self) -> Arena:
        """An arena of the first set only, which is this one's; it is not to be closed."""
        return Arena(self.signature, self.device, self.buffers)

    def write(self, contents: Mapping[str, Tensor], at: int = 0) -> None:
        """Put ``contents`` (by argument name) into the arguments; poison outputs and workspace."""
        self._views[at].write(contents)
        self.settle()

    def take_workspace(self) -> None:
        """Poison the workspaces too from now on: those that a worker was just bound with."""
        for view in self._views:
            view.take_workspace()

    def settle(self) -> None:
        """Wait until the device has done what this process asked of it."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def outputs(self, at: int = 0) -> tuple[Tensor, ...]:
        """Copies of the outputs, out of the candidate's reach."""
        return tuple(output.clone() for output in self._views[at].outputs)

    def glimpse(self, at: int = 0) -> tuple[Tensor, ...]:
        """The outputs at a few places that no candidate knows; quick enough to be done at once."""
        return self._views[at].glimpse()

    def unwritten(self, at: int = 0) -> str:
        """Which output still holds what was put there before the call; empty if none does."""
        return self._views[at].unwritten()

    def inspect(
        self, contents: Mapping[str, Tensor], glimpse: tuple[Tensor, ...], at: int = 0
    ) -> None:
        """Raise CandidateFailure(HACK) where an argument changed or a guard zone was written.

        Also where an output is no longer what ``glimpse`` saw when the call had just returned.
        """
        view = self._views[at]
        if not all(map(same_bytes, view.glimpse(), glimpse)):
            raise CandidateFailure(Status.HACK, "wrote to its outputs after launch had returned")
        for spec in self.signature.arguments:
            if not same_bytes(view.tensors[spec.name], contents[spec.name]):
                raise CandidateFailure(Status.HACK, f"changed its {spec.role} {spec.name}")
        damaged = view.buffers.damaged()
        if damaged:
            raise CandidateFailure(Status.HACK, f"wrote out of bounds of {', '.join(damaged)}")

    def close(self) -> None:
        """Free the buffers."""
        self._views.clear()
        for buffers in self.sets:
            buffers.close()


class _View:
    """One set of buffers as tensors."""

    def __init__(self, signature: Signature, device: torch.device, buffers: Buffers) -> None:
        self.buffers = buffers
        self.tensors = {
            spec.name: _typed(spec, buffers.region(spec.name), device) for spec in signature.tensors
        }
        self.outputs = [self.tensors[spec.name] for spec in signature.outputs]
        self._arguments = [spec.name for spec in signature.arguments]
        self._names = [spec.name for spec in signature.outputs]
        self._device = device
        self._workspace: Tensor | None = None
        self._places = [_places(output) for output in self.outputs]
        self._poisons = [_poison_for(output.dtype) for output in self.outputs]

    def write(self, contents: Mapping[str, Tensor]) -> None:
        for name in self._arguments:
            self.tensors[name].copy_(contents[name])
        for output, value in zip(self.outputs, self._poisons, strict=True):
            _words(output, output.element_size()).fill_(value)
        if self._workspace is not None:
            poison(self._workspace)

    def take_workspace(self) -> None:
        region = self.buffers.region(WORKSPACE)
        self._workspace = _bytes(region, self._device) if region.nbytes else None

    def glimpse(self) -> tuple[Tensor, ...]:
        pairs = zip(self.outputs, self._places, strict=True)
        return tuple(output.view(-1)[at] for output, at in pairs)

    def unwritten(self) -> str:
        for name, output, value in zip(self._names, self.outputs, self._poisons, strict=True):
            if output.element_size() == 1:
                continue  # any byte may be right
            left = _words(output, output.element_size()) == value
            if count := int(left.sum()):
                where = unravel(int(left.byte().argmax()), tuple(output.shape))
                first = f", the first at [{', '.join(map(str, where))}]" if where else ""
                return f"left {count} of {output.numel()} elements of {name} unwritten{first}"
        return ""


def _typed(spec: TensorSpec, region: Region, device: torch.device) -> Tensor:
    return _bytes(region, device).view(getattr(torch, spec.dtype)).view(spec.shape)


def _bytes(region: Region, device: torch.device) -> Tensor:
    if device.type == "cpu":
        return torch.from_numpy(numpy.asarray(region))
    return torch.as_tensor(region, device=device)


def _poison_for(dtype: torch.dtype) -> int:
    """Bits that no kernel writes by chance: a NaN of our own for floats, else a secret number."""
    size = 8 * dtype.itemsize
    if not dtype.is_floating_point:
        return secrets.randbits(size - 1) | 2  # a byte of 2 or more is no bool
    mantissa = {torch.float64: 52, torch.float32: 23, torch.float16: 10}.get(dtype, 7)
    quiet = ((1 << (size - 1)) - 1) ^ ((1 << (mantissa - 1)) - 1)
    return quiet | secrets.randbits(mantissa - 1) | 1


def _places(tensor: Tensor) -> Tensor:
    """Indices into the flat ``tensor``: its end, where work often ends, and anywhere."""
    count, chance = tensor.numel(), secrets.SystemRandom()
    found = [max(0, count - 1), *(chance.randrange(count) for _ in range(_GLIMPSED))]
    return torch.tensor(found if count else [], dtype=torch.int64, device=tensor.device)


def same_bytes(left: Tensor, right: Tensor) -> bool:
    """Whether two tensors of one size are equal to the bit, NaN included."""
    if left.numel() == 0:
        return True
    # The widest integer that divides the size: comparing bytes one by one takes eight times longer.
    width = next(w for w in (8, 4, 2, 1) if left.nbytes % w == 0)
    return torch.equal(_words(left, width), _words(right, width))


def _words(tensor: Tensor, width: int) -> Tensor:
    """The tensor's bits as flat integers of ``width`` bytes."""
    word = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}[width]
    return tensor.contiguous().view(-1).view(word)
