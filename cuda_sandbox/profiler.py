"""Look into a kernel at work: which units are busy, what its warps wait for.

A backend's `Probe` says how; the kernel runs in the standalone program that the sanitizers use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.signature import Signature
from cuda_sandbox.standalone import NotBuilt, Recipe, built


@dataclass(frozen=True, slots=True)
class Launch:
    """One run of one device function, as the profiler saw it.

    ``busy`` is the use of units in % of their peak, ``stalls`` the share of warps' time in % by
    reason, ``occupancy`` warps on an SM in % of what fits: measured, and possible by the launch;
    ``limit`` is what limits the latter.
    """

    function: str
    time_ms: float
    busy: Mapping[str, float] = field(default_factory=dict)
    stalls: Mapping[str, float] = field(default_factory=dict)
    occupancy: tuple[float, float] | None = None
    limit: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """All launches of one call, and remarks in words; ``missing`` says why there is nothing."""

    launches: tuple[Launch, ...] = ()
    notes: tuple[str, ...] = ()
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """A backend's way of profiling.

    The program is built by ``recipe`` and run under ``prefix``; without one it is only built.
    ``read`` makes a profile of the exit code (None at the deadline) and of what was printed.
    """

    recipe: Recipe
    read: Callable[[int | None, str], Profile]
    prefix: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    missing: str = ""


def profile(
    kernel: Kernel,
    signature: Signature,
    probe: Probe,
    inputs: Callable[[], Mapping[str, bytes]],
    *,
    deadline_s: float = 60.0,
    cache_dir: Path | None = None,
) -> Profile:
    """The profile of one call of ``kernel``; ``inputs`` gives every argument's bytes if needed.

    ``deadline_s`` bounds compiling and running, each.
    """
    if probe.missing:
        return Profile(missing=probe.missing)
    given = inputs() if probe.prefix else None
    try:
        with built(kernel, signature, probe.recipe, given, deadline_s, cache_dir) as program:
            if not probe.prefix:
                return probe.read(0, program.log)
            return probe.read(*program.run(probe.prefix, probe.environment, deadline_s))
    except NotBuilt as error:
        return Profile(missing=str(error))
