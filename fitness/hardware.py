"""The device as the judge finds it: its names, its facts and its measured ceilings."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import time
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING

from cuda_sandbox.cache import cache_dir, write_json
from cuda_sandbox.devices import cpu, private_caches
from cuda_sandbox.errors import UserError
from fitness.evaluation import Tier

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Rates measured on the device: bytes read plus written per second, and FLOP per second.

    ``half`` and ``tf32`` are None where there is no such unit. ``cache_bytes`` is the last-level
    cache. On a CPU ``cold_bytes_per_s`` is how fast data is read right after the caches were
    emptied as for a timed call, and ``private_bytes`` what the cores' own caches may yet hold.
    """

    bytes_per_s: float
    cache_bytes: int
    fp32: float
    tf32: float | None = None
    half: float | None = None
    cold_bytes_per_s: float | None = None
    private_bytes: int = 0

    def or_better(self, other: Ceilings) -> Ceilings:
        """The better of each."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Ceilings(*(mine if theirs is None else max(mine, theirs) for mine, theirs in pairs))

    def fastest(self, tier: Tier) -> tuple[str, float]:
        """Name and FLOP/s of the fastest unit that can reach ``tier``.

        Half operands have the mantissa of TF32: scaled into their range they are as exact.
        """
        split = [
            (f"{name} tensor cores / 3", rate / 3)
            for name, rate in (("tf32", self.tf32), ("half", self.half))
            if rate
        ]
        coarse = [("fp32", self.fp32), ("half tensor cores", self.half or 0.0)]
        units = {
            Tier.FP32: [("fp32", self.fp32), *split],
            Tier.TF32: [*coarse, ("tf32 tensor cores", self.tf32 or 0.0)],
            Tier.HALF: coarse,
        }
        return max(units[tier], key=lambda unit: unit[1])


def device_name(device: torch.device, threads: int) -> str:
    """The name that goes into records: ``NVIDIA H200`` or ``AMD EPYC, 2 threads``."""
    import torch

    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return cpu().described(threads)


def architecture(device: torch.device) -> str:
    """The compiler's name for the chip: ``sm_90``, or ``native`` for a CPU."""
    import torch

    if device.type != "cuda":
        return "native"
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"


def slot(device: torch.device) -> str:
    """Names the timing slot of a device, whatever number it has in this process."""
    import torch

    if device.type != "cuda":
        return "cpu"
    return f"cuda-{torch.cuda.get_device_properties(device).uuid}"


def cache_bytes(device: torch.device) -> int:
    """Size of the last-level cache."""
    import torch

    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size)
    return cpu().cache_bytes


def _best_seconds(call: Callable[[], object], device: torch.device, repeats: int = 7) -> float:
    import torch

    def once() -> float:
        started = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - started

    once()
    return min(once() for _ in range(repeats))


def _matmul_rate(device: torch.device, dtype: torch.dtype, tf32: bool) -> float:
    import torch

    size = 8192 if device.type == "cuda" else 1024
    a = torch.randn(size, size, device=device, dtype=dtype)
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        return 2 * size**3 / _best_seconds(lambda: a @ a, device)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _copy_rate(device: torch.device) -> float:
    import torch

    size = max(4 * cache_bytes(device), 64 << 20)
    size = max(size, 1 << 30) if device.type == "cuda" else min(size, 256 << 20)
    source = torch.ones(size // 4, device=device)
    target = torch.empty_like(source)
    return 2 * size / _best_seconds(lambda: target.copy_(source), device)


def _cold_rate(copy_rate: float) -> float:
    """Bytes per second that one pass over an argument reads on a CPU, written and then evicted.

    At least what a copy moves with the lines that it fetches only to overwrite them: two reads and
    a write, of which `_copy_rate` counts two. More where a machine's caches are not emptied by it.
    """
    import torch

    size = min(max(cpu().cache_bytes // 4, 8 << 20), 64 << 20)
    source = torch.ones(size // 4)
    ballast = ctypes.create_string_buffer(2 * cpu().cache_bytes)

    def once() -> float:
        source.fill_(2.0)
        ctypes.memset(ballast, 1, len(ballast))
        started = time.perf_counter()
        source.sum()
        return time.perf_counter() - started

    return max(1.5 * copy_rate, size / min(once() for _ in range(7)))


@functools.cache
def measure_ceilings(device: torch.device) -> Ceilings:
    """Measure the ceilings, once per process: the best of seven copies and matrix products."""
    import torch

    on_gpu = device.type == "cuda"
    copied = _copy_rate(device)
    return Ceilings(
        bytes_per_s=copied,
        cache_bytes=cache_bytes(device),
        fp32=_matmul_rate(device, torch.float32, tf32=False),
        tf32=_matmul_rate(device, torch.float32, tf32=True) if on_gpu else None,
        half=_matmul_rate(device, torch.float16, tf32=False) if on_gpu else None,
        cold_bytes_per_s=None if on_gpu else _cold_rate(copied),
        private_bytes=0 if on_gpu else private_caches(),
    )


def ceilings(device: torch.device, threads: int) -> Ceilings:
    """The device's ceilings: measured now, or earlier on the same device if faster then.

    Kept per device, thread count and torch version in the user's cache: a busy moment lowers what
    is measured, nothing raises it.
    """
    import torch

    key = f"{device_name(device, threads)}-{torch.__version__}".replace("/", "_").replace(" ", "_")
    path = cache_dir() / "ceilings" / f"{key}.json"
    found = measure_ceilings(device)
    with contextlib.suppress(OSError, ValueError, TypeError):
        found = found.or_better(Ceilings(**json.loads(path.read_text())))
    write_json(path, asdict(found))
    return found


def ceilings_anew(device: torch.device, threads: int) -> Ceilings:
    """As `ceilings`, measured again in any case."""
    measure_ceilings.cache_clear()
    return ceilings(device, threads)


def require(device: str) -> None:
    """Raise UserError unless this machine has ``device`` (``cpu``, ``cuda`` or ``cuda:N``)."""
    import torch

    kind, _, index = device.partition(":")
    if kind not in ("cpu", "cuda") or (index and not (kind == "cuda" and index.isdecimal())):
        raise UserError(f"there is no device {device!r}; use cpu, cuda or cuda:N")
    if kind == "cpu":
        return
    if not torch.cuda.is_available():
        raise UserError(
            f"{device}: PyTorch sees no CUDA device here; `kernelevo doctor` says why. "
            "Compile without one with --arch sm_89 (or your chip's)"
        )
    if index and int(index) >= torch.cuda.device_count():
        raise UserError(
            f"{device}: this machine has cuda:0 to cuda:{torch.cuda.device_count() - 1}"
        )
