"""Frames between us and a worker; the same layout is in ``worker/protocol.hpp``."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag

_REQUEST = struct.Struct("=4I3Q2I64s16x")
_REPLY = struct.Struct("=2IiIqq224s")
REPLY_BYTES = _REPLY.size


class Op(IntEnum):
    """What we ask for."""

    BUFFER = 1
    BIND = 2
    RUN = 3
    RUN_EMPTY = 4
    SETTLE = 5


class Flag(IntFlag):
    """Details of a request."""

    NONE = 0
    WRITABLE = 1
    FLUSH = 2


class Kind(IntEnum):
    """What a worker answers."""

    READY = 1
    DONE = 2
    TIMES = 3
    FAILED = 4
    CRASHED = 5


class Failure(IntEnum):
    """Why a request failed."""

    LAUNCH_ERROR = 1
    FAULT = 2
    BAD_OBJECT = 3


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


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. Its content is the candidate's to forge: evidence only."""

    kind: int
    serial: int
    code: int
    count: int
    a: int
    b: int
    payload: bytes

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
