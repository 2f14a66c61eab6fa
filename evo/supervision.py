"""Runs the engine until it ends, a signal comes, or nothing is left to do but wait."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

from evo.engine import Engine, Outcome
from evo.recorder import Recorder
from evo.watch import Watch

ANSWERS, DEVICE = 3, 4


class Stopped(Exception):
    """A signal ended the sitting; ``exit_code`` is 128 + its number."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


class Waits(Exception):
    """Nothing is left to do here but wait: for ``answers`` to requests, for ``jobs`` of a device.

    ``exit_code`` is 3 where somebody can answer now, else 4: only the device is missing.
    """

    def __init__(self, answers: int, jobs: int) -> None:
        missing = {"answers": answers, "verdicts": jobs}
        super().__init__(", ".join(f"{what}: {count}" for what, count in missing.items() if count))
        self.answers, self.jobs = answers, jobs
        self.exit_code = ANSWERS if answers else DEVICE


def supervise(engine: Engine, recorder: Recorder, watch: Watch, until_waiting: bool) -> Outcome:
    """How the run ended. Raises Stopped, Waits, and whatever the engine raises."""
    with asyncio.Runner(loop_factory=engine.waiting.loop) as runner:
        try:
            return runner.run(_supervised(engine, recorder, watch, until_waiting))
        finally:
            engine.postbox.close()


async def _supervised(
    engine: Engine, recorder: Recorder, watch: Watch, until_waiting: bool
) -> Outcome:
    """Cancel the engine at the first signal, or when it waits; a second signal ends us at once."""
    task = asyncio.ensure_future(engine.run())
    reasons: list[Exception] = []

    def stop(number: int) -> None:
        if any(isinstance(reason, Stopped) for reason in reasons):
            os._exit(128 + number)  # every child of ours dies with us
        reasons.insert(0, Stopped(number))
        task.cancel()

    def rest(waits: Waits) -> None:
        if not reasons:
            reasons.append(waits)
            task.cancel()

    _notice(engine, recorder, watch, rest, until_waiting)
    with _handling(stop):
        try:
            return await task
        except asyncio.CancelledError:
            if reasons:
                raise reasons[0] from None
            raise


def _notice(
    engine: Engine,
    recorder: Recorder,
    watch: Watch,
    rest: Callable[[Waits], Any],
    until_waiting: bool,
) -> None:
    """Say what is to be done whenever nothing goes on by itself."""
    waiting, postbox = engine.waiting, engine.postbox

    def idle() -> bool:
        if postbox.look():
            return True
        if engine.budget.exhausted() and postbox.withdraw():
            return True  # what were answered now could not be judged
        if until_waiting or not waiting.answers:
            rest(Waits(waiting.answers, waiting.device))
            return True
        watch.waits()
        return False

    waiting.on_idle = idle
    waiting.on_rest = recorder.pause
    waiting.on_answers = watch.asks


@contextlib.contextmanager
def _handling(stop: Callable[[int], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
