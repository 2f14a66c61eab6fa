"""The worker's end of the socket that leads to the judge."""

from __future__ import annotations

import os
import socket
import struct
from typing import NoReturn

from cuda_sandbox.protocol import PAYLOAD_BYTES, REQUEST_BYTES, Failure, Kind, Reply, Request
from fitness.module.runner.jail import Jail

_TIMES_EACH = PAYLOAD_BYTES // 8


class Channel:
    """Takes requests and answers them; a failure ends the process, as in every worker."""

    def __init__(self, descriptor: int, jail: Jail) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._jail = jail
        self._serial = 0

    def receive(self) -> tuple[Request, int]:
        """The next request, and the descriptor that came with it (or -1). Ends with the judge."""
        frame, descriptors, _, _ = socket.recv_fds(self._socket, REQUEST_BYTES, 1)
        if len(frame) != REQUEST_BYTES:
            os._exit(0)
        request, self._serial = Request.unpack(frame)
        self._jail.serial(self._serial)
        return request, descriptors[0] if descriptors else -1

    def ready(self, layers: int) -> None:
        """The candidate is loaded, behind these layers of the jail."""
        self._send(Reply(Kind.READY, self._serial, b=layers))

    def done(self) -> None:
        """What was asked is done."""
        self._send(Reply(Kind.DONE, self._serial))

    def times(self, times: list[float]) -> None:
        """The time of each call in ms."""
        for start in range(0, len(times), _TIMES_EACH):
            part = times[start : start + _TIMES_EACH]
            payload = struct.pack(f"={len(part)}d", *part)
            self._send(Reply(Kind.TIMES, self._serial, count=len(part), payload=payload))

    def text(self, text: str) -> None:
        """A text of any length."""
        data = text.encode()
        for start in range(0, max(1, len(data)), PAYLOAD_BYTES):
            part = data[start : start + PAYLOAD_BYTES]
            left = len(data) - start - len(part)
            self._send(Reply(Kind.TEXT, self._serial, count=len(part), a=left, payload=part))

    def fail(self, failure: Failure, reason: str) -> NoReturn:
        """Tell why nothing more will come, and end."""
        payload = " ".join(reason.split()).encode()[: PAYLOAD_BYTES - 1]
        self._send(Reply(Kind.FAILED, self._serial, code=failure, payload=payload))
        os._exit(0)

    def _send(self, reply: Reply) -> None:
        self._socket.send(reply.pack())
