"""Device memory that judge and worker share through CUDA IPC."""

from __future__ import annotations

import ctypes
import secrets
from collections.abc import Sequence

from cuda_sandbox import driver
from cuda_sandbox.buffers import WORKSPACE, Buffers, CudaRegion, Handover
from cuda_sandbox.protocol import Flag, Op, Request
from cuda_sandbox.tensor import Role, TensorSpec

_BLOCK = 2 << 20  # the driver hands out memory in such blocks, and IPC shows whole blocks
_GUARD = 64 << 10


class CudaBuffers(Buffers):
    """One raw allocation of the driver per tensor, with guard zones; never a framework's pool.

    ``device`` is the CUDA device's number. Everything is visible and writable for the worker,
    inputs too: compare them after its calls.
    """

    def __init__(self, tensors: Sequence[TensorSpec], device: int = 0) -> None:
        super().__init__(tensors)
        self._context = driver.Context(device)
        self._canary = secrets.token_bytes(_GUARD)
        with self._context.current():
            self._memory = {
                tensor.name: _Allocation(tensor.nbytes, self._canary, tensor.role is Role.OUTPUT)
                for tensor in self.tensors
            }
            self._workspace = _Allocation(0, self._canary, writable=True)

    def set_workspace(self, nbytes: int) -> None:
        """Make the workspace this large; no worker may be using the old one."""
        if nbytes != self._workspace.nbytes:
            with self._context.current():
                self._workspace.free()
                try:
                    self._workspace = _Allocation(nbytes, self._canary, writable=True)
                except driver.CudaError as error:
                    self._workspace = _Allocation(0, self._canary, writable=True)
                    raise MemoryError(str(error)) from error

    def region(self, name: str) -> CudaRegion:
        """The bytes of one tensor, or of ``"workspace"``."""
        memory = self._find(name)
        return CudaRegion(memory.address, memory.nbytes, memory)

    def guards(self, name: str) -> tuple[CudaRegion, CudaRegion]:
        """64 KiB before and 64 KiB after a tensor."""
        memory = self._find(name)
        before, after = memory.guards()
        return CudaRegion(before, _GUARD, memory), CudaRegion(after, _GUARD, memory)

    def damaged(self) -> tuple[str, ...]:
        """The tensors whose canaries were changed. The worker's calls must be finished."""
        named = {**self._memory, WORKSPACE: self._workspace}
        with self._context.current():
            return tuple(name for name, memory in named.items() if memory.repair(self._canary))

    def handovers(self) -> list[Handover]:
        """IPC handles."""
        found = [*self._memory.values(), self._workspace]
        with self._context.current():
            return [Handover(memory.request(index)) for index, memory in enumerate(found)]

    def close(self) -> None:
        """Give the memory back; no worker and no tensor may be looking at it."""
        with self._context.current():
            for memory in [*self._memory.values(), self._workspace]:
                memory.free()
        self._context.release()

    def _find(self, name: str) -> _Allocation:
        return self._workspace if name == WORKSPACE else self._memory[name]


class _Allocation:
    """Guard zone, tensor, guard zone, in device memory of its own."""

    def __init__(self, nbytes: int, canary: bytes, writable: bool) -> None:
        self.nbytes = nbytes
        self._writable = writable
        self._span = -(-(nbytes + 2 * _GUARD) // _BLOCK) * _BLOCK
        base = ctypes.c_uint64()
        driver.call("cuMemAlloc_v2", ctypes.byref(base), ctypes.c_size_t(self._span))
        self._base = base.value
        self.address = self._base + _GUARD
        self.repair(canary)

    def guards(self) -> tuple[int, int]:
        """Where the zones start."""
        return self._base, self.address + self.nbytes

    def repair(self, canary: bytes) -> bool:
        """Write the canaries anew; whether one had been changed."""
        changed = [start for start in self.guards() if _read(start, _GUARD) != canary]
        for start in changed:
            driver.call("cuMemcpyHtoD_v2", ctypes.c_uint64(start), canary, ctypes.c_size_t(_GUARD))
        return bool(changed)

    def request(self, index: int) -> Request:
        """How a worker gets at it."""
        handle = (ctypes.c_ubyte * 64)()
        driver.call("cuIpcGetMemHandle", ctypes.byref(handle), ctypes.c_uint64(self._base))
        flags = Flag.WRITABLE if self._writable else Flag.NONE
        sizes = (self.nbytes, _GUARD, self._span)
        return Request(Op.BUFFER, index, flags, *sizes, handle=bytes(handle))

    def free(self) -> None:
        if self._base:
            driver.call("cuMemFree_v2", ctypes.c_uint64(self._base))
            self._base = 0


def _read(address: int, nbytes: int) -> bytes:
    data = ctypes.create_string_buffer(nbytes)
    driver.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(address), ctypes.c_size_t(nbytes))
    return data.raw
