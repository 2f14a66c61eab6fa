"""The closed list of statuses, and the records that the compiler and the worker hand back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """``text`` from outside without what steers a terminal: tabs and line feeds stay."""
    return _UNPRINTABLE.sub("", text)


class Status(StrEnum):
    """What became of a candidate. Its failure is data, never an exception."""

    OK = "ok"
    REJECTED = "rejected"  # screened out before it ran, or the task refused
    COMPILE_ERROR = "compile_error"
    LAUNCH_ERROR = "launch_error"  # nonzero return, CUDA error, cannot be captured
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    INCORRECT = "incorrect"
    HACK = "hack"


@dataclass(frozen=True, slots=True)
class Resources:
    """What the device compiler says of one ``__global__`` function (bytes where not counts)."""

    function: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int


@dataclass(frozen=True, slots=True)
class CompileReport:
    """The compiler's answer for one kernel.

    ``object_key`` names the shared object in the compile cache; None unless ``status`` is OK.
    ``seconds`` is what this compile took when it was first done, also when it came from the cache.
    """

    status: Status
    reason: str
    object_key: str | None
    seconds: float
    cached: bool = False
    resources: tuple[Resources, ...] = ()
    log: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", printable(self.reason))
        object.__setattr__(self, "log", printable(self.log))


class CandidateFailure(Exception):
    """A candidate failed in a worker: the judge turns this into an evaluation's status."""

    def __init__(self, status: Status, reason: str) -> None:
        reason = printable(reason)
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.reason = reason
