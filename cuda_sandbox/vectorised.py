"""Which loops a C++ compiler vectorised, from its remarks."""

from __future__ import annotations

import re

from cuda_sandbox.profiler import Profile

_GCC = re.compile(r"kernel\.cpp:(\d+):\d+: optimized: loop vectorized using (\d+) byte vectors")
_CLANG = re.compile(r"kernel\.cpp:(\d+):\d+: remark: vectorized loop \(vectorization width: (\d+)")


def options(clang: bool) -> tuple[str, ...]:
    """What makes the compiler tell."""
    return ("-Rpass=loop-vectorize",) if clang else ("-fopt-info-vec-optimized",)


def read(code: int | None, log: str) -> Profile:
    """The remarks as one note."""
    del code
    found = {int(line): f"{size} B" for line, size in _GCC.findall(log)}
    found |= {int(line): f"{width} wide" for line, width in _CLANG.findall(log)}
    if not found:
        return Profile(notes=("the compiler vectorised no loop",))
    lines = ", ".join(f"{line} ({how})" for line, how in sorted(found.items())[:12])
    return Profile(notes=(f"the compiler vectorised loops at lines {lines}",))
