"""Knows when a run has nothing left to do but wait, for answers or for a device that is not here.

Everything that ends by itself (a judge's job, a model's call) is done inside ``working()``. All
else in the engine happens between two of its event loop's naps. So when the loop goes to sleep with
nothing at work, only somebody outside can wake the run: that is exact, and needs no timer.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class Waiting:
    """Counts what is at work and what is waited for.

    ``on_idle`` is called when the loop goes to sleep while nothing is at work and something is
    waited for; it answers whether it gave the loop something to do. ``on_rest`` is told after each
    such sleep how many seconds it lasted, ``on_answers`` how many answers are waited for whenever
    that changes.
    """

    def __init__(self) -> None:
        self.on_idle: Callable[[], bool] = lambda: False
        self.on_rest: Callable[[float], None] = lambda _: None
        self.on_answers: Callable[[int], None] = lambda _: None
        self.answers = 0
        self.device = 0
        self._at_work = 0

    @property
    def idle(self) -> bool:
        """Whether everything that was begun waits for an answer or for the device."""
        return not self._at_work and bool(self.answers or self.device)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Something is under way that will end by itself."""
        self._at_work += 1
        try:
            yield
        finally:
            self._at_work -= 1

    @contextmanager
    def for_answer(self) -> Iterator[None]:
        """Somebody must answer a request first."""
        self.answers += 1
        self.on_answers(self.answers)
        try:
            yield
        finally:
            self.answers -= 1
            self.on_answers(self.answers)

    @contextmanager
    def for_device(self) -> Iterator[None]:
        """A device is needed that is not here."""
        self.device += 1
        try:
            yield
        finally:
            self.device -= 1

    def loop(self) -> asyncio.AbstractEventLoop:
        """An event loop that notices when it goes to sleep."""
        return asyncio.SelectorEventLoop(_Selector(self))

    def sleep(self, select: Callable[[float | None], T], timeout: float | None) -> T:
        """Let the loop sleep up to ``timeout`` seconds, or not where there is something to do."""
        if timeout == 0 or not self.idle:
            return select(timeout)
        if self.on_idle():
            return select(0)
        began = time.monotonic()
        try:
            return select(timeout)
        finally:
            self.on_rest(time.monotonic() - began)


class _Selector(selectors.DefaultSelector):
    """The loop calls ``select`` with a timeout of 0 as long as anything is ready to go on."""

    def __init__(self, waiting: Waiting) -> None:
        super().__init__()
        self._waiting = waiting

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return self._waiting.sleep(super().select, timeout)
