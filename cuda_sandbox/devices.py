"""Facts about this machine's CPU and CUDA devices, without torch."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cpu:
    """The CPU: ``cores`` that this process may use, last-level cache in bytes, SIMD features."""

    name: str
    cores: int
    cache_bytes: int
    simd: tuple[str, ...]

    def described(self, threads: int) -> str:
        """The name that goes into records: ``AMD EPYC, 2 threads``."""
        return f"{self.name}, {threads} thread{'s' if threads != 1 else ''}"


@functools.cache
def cpu() -> Cpu:
    """The CPU of this machine."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    name = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", text, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, re.MULTILINE)
    simd = sorted(flag for flag in (flags[1].split() if flags else ()) if _is_simd(flag))
    label = name[1].strip() if name else os.uname().machine
    return Cpu(label, len(os.sched_getaffinity(0)), _last_level_cache(), tuple(simd))


def _is_simd(flag: str) -> bool:
    return re.match(r"sse|ssse|avx|fma$|f16c$|amx|asimd|neon|sve|sme(?!p)", flag) is not None


@functools.cache
def private_caches() -> int:
    """Bytes that the second-level caches of all cores hold; 2 MiB each where it is not said."""
    cache = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
    text = cache.read_text(encoding="ascii").strip() if cache.is_file() else ""
    match = re.fullmatch(r"(\d+)([KM])", text)
    each = int(match[1]) << {"K": 10, "M": 20}[match[2]] if match else 2 << 20
    return cpu().cores * each


def _last_level_cache() -> int:
    """The largest cache of the first CPU in bytes; 32 MiB where the system does not say."""
    sizes = [32 << 20]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text(encoding="ascii").strip()
        if match := re.fullmatch(r"(\d+)([KMG]?)", text):
            sizes.append(int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]])
    return min(max(sizes[1:] or sizes), 256 << 20)
