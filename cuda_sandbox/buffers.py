"""The memory that judge and worker share: one allocation per tensor, between canaries.

``HostBuffers`` are memory files; a worker maps the inputs read-only, and cannot do otherwise.
``CudaBuffers`` (cuda_buffers.py) are device allocations shown to the worker through CUDA IPC.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cuda_sandbox.protocol import Flag, Op, Request
from cuda_sandbox.tensor import Role, TensorSpec

ALIGNMENT = 256
WORKSPACE = "workspace"


@dataclass(frozen=True, slots=True)
class Handover:
    """What a worker is told of one buffer; ``descriptor`` travels with it if there is one."""

    request: Request
    descriptor: int | None = None


class Region:
    """Bytes of shared memory that numpy (or torch, on a GPU) can look at without a copy."""

    def __init__(self, address: int, nbytes: int, keeper: object) -> None:
        self.address = address
        self.nbytes = nbytes
        self._keeper = keeper  # the memory lives as long as anything looks at it


class HostRegion(Region):
    """``numpy.asarray(region)`` is a ``(nbytes,)`` uint8 array over the memory itself."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return _interface(self.address, self.nbytes)


class CudaRegion(Region):
    """``torch.as_tensor(region)`` is a ``(nbytes,)`` uint8 tensor over the memory itself."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return _interface(self.address, self.nbytes)


def _interface(address: int, nbytes: int) -> dict[str, Any]:
    return {"shape": (nbytes,), "typestr": "|u1", "data": (address, False), "version": 3}


class Buffers(ABC):
    """Shared memory for a signature's tensors in call order, then the workspace.

    Made once per task and used for one worker after another. Only inputs are safe from the worker
    (on the host); everything else may be written to whenever it runs.
    """

    def __init__(self, tensors: Sequence[TensorSpec]) -> None:
        self.tensors = tuple(tensors)

    @abstractmethod
    def set_workspace(self, nbytes: int) -> None:
        """Make the workspace this large (its content is undefined).

        Raises:
            MemoryError: there is not that much; it is empty then.
        """

    @abstractmethod
    def region(self, name: str) -> Region:
        """The bytes of one tensor, or of ``"workspace"``.

        Raises:
            KeyError: there is no such tensor.
        """

    @abstractmethod
    def guards(self, name: str) -> tuple[Region, Region]:
        """The canary bytes just before and just after a tensor."""

    @abstractmethod
    def damaged(self) -> tuple[str, ...]:
        """The tensors whose canaries were changed; all canaries are fresh afterwards."""

    @abstractmethod
    def handovers(self) -> list[Handover]:
        """What the worker is told, in the order of launch's arguments, workspace last."""

    @abstractmethod
    def close(self) -> None:
        """Give the memory back."""

    @property
    def nbytes(self) -> int:
        """The tensors' sizes together, without the workspace."""
        return sum(tensor.nbytes for tensor in self.tensors)


class HostBuffers(Buffers):
    """Memory files, each laid out so that the tensor ends (but for alignment) where it ends."""

    def __init__(self, tensors: Sequence[TensorSpec]) -> None:
        super().__init__(tensors)
        self._memory = {
            tensor.name: _MemoryFile(tensor.nbytes, writable=tensor.role is Role.OUTPUT)
            for tensor in self.tensors
        }
        self._workspace = _MemoryFile(0, writable=True)

    def set_workspace(self, nbytes: int) -> None:
        """Make the workspace this large; the old one is kept if it already is."""
        if nbytes != self._workspace.nbytes:
            self._workspace.close()
            self._workspace = _MemoryFile(nbytes, writable=True)

    def region(self, name: str) -> HostRegion:
        """The bytes of one tensor, or of ``"workspace"``."""
        return self._find(name).region()

    def guards(self, name: str) -> tuple[HostRegion, HostRegion]:
        """The canary bytes before and after a tensor."""
        return self._find(name).guards()

    def damaged(self) -> tuple[str, ...]:
        """The tensors whose canaries were changed."""
        named = {**self._memory, WORKSPACE: self._workspace}
        return tuple(name for name, memory in named.items() if memory.repair())

    def handovers(self) -> list[Handover]:
        """The memory files."""
        found = [*self._memory.values(), self._workspace]
        return [memory.handover(index) for index, memory in enumerate(found)]

    def close(self) -> None:
        """Give the memory back (once no array looks at it any more)."""
        for memory in [*self._memory.values(), self._workspace]:
            memory.close()

    def _find(self, name: str) -> _MemoryFile:
        return self._workspace if name == WORKSPACE else self._memory[name]


class _MemoryFile:
    """One tensor in a memory file: canary, tensor, canary up to the end of the last page."""

    def __init__(self, nbytes: int, *, writable: bool) -> None:
        self.nbytes = nbytes
        padded = _round_up(nbytes, ALIGNMENT)
        self.span = _round_up(padded + ALIGNMENT, mmap.PAGESIZE)
        self.offset = self.span - padded
        self._writable = writable
        self._descriptor = os.memfd_create("tensor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self._descriptor, self.span)
        self._mapping = mmap.mmap(self._descriptor, self.span)
        self._bytes = (ctypes.c_ubyte * self.span).from_buffer(self._mapping)
        self._canaries = [secrets.token_bytes(region.nbytes) for region in self.guards()]
        self.repair()
        self._seal()

    def _seal(self) -> None:
        """Nobody resizes it (that would be a bus error here); nobody else writes to an input."""
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
        if not self._writable:
            seals |= 0x10  # F_SEAL_FUTURE_WRITE: our own mapping stays writable
        fcntl.fcntl(self._descriptor, fcntl.F_ADD_SEALS, seals | fcntl.F_SEAL_SEAL)

    def region(self) -> HostRegion:
        return self._part(self.offset, self.nbytes)

    def guards(self) -> tuple[HostRegion, HostRegion]:
        end = self.offset + self.nbytes
        return self._part(0, self.offset), self._part(end, self.span - end)

    def _part(self, offset: int, nbytes: int) -> HostRegion:
        return HostRegion(ctypes.addressof(self._bytes) + offset, nbytes, self._bytes)

    def repair(self) -> bool:
        """Write the canaries anew; whether one had been changed."""
        found = [ctypes.string_at(part.address, part.nbytes) for part in self.guards()]
        if found == self._canaries:
            return False
        for part, canary in zip(self.guards(), self._canaries, strict=True):
            ctypes.memmove(part.address, canary, part.nbytes)
        return True

    def handover(self, index: int) -> Handover:
        flags = Flag.WRITABLE if self._writable else Flag.NONE
        request = Request(Op.BUFFER, index, flags, self.nbytes, self.offset, self.span)
        return Handover(request, self._descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step
