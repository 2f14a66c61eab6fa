"""What a worker's last word means, in sentences for the author of the kernel."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from cuda_sandbox.buffers import WORKSPACE
from cuda_sandbox.protocol import Failure, Kind, Reply
from cuda_sandbox.report import CandidateFailure, Status

STATUS: dict[int, Status] = {
    Failure.LAUNCH_ERROR: Status.LAUNCH_ERROR,
    Failure.FAULT: Status.CRASHED,
    Failure.BAD_OBJECT: Status.REJECTED,
    Failure.WRONG_OUTPUT: Status.INCORRECT,
    Failure.FORBIDDEN: Status.HACK,
    Failure.NOT_CAPTURED: Status.LAUNCH_ERROR,
    Failure.NOT_BUILT: Status.REJECTED,
    Failure.NOT_IMPORTED: Status.COMPILE_ERROR,
}
"""The status that each kind of failure gives."""


def failure(
    reply: Reply, names: Sequence[str], sizes: Sequence[int], workspace: int, doing: str
) -> CandidateFailure:
    """The failure that a FAILED or CRASHED reply tells of; ``names`` and ``sizes`` of tensors."""
    if reply.kind == Kind.FAILED:
        status = STATUS.get(reply.code, Status.CRASHED)
        return CandidateFailure(status, f"{reply.text} (during {doing})")
    detail = _access(reply, [*names, WORKSPACE], [*sizes, workspace])
    if reply.code == signal.SIGSYS:
        detail = f": forbidden system call {reply.text}"
    return CandidateFailure(Status.CRASHED, f"{_name(reply.code)} during {doing}{detail}")


def ending(code: int | None) -> str:
    """How a process ended: ``exited with code 3``, ``was ended by SIGKILL``."""
    if code is None:
        return "closed its connection"
    if code > 128:
        return f"was ended by {_name(code - 128)}"
    return f"was ended by {_name(-code)}" if code < 0 else f"exited with code {code}"


def _name(number: int) -> str:
    return signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"


def _access(reply: Reply, names: Sequence[str], sizes: Sequence[int]) -> str:
    """Which tensor an address belongs to, such as ``: read past the end of out (64 bytes)``."""
    if reply.text not in ("read", "write"):
        return ""
    if not 0 <= reply.a < len(names):
        return f": {reply.text} outside of every tensor"
    name, size, at = names[reply.a], sizes[reply.a], reply.b
    if at < 0:
        return f": {reply.text} {-at} bytes before the start of {name}"
    if at >= size:
        return f": {reply.text} past the end of {name} ({size} bytes) at byte {at}"
    return f": {reply.text} to {name} at byte {at}, which is read-only"
