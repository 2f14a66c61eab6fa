"""The gate of a line: shut while the server is in trouble, when one call at a time tries."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

# seconds; the longest pause between two tries of an outage, and of what takes a person to mend
LONGEST_S = 60.0
LONGEST_ASKED_S = 3600.0


def backoff(level: int, rng: random.Random, longest_s: float = LONGEST_S) -> float:
    """Seconds before try number ``level`` (from 1): doubling, half of it by chance.

    Chance keeps many clients from coming back at the same moment.
    """
    whole = min(longest_s, 2.0 ** min(level, 30))
    return whole * (0.5 + 0.5 * rng.random())


class Gate:
    """Open while all is well. Shut, it lets the callers through one by one, each after a pause."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._turn = asyncio.Lock()
        self._until: float | None = None  # shut, with the next try at this time of the loop
        self._era = (
            0  # how often it was shut: tells a try from before from one that was let through
        )
        self._level = 0
        self._strikes = 0

    @property
    def shut(self) -> bool:
        """Whether the server is taken to be out."""
        return self._until is not None

    @asynccontextmanager
    async def passage(self) -> AsyncIterator[Passage]:
        """Wait until a try may be made; keeps others away while the gate is shut."""
        probing = await self._enter()
        try:
            yield Passage(self, probing)
        finally:
            if probing:
                self._turn.release()

    async def _enter(self) -> bool:
        if not self.shut:
            return False
        await self._turn.acquire()
        try:
            await self._pause()
        except BaseException:
            self._turn.release()
            raise
        if not self.shut:
            self._turn.release()
        return self.shut

    async def _pause(self) -> None:
        while self._until is not None and (wait := self._until - _now()) > 0:
            await asyncio.sleep(wait)

    def _strike(
        self, era: int, allowed: int, longest_s: float, asked_s: float | None
    ) -> float | None:
        self._strikes += 1
        if self._strikes < allowed and not self.shut:
            return None
        if era < self._era:
            # the same trouble, met by a call that was under way: no reason to wait longer
            if self._until is not None and asked_s is not None:
                self._until = max(self._until, _now() + min(asked_s, LONGEST_ASKED_S))
            return None
        self._level += 1
        wait = backoff(self._level, self._rng, longest_s)
        if asked_s is not None:  # a little later than asked for, and not all at the same moment
            wait = min(asked_s, LONGEST_ASKED_S) + 0.1 + self._rng.random()
        self._era += 1
        self._until = _now() + wait
        return wait

    def _open(self, era: int) -> bool:
        if era < self._era:
            return False  # it answers what was asked before the trouble began
        reopened, self._until = self.shut, None
        self._level = self._strikes = 0
        return reopened


class Passage:
    """One try. ``probing``: the gate is shut, and this try finds out whether it may open."""

    def __init__(self, gate: Gate, probing: bool) -> None:
        self._gate = gate
        self._probing = probing
        self._era = gate._era

    @property
    def overtaken(self) -> bool:
        """Whether the gate was shut since, so that this try must not be made now."""
        return self._gate.shut and not self._probing

    def answered(self) -> bool:
        """The server works. True if that is news."""
        return self._gate._open(self._era)

    def failed(
        self, allowed: int, longest_s: float = LONGEST_S, asked_s: float | None = None
    ) -> float | None:
        """The server is in trouble; after ``allowed`` failures in a row the gate is shut.

        ``asked_s`` is how long the server asked to be left alone. Returns the pause until the next
        try in seconds; None if the gate stays as it is.
        """
        return self._gate._strike(self._era, allowed, longest_s, asked_s)


def _now() -> float:
    return asyncio.get_running_loop().time()
