"""How many calls at once, and how many requests and tokens in a minute."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

from operators.llm import Limits

_MINUTE_S = 60.0


class Entry:
    """An amount in a window, which may be put right later."""

    __slots__ = ("amount", "at")

    def __init__(self, at: float, amount: float) -> None:
        self.at = at
        self.amount = amount


class Window:
    """At most ``limit`` in any 60 seconds; whoever comes first is let in first."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._entries: deque[Entry] = deque()
        self._turn = asyncio.Lock()
        self._corrected = asyncio.Event()

    async def take(self, amount: float) -> Entry:
        """Wait until there is room. An amount above the limit waits for an empty window."""
        async with self._turn:
            while (wait := self._wait(min(amount, self._limit))) > 0:
                await self._pause(wait)
            entry = Entry(asyncio.get_running_loop().time(), amount)
            self._entries.append(entry)
            return entry

    def correct(self, entry: Entry, amount: float) -> None:
        """Put an amount right; whoever waits looks again."""
        entry.amount = amount
        self._corrected.set()

    async def _pause(self, seconds: float) -> None:
        self._corrected.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._corrected.wait()

    def _wait(self, amount: float) -> float:
        """Seconds until the oldest entries have left enough room."""
        now = asyncio.get_running_loop().time()
        while self._entries and self._entries[0].at + _MINUTE_S <= now:
            self._entries.popleft()
        excess = sum(entry.amount for entry in self._entries) + amount - self._limit
        for entry in self._entries:
            if excess <= 0:
                break
            excess -= entry.amount
            if excess <= 0:
                return entry.at + _MINUTE_S - now
        return 0.0


class Admission:
    """A request that was let through; what it takes is put right when it is known."""

    def __init__(self, taken: dict[str, tuple[Window, Entry]]) -> None:
        self._taken = taken

    def used(self, tokens: int | None) -> None:
        """What it really took; None: nobody knows, so it stays as it was taken to be."""
        if tokens is not None and "tokens" in self._taken:
            window, entry = self._taken["tokens"]
            window.correct(entry, tokens)

    def withdrawn(self) -> None:
        """It was not sent after all."""
        for window, entry in self._taken.values():
            window.correct(entry, 0)


class Pace:
    """The limits of one model. ``slots`` bounds how many calls are under way."""

    def __init__(self, limits: Limits) -> None:
        self.slots = asyncio.Semaphore(limits.concurrency)
        rates = {"requests": limits.requests_per_minute, "tokens": limits.tokens_per_minute}
        self._windows = {name: Window(rate) for name, rate in rates.items() if rate is not None}

    async def admit(self, tokens: int) -> Admission:
        """Wait until a request that may take ``tokens`` keeps within the rates."""
        amounts = {"requests": 1, "tokens": tokens}
        taken: dict[str, tuple[Window, Entry]] = {}
        admission = Admission(taken)
        try:
            for name, window in self._windows.items():
                taken[name] = (window, await window.take(amounts[name]))
        except BaseException:
            admission.withdrawn()
            raise
        return admission
