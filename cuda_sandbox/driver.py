"""The CUDA driver through ctypes: devices and memory without torch and without the toolkit.

``python -m cuda_sandbox.driver`` prints the devices as JSON, for a process that does not want the
driver in its memory.
"""

from __future__ import annotations

import ctypes
import functools
import json
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from cuda_sandbox.isolation import Mount

_L2_BYTES, _SMS, _MAJOR, _MINOR, _SHARED_OPTIN = 38, 16, 75, 76, 97
_CLOCK, _MEMORY_CLOCK, _BUS = 13, 36, 37


class CudaError(RuntimeError):
    """A call of the CUDA driver failed; the message has the call, and the error's name and text."""


@dataclass(frozen=True, slots=True)
class CudaDevice:
    """One CUDA device; ``major`` and ``minor`` are its compute capability, sizes in bytes.

    ``clock_khz`` and ``memory_clock_khz`` are the highest; ``bus_bits`` is the memory's width.
    """

    index: int
    name: str
    uuid: str
    major: int
    minor: int
    sms: int
    l2_bytes: int
    shared_bytes: int  # per block, opt-in
    memory_bytes: int
    driver: str
    clock_khz: int = 0
    memory_clock_khz: int = 0
    bus_bits: int = 0

    @property
    def arch(self) -> str:
        """As nvcc wants it: from Hopper on with the instructions that only this chip has."""
        return f"sm_{self.major}{self.minor}{'a' if self.major >= 9 else ''}"


@functools.cache
def library() -> ctypes.CDLL | None:
    """libcuda, initialised; None where there is no driver or no device."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    return cuda if cuda.cuInit(0) == 0 else None


def call(name: str, *arguments: object) -> None:
    """Call a driver function.

    Raises:
        CudaError: it returned an error, or there is no driver.
    """
    cuda = library()
    if cuda is None:
        raise CudaError("no CUDA driver: libcuda.so.1 cannot be loaded, or sees no device")
    code = getattr(cuda, name)(*arguments)
    if code:
        raise CudaError(f"{name} failed: {_text(cuda, code)}")


def _text(cuda: ctypes.CDLL, code: int) -> str:
    name, text = ctypes.c_char_p(), ctypes.c_char_p()
    cuda.cuGetErrorName(code, ctypes.byref(name))
    cuda.cuGetErrorString(code, ctypes.byref(text))
    return f"{(name.value or b'?').decode()} ({code}): {(text.value or b'?').decode()}"


def count() -> int:
    """How many CUDA devices this process sees; 0 without a driver."""
    if library() is None:
        return 0
    number = ctypes.c_int()
    call("cuDeviceGetCount", ctypes.byref(number))
    return number.value


@functools.cache
def device(index: int) -> CudaDevice:
    """Facts about device ``index`` (as this process numbers them).

    Raises:
        CudaError: there is no such device.
    """
    if index >= count():
        raise CudaError(f"no device cuda:{index}; this machine shows {count()} CUDA devices")
    handle = _handle(index)
    name = ctypes.create_string_buffer(256)
    call("cuDeviceGetName", name, 256, handle)
    identity = (ctypes.c_ubyte * 16)()
    call("cuDeviceGetUuid", ctypes.byref(identity), handle)
    memory = ctypes.c_size_t()
    call("cuDeviceTotalMem_v2", ctypes.byref(memory), handle)
    return CudaDevice(
        index=index,
        name=name.value.decode(),
        uuid=f"GPU-{uuid.UUID(bytes=bytes(identity))}",
        major=_attribute(handle, _MAJOR),
        minor=_attribute(handle, _MINOR),
        sms=_attribute(handle, _SMS),
        l2_bytes=_attribute(handle, _L2_BYTES),
        shared_bytes=_attribute(handle, _SHARED_OPTIN),
        memory_bytes=memory.value,
        driver=_driver_version(),
        clock_khz=_attribute(handle, _CLOCK),
        memory_clock_khz=_attribute(handle, _MEMORY_CLOCK),
        bus_bits=_attribute(handle, _BUS),
    )


def ordinal(name: str) -> int:
    """The number in ``cuda`` (0) or ``cuda:N``.

    Raises:
        ValueError: ``name`` is no such device.
    """
    match = re.fullmatch(r"cuda(?::(\d+))?", name)
    if match is None:
        raise ValueError(f"{name!r} is no CUDA device; write cuda or cuda:0")
    return int(match[1] or 0)


def _handle(index: int) -> ctypes.c_int:
    handle = ctypes.c_int()
    call("cuDeviceGet", ctypes.byref(handle), index)
    return handle


def _attribute(handle: ctypes.c_int, which: int) -> int:
    value = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(value), which, handle)
    return value.value


def _driver_version() -> str:
    """The driver's version, such as ``580.65.06``; else the CUDA version it speaks."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")
    except OSError:
        text = ""
    if match := re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", text):
        return match[1]
    value = ctypes.c_int()
    call("cuDriverGetVersion", ctypes.byref(value))
    return f"CUDA {value.value // 1000}.{value.value % 1000 // 10}"


class Context:
    """A device's primary context: the one that torch uses too, so that pointers are common."""

    def __init__(self, index: int) -> None:
        self._device = _handle(index)
        self._context = ctypes.c_void_p()
        call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make it the thread's current context for a while."""
        call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def release(self) -> None:
        """Give the reference back."""
        call("cuDevicePrimaryCtxRelease_v2", self._device)


def library_path() -> Path:
    """The file that libcuda was loaded from: its folder is the driver's, wherever that is.

    Raises:
        CudaError: there is no driver.
    """
    if library() is None:
        raise CudaError("no CUDA driver: libcuda.so.1 cannot be loaded, or sees no device")
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    found = re.search(r"(/\S*/libcuda\.so\S*)$", maps, re.MULTILINE)
    if found is None:
        raise CudaError("libcuda.so is loaded, but /proc/self/maps does not show from where")
    return Path(found[1])


def library_mounts() -> tuple[Mount, ...]:
    """The driver's libraries, one mount for each file."""
    folder = library_path().parent
    names = sorted({*folder.glob("libcuda*.so*"), *folder.glob("libnvidia*.so*")})
    return tuple(Mount(path.resolve(), str(path)) for path in names if path.exists())


def device_nodes() -> tuple[str, ...]:
    """The device nodes that CUDA opens."""
    found = [*Path("/dev").glob("nvidia*"), *Path("/dev/nvidia-caps").glob("*"), Path("/dev/dxg")]
    return tuple(sorted(str(path) for path in found if path.is_char_device()))


if __name__ == "__main__":
    print(json.dumps([asdict(device(index)) for index in range(count())]))
