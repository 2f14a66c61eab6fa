"""What holds a kernel back, in a few lines that an author or a person can act on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

BUSY = 60.0
"""Per cent of its peak from which on a unit counts as what the kernel is bound by."""

UNITS = ("dram", "l2", "shared", "tensor", "fma")
"""The units a kernel can be bound by; where none is busy it is bound by ``latency``."""

MEANING = {
    "barrier": "__syncthreads",
    "branch_resolving": "branches",
    "dispatch_stall": "dispatch",
    "drain": "stores at the end",
    "gmma": "wgmma in flight",
    "imc_miss": "constant cache",
    "lg_throttle": "too many global or local accesses queued",
    "long_scoreboard": "global or local memory",
    "math_pipe_throttle": "a busy arithmetic unit",
    "membar": "memory fences",
    "mio_throttle": "too many shared memory or special operations queued",
    "no_instruction": "instruction cache",
    "not_selected": "other warps were chosen: enough are ready",
    "short_scoreboard": "shared memory or special functions",
    "sleeping": "nanosleep",
    "tex_throttle": "texture queue",
    "wait": "fixed latency of arithmetic",
    "warpgroup_arrive": "wgmma arrive",
}
"""Nsight Compute's stall reasons in words."""


@dataclass(frozen=True, slots=True)
class Stall:
    """Why warps did not issue: the profiler's name and the share of their time in %."""

    reason: str
    percent: float


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Warps on an SM in % of what fits, as measured and as the launch allows; what limits it."""

    achieved: float
    possible: float
    limit: str = ""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Where a kernel's time goes. What was not measured is empty or None.

    ``bound`` is one of `UNITS` or ``latency``; on a CPU ``memory``, ``arithmetic`` or ``latency``.
    ``function`` takes the most time, ``function_share`` of it all. ``busy`` holds each unit's %
    of its peak. ``notes`` are more lines, such as what the compiler vectorised. ``missing`` says
    why there was no measurement.
    """

    bound: str = ""
    function: str = ""
    function_share: float | None = None
    busy: Mapping[str, float] | None = None
    occupancy: Occupancy | None = None
    stalls: tuple[Stall, ...] = ()
    roofline_share: float | None = None
    roofline_ceiling: str = ""
    notes: tuple[str, ...] = ()
    missing: str = ""

    def lines(self) -> list[str]:
        """The report: at most ten lines."""
        return [line for line in self._lines() if line][:10]

    def _lines(self) -> Iterator[str]:
        if self.bound:
            yield f"bound by {self.bound}{self._where()}"
        if self.busy:
            yield "% of peak: " + ", ".join(f"{name} {use:.0f}" for name, use in self.busy.items())
        if self.occupancy:
            limit = f" (limited by {self.occupancy.limit})" if self.occupancy.limit else ""
            achieved, possible = self.occupancy.achieved, self.occupancy.possible
            yield f"occupancy: {achieved:.0f}% of {possible:.0f}% possible{limit}"
        if self.stalls:
            yield "warps wait for: " + ", ".join(map(_worded, self.stalls))
        if self.roofline_share is not None:
            yield f"roofline: {self.roofline_share:.0%} of {self.roofline_ceiling}"
        yield from self.notes
        if self.missing:
            yield f"profile not run: {self.missing}"

    def _where(self) -> str:
        if not self.function:
            return ""
        share = self.function_share
        of_all = f", {share:.0%} of the time" if share is not None and share < 0.995 else ""
        return f" ({self.function}{of_all})"


def bound_by(busy: Mapping[str, float]) -> str:
    """The busiest of `UNITS` if it is busy enough, else ``latency``.

    What comes from DRAM passes through the L2 too, which then reads even busier: not its fault.
    """
    units = [unit for unit in UNITS if busy.get(unit, 0.0) >= BUSY]
    if "dram" in units and "l2" in units:
        units.remove("l2")
    return max(units, key=lambda unit: busy[unit], default="latency")


def _worded(stall: Stall) -> str:
    meaning = MEANING.get(stall.reason)
    name = stall.reason.replace("_", " ")
    return f"{name} {stall.percent:.0f}%" + (f" ({meaning})" if meaning else "")
