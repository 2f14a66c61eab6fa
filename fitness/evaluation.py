"""The verdict on one kernel, as a frozen record that travels and is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from cuda_sandbox.report import Resources, Status
from fitness.bottleneck import Bottleneck

_NAMED = 5  # of the kernels that a reason is about
_NONE_OF_ITS_OWN = (
    "own kernels are demanded, and it has none: no kernel of its own ran on the device, or it has "
    "built none for the CPU (load_inline, numba)"
)


class Tier(StrEnum):
    """Precision, told apart by measurement. Strictest first."""

    FP32 = "fp32"  # for tasks of another type: that type's own precision
    TF32 = "tf32"
    HALF = "half"

    def satisfies(self, demanded: Tier) -> bool:
        """Whether a kernel of this tier may run where ``demanded`` is asked for."""
        order = list(Tier)
        return order.index(self) <= order.index(demanded)


@dataclass(frozen=True, slots=True)
class Demand:
    """What a task's kernels must reach: a tier, or the published setting ``max|y-t|/rms(t)``.

    Exactly one of ``tier`` and ``tolerance`` is set. ``baseline`` is what the fitness's speedup
    is against: ``eager``, ``compile`` or ``best``. ``own_kernels``: a Python module that lets
    PyTorch or a library compute is turned away (kernels of other languages have none to call).
    """

    tier: Tier | None = Tier.FP32
    tolerance: float | None = None
    baseline: str = "eager"
    own_kernels: bool = False

    def __post_init__(self) -> None:
        if (self.tier is None) == (self.tolerance is None):
            raise ValueError("demand either a tier or a tolerance, not both and not neither")
        if self.tolerance is not None and not 0 < self.tolerance < 1:
            raise ValueError(f"tolerance must lie between 0 and 1, not {self.tolerance}")
        if self.baseline not in ("eager", "compile", "best"):
            raise ValueError(f"baseline must be eager, compile or best, not {self.baseline!r}")

    def objection(self, execution: Execution | None) -> str:
        """Why a module that ran so is turned away; empty if it is not."""
        if not self.own_kernels or execution is None:
            return ""
        if not execution.foreign:
            return "" if execution.own or execution.unseen else _NONE_OF_ITS_OWN
        some, more = execution.foreign[:_NAMED], len(execution.foreign) - _NAMED
        names = ", ".join(some) + (f" and {more} more" if more > 0 else "")
        return f"own kernels are demanded; others compute for it: {names}"


@dataclass(frozen=True, slots=True)
class Interval:
    """A median in ms with its 95% confidence interval."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Baseline:
    """PyTorch's own time (ms) in one mode, and the precision tier it computed in."""

    time_ms: Interval
    tier: Tier | None


@dataclass(frozen=True, slots=True)
class Precision:
    """Errors against the float64 truth, the worst over outputs and distributions.

    ``error`` and ``reference_error`` (PyTorch's own, as its float32 or the task's type) are
    ``max|y-t|/rms(t)``; ``error_l2`` and ``reference_error_l2`` are ``||y-t||/||t||``.
    """

    tier: Tier | None
    error: float
    error_l2: float
    reference_error: float
    reference_error_l2: float
    worst_on: str = ""


@dataclass(frozen=True, slots=True)
class Seconds:
    """Wall-clock seconds that the verdict cost."""

    compile: float | None = None
    evaluate: float | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """How a Python module ran, as its own process tells: evidence, no proof.

    ``mode`` is ``graph`` (a captured call is replayed) or ``calls``; ``uncaptured`` says why a
    call could not be captured. ``ran`` are the kernels of a GPU, else PyTorch's operators, of one
    call; ``foreign`` those that are no kernels of the module's own, and compute, and the functions
    of libraries that it or its extensions call; ``own`` its own kernels on a GPU, else what it has
    built for the CPU. ``weights`` says
    how they were matched: by name, by order of shapes. ``unseen``: why a GPU's kernels could not
    be told.
    """

    mode: str
    ran: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    weights: str = ""
    uncaptured: str = ""
    unseen: str = ""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One verdict. What was not measured is None (or missing from ``baselines``), never invented.

    ``speedup`` maps ``eager``, ``compile``, ``graph`` and the strongest baselines to baseline time
    / kernel time: ``best`` (at least as precise as the kernel), ``same`` (of its very tier) and
    ``fp32`` (uncompiled, full precision).
    ``log`` is what the compiler said (no paths; of an accepted kernel its warnings).
    ``certificate`` is the JSON-like record of certification, where it was asked for;
    ``bottleneck`` the profile, where one was taken; ``execution`` how a Python module ran.
    """

    status: Status
    reason: str = ""
    precision: Precision | None = None
    time_ms: Interval | None = None
    baselines: dict[str, Baseline] = field(default_factory=dict)
    speedup: dict[str, float] = field(default_factory=dict)
    roofline_share: float | None = None
    roofline_ceiling: str | None = None
    device: str = ""
    seconds: Seconds = Seconds()
    resources: tuple[Resources, ...] = ()
    log: str = ""
    certificate: dict[str, Any] | None = None
    bottleneck: Bottleneck | None = None
    execution: Execution | None = None

    @property
    def correct(self) -> bool:
        """Whether the kernel was accepted."""
        return self.status is Status.OK
