"""Frames between us and a worker; the same layout is in ``worker/protocol.hpp``."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag

_REQUEST = struct.Struct("=4I3Q2I64s16x")
_REPLY = struct.Struct("=2IiIqq224s")
REQUEST_BYTES, REPLY_BYTES = _REQUEST.size, _REPLY.size
PAYLOAD_BYTES = 224


class Op(IntEnum):
    """What we ask for."""

    BUFFER = 1
    BIND = 2
    RUN = 3
    RUN_EMPTY = 4
    SETTLE = 5
    FACTS = 6  # a Python worker's alone: what it found when it was started
    TRACE = 7  # and: one call that is watched, and what ran in it
    LOAD = 8  # and: open the device, shut the jail, say that you are ready, load the candidate


class Flag(IntFlag):
    """Details of a request."""

    NONE = 0
    WRITABLE = 1
    FLUSH = 2
    BARE = 4  # a CUDA worker's alone: nothing between the calls, and no clock of its own
    CAPTURE = 8  # of a LOAD: calls are to be captured into a CUDA graph


class Kind(IntEnum):
    """What a worker answers."""

    READY = 1
    DONE = 2
    TIMES = 3
    FAILED = 4
    CRASHED = 5
    TEXT = 6  # a part of a text; ``a`` is how many bytes are still to come


class Failure(IntEnum):
    """Why a request failed. A Python worker alone knows those after the third."""

    LAUNCH_ERROR = 1
    FAULT = 2
    BAD_OBJECT = 3
    WRONG_OUTPUT = 4
    FORBIDDEN = 5
    NOT_CAPTURED = 6
    NOT_BUILT = 7
    NOT_IMPORTED = 8


class Layer(IntFlag):
    """Layers of the jail that a worker put around itself."""

    NO_NEW_PRIVS = 1
    RLIMITS = 2
    LANDLOCK = 4
    SECCOMP = 8


@dataclass(frozen=True, slots=True)
class Request:
    """One request; a BUFFER says where a tensor lies in the mapping or behind the IPC handle.

    ``index`` is a BUFFER's place among the arguments, and for RUN the first set of them.
    """

    op: Op
    index: int = 0
    flags: Flag = Flag.NONE
    nbytes: int = 0
    offset: int = 0
    span: int = 0
    calls: int = 0
    handle: bytes = b""

    def pack(self, serial: int) -> bytes:
        """The frame."""
        sizes = (self.nbytes, self.offset, self.span)
        return _REQUEST.pack(
            self.op, serial, self.index, self.flags, *sizes, self.calls, 0, self.handle
        )

    @classmethod
    def unpack(cls, frame: bytes) -> tuple[Request, int]:
        """The request in a frame, and its serial number: for a worker written in Python."""
        op, serial, index, flags, *numbers, handle = _REQUEST.unpack(frame)
        nbytes, offset, span, calls, _ = numbers
        return cls(Op(op), index, Flag(flags), nbytes, offset, span, calls, handle), serial


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. Its content is the candidate's to forge: evidence only."""

    kind: int
    serial: int
    code: int = 0
    count: int = 0
    a: int = 0
    b: int = 0
    payload: bytes = b""

    def pack(self) -> bytes:
        """The frame: for a worker written in Python. A longer payload is cut."""
        numbers = (self.kind, self.serial, self.code, self.count, self.a, self.b)
        return _REPLY.pack(*numbers, self.payload)

    @classmethod
    def unpack(cls, frame: bytes) -> Reply:
        """The answer in a frame of ``REPLY_BYTES``."""
        return cls(*_REPLY.unpack(frame))

    @property
    def text(self) -> str:
        """The payload as text."""
        return self.payload.split(b"\0", 1)[0].decode("utf-8", "replace")

    @property
    def times(self) -> list[float]:
        """The payload as times in ms."""
        count = min(self.count, len(self.payload) // 8)
        return list(struct.unpack_from(f"={count}d", self.payload))
