"""Where a run waits for the answers of people and agents."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from evo.requests.answers import Answers
from evo.requests.record import Told, request_id
from evo.waiting import Waiting
from operators.llm import Prompt

LOOK_S = 0.5  # between two looks at the file while somebody waits


class Postbox:
    """Gives each request its answer as soon as somebody has told it.

    The answers stay in their file: a run that is killed after it has read one, and before it has
    recorded it, finds it again.
    """

    def __init__(self, folder: Path, waiting: Waiting) -> None:
        self._folder = folder
        self._waiting = waiting
        self._answers: Answers | None = None
        self._open: dict[str, asyncio.Future[Told | None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.withdrawn = False

    @property
    def open(self) -> tuple[str, ...]:
        """The ids of the requests that wait for an answer now."""
        return tuple(self._open)

    async def answer(self, key: str, prompt: Prompt) -> Told | None:
        """What was told to ``prompt``, asked at the place ``key``; waits until it is.

        None once ``withdraw`` was called: there will be no answer in this sitting.
        """
        if self.withdrawn:
            return None
        request = request_id(key, prompt)
        future = self._open.setdefault(request, asyncio.get_running_loop().create_future())
        self._look_later()
        try:
            with self._waiting.for_answer():
                self.look()
                return await asyncio.shield(future)
        finally:
            self._open.pop(request, None)

    def look(self) -> bool:
        """Hand out what was told meanwhile; whether there was any."""
        found = self._told()
        for request, told in found.items():
            if not self._open[request].done():
                self._open[request].set_result(told)
        return bool(found)

    def withdraw(self) -> bool:
        """Nothing that is answered from now on could be used; whether somebody was waiting."""
        self.withdrawn = True
        for future in self._open.values():
            if not future.done():
                future.set_result(None)
        return bool(self._open)

    def close(self) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()
        if self._answers is not None:
            self._answers.close()
            self._answers = None

    def _told(self) -> dict[str, Told]:
        if self._answers is None:
            self._answers = Answers.open(self._folder, patience_s=0)
        try:
            return self._answers.first(self._open)
        except sqlite3.OperationalError:  # somebody is writing to it just now: the next look
            return {}

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._timed)

    def _timed(self) -> None:
        self._timer = None
        if self._open:
            self.look()
            self._look_later()
