"""The queue before the judges: what nobody waits for is taken last."""

from __future__ import annotations

import itertools
import queue
from concurrent.futures import Future
from dataclasses import dataclass, field

from evo.executor import Purpose
from evo.executors._judge_process import Order
from fitness.evaluation import Evaluation

_WAKE, _SOON, _LATER = range(3)


@dataclass(frozen=True, slots=True)
class Ticket:
    """A compiled job that waits for a judge."""

    order: Order
    future: Future[Evaluation]


@dataclass(order=True, frozen=True, slots=True)
class _Place:
    rank: int
    number: int
    ticket: Ticket | None = field(compare=False)


class Jobs:
    """Tickets in the order of their coming; those of purpose ``profile`` behind all others."""

    def __init__(self) -> None:
        self._queue: queue.PriorityQueue[_Place] = queue.PriorityQueue()
        self._numbers = itertools.count()

    def put(self, ticket: Ticket) -> None:
        """Add a ticket."""
        rank = _LATER if ticket.order.job.purpose is Purpose.PROFILE else _SOON
        self._queue.put(_Place(rank, next(self._numbers), ticket))

    def wake(self) -> None:
        """Let one who waits go on without a ticket."""
        self._queue.put(_Place(_WAKE, next(self._numbers), None))

    def get(self) -> Ticket | None:
        """The next ticket, as soon as there is one that is still wanted; None to be woken."""
        while True:
            ticket = self._queue.get().ticket
            if ticket is None or not ticket.future.cancelled():
                return ticket

    def drain(self) -> list[Ticket]:
        """The tickets that nobody took, once nobody will."""
        left: list[Ticket] = []
        while not self._queue.empty():
            if (ticket := self._queue.get_nowait().ticket) is not None:
                left.append(ticket)
        return left
