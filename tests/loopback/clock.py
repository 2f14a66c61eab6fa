"""An event loop whose clock jumps: hours of waiting pass at once, connections stay real."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_GRACE_S = 0.004  # real time for the kernel to deliver what is on its way over loopback


class TravellingLoop(asyncio.SelectorEventLoop):
    """Where nothing is left to do but wait for a timer, its time has come.

    ``naps`` counts the waits: a busy wait shows there.
    """

    def __init__(self) -> None:
        self.skipped_s = 0.0
        self.naps = 0
        self._threads_at_work = 0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return super().time() + self.skipped_s

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        self._threads_at_work += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _: object) -> None:
        self._threads_at_work -= 1

    def wait(self, inner: selectors.BaseSelector, timeout: float | None) -> list[Any]:
        if timeout is None or timeout <= _GRACE_S:
            return inner.select(timeout)
        events = inner.select(_GRACE_S)
        self.naps += 1
        if not events and not self._threads_at_work:
            self.skipped_s += timeout - _GRACE_S
        return events


class _Selector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    def __init__(self, loop: TravellingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        return self._loop.wait(_Plain(super().select), timeout)  # type: ignore[arg-type]


class _Plain:
    def __init__(self, select: Any) -> None:
        self.select = select


def travel(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` in a loop whose clock jumps."""
    with asyncio.Runner(loop_factory=TravellingLoop) as runner:
        return runner.run(main)


def now() -> float:
    return asyncio.get_running_loop().time()
