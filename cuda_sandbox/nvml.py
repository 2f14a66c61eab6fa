"""A GPU's clocks, heat and throttling through NVML, which comes with the driver."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_SM, _MEMORY = 1, 2
_PROCESSES, _INSUFFICIENT_SIZE = "nvmlDeviceGetComputeRunningProcesses_v3", 7
_REASONS = {
    0x1: "idle",
    0x2: "clocks set by an application",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clocks",
}
HARMLESS = frozenset({"idle", "clocks set by an application", "display clocks"})
"""Reasons that do not slow down a kernel unexpectedly."""


class NvmlError(RuntimeError):
    """NVML does not answer; the message says which call and why, ``code`` what it returned."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at a GPU: clocks in MHz, temperature in degrees C, power in W.

    A figure that this GPU does not tell is None. ``reasons`` are what holds the clocks down.
    """

    sm_mhz: int | None
    memory_mhz: int | None
    temperature_c: int | None
    power_w: float | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the clocks and the power may reach, in MHz and W, and the driver's version."""

    sm_mhz: int | None
    memory_mhz: int | None
    power_w: float | None
    driver: str


class Gpu:
    """One GPU by its UUID (``GPU-...``). Raises NvmlError where NVML or the GPU is not there."""

    def __init__(self, uuid: str, load: Callable[[], Any] | None = None) -> None:
        self._nvml = (load or _library)()
        self._handle = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(self._handle))

    def read(self) -> Reading:
        """The figures of this moment."""
        watts = self._number("nvmlDeviceGetPowerUsage")
        return Reading(
            sm_mhz=self._number("nvmlDeviceGetClockInfo", _SM),
            memory_mhz=self._number("nvmlDeviceGetClockInfo", _MEMORY),
            temperature_c=self._number("nvmlDeviceGetTemperature", 0),
            power_w=None if watts is None else watts / 1e3,
            reasons=self._reasons(),
        )

    def limits(self) -> Limits:
        """What is possible at most."""
        watts = self._number("nvmlDeviceGetEnforcedPowerLimit")
        text = ctypes.create_string_buffer(96)
        with contextlib.suppress(NvmlError):
            self._call("nvmlSystemGetDriverVersion", text, ctypes.c_uint(96))
        return Limits(
            self._number("nvmlDeviceGetMaxClockInfo", _SM),
            self._number("nvmlDeviceGetMaxClockInfo", _MEMORY),
            None if watts is None else watts / 1e3,
            text.value.decode(),
        )

    def processes(self) -> int | None:
        """How many processes have a context for computing on it; None where it does not tell."""
        count = ctypes.c_uint()
        try:
            self._call(_PROCESSES, self._handle, ctypes.byref(count), None)
        except NvmlError as error:
            return count.value if error.code == _INSUFFICIENT_SIZE else None
        return 0

    def busy(self) -> float | None:
        """The share of about the last second in which any kernel ran; None if it does not tell."""
        shares = (ctypes.c_uint * 2)()  # of the processors', and of the memory's time, in percent
        with contextlib.suppress(NvmlError):
            self._call("nvmlDeviceGetUtilizationRates", self._handle, ctypes.byref(shares))
            return shares[0] / 100
        return None

    def _reasons(self) -> tuple[str, ...]:
        mask = ctypes.c_ulonglong()
        for name in ("EventReasons", "ThrottleReasons"):  # renamed with driver 535
            with contextlib.suppress(NvmlError):
                call = f"nvmlDeviceGetCurrentClocks{name}"
                self._call(call, self._handle, ctypes.byref(mask))
                return tuple(text for bit, text in _REASONS.items() if bit & mask.value)
        return ()

    def _number(self, name: str, *arguments: int) -> int | None:
        value = ctypes.c_uint()
        with contextlib.suppress(NvmlError):
            self._call(name, self._handle, *map(ctypes.c_uint, arguments), ctypes.byref(value))
            return value.value
        return None

    def _call(self, name: str, *arguments: object) -> None:
        try:
            code = getattr(self._nvml, name)(*arguments)
        except AttributeError as error:
            raise NvmlError(f"{name}: this driver has no such call") from error
        if code:
            raise NvmlError(f"{name} failed: {_text(self._nvml, code)}", code)


@functools.cache
def _library() -> Any:
    """libnvidia-ml, initialised. Raises NvmlError."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        raise NvmlError(f"no NVML: {error}") from error
    if code := nvml.nvmlInit_v2():
        raise NvmlError(f"nvmlInit_v2 failed: {_text(nvml, code)}")
    return nvml


def _text(nvml: Any, code: int) -> str:
    with contextlib.suppress(AttributeError):
        nvml.nvmlErrorString.restype = ctypes.c_char_p
        return f"{(nvml.nvmlErrorString(code) or b'?').decode()} ({code})"
    return str(code)


class Watch:
    """Readings every ``period_s`` from a thread of its own, while the block runs."""

    def __init__(self, gpu: Gpu, period_s: float = 0.2) -> None:
        self._gpu = gpu
        self._period_s = period_s
        self.readings: list[Reading] = []

    @contextlib.contextmanager
    def running(self) -> Iterator[Watch]:
        """Within, readings are taken; afterwards none is under way."""
        done = threading.Event()
        thread = threading.Thread(target=self._watch, args=(done,), name="nvml", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            done.set()
            thread.join()

    def _watch(self, done: threading.Event) -> None:
        while True:
            self.readings.append(self._gpu.read())
            if done.wait(self._period_s):
                return
