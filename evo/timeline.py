"""When a generation begins, and what is known then: decided once, recorded, and followed later."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from evo.budget import Budget
from evo.individual import Individual
from evo.recorder import Recorder
from evo.records import Generation, Phase
from evo.store import Store


class Timeline:
    """Begins generations with whatever has arrived by then; no island waits for another."""

    def __init__(self, recorder: Recorder, budget: Budget, islands: int) -> None:
        self._recorder = recorder
        self._budget = budget
        self._closed = [-1] * islands
        for generation in recorder.generations():
            if generation.survivors is not None:
                last = self._closed[generation.island]
                self._closed[generation.island] = max(last, generation.number)

    def last(self, island: int) -> Generation | None:
        """An island's last closed generation."""
        return self._recorder.generation(island, self._closed[island])

    async def begin(self, island: int, number: int) -> Generation | None:
        """The generation as it was begun, or begun now; None where the budget allows none."""
        if not self._budget.allows_generation(number):
            return None
        started = self._recorder.generation(island, number)
        if started is None:
            started = await self._decide(island, number)
            if started is not None:
                self._recorder.start_generation(started)
        return started

    def seen(self, generation: Generation, phase: Phase) -> int:
        """Up to which record the authors of a phase know of profiles."""
        del generation
        return phase.seen

    async def _decide(self, island: int, number: int) -> Generation | None:
        return Generation(island, number, tuple(self._closed), self._recorder.waiting(island))

    def close(
        self,
        generation: Generation,
        survivors: Sequence[Individual],
        migrants: Sequence[tuple[Individual, int]],
    ) -> None:
        """Record who survived and who leaves, in one go."""
        ids = [one.id for one in survivors]
        leaving = [(one.id, target) for one, target in migrants]
        self._recorder.close_generation(generation.island, generation.number, ids, leaving)
        self._closed[generation.island] = generation.number


class ReplayedTimeline(Timeline):
    """Begins generations as another run did: with the same migrants and the same knowledge.

    A generation that the other did not complete is not begun.
    """

    def __init__(self, recorder: Recorder, budget: Budget, islands: int, script: Store) -> None:
        super().__init__(recorder, budget, islands)
        complete = (one for one in script.generations() if one.survivors is not None)
        self._script = {(one.island, one.number): replace(one, survivors=None) for one in complete}
        self._progress = asyncio.Event()
        self._store = script

    def seen(self, generation: Generation, phase: Phase) -> int:
        """As it was in the other run."""
        place = (generation.island, generation.number)
        theirs = {one.steps: one.seen for one in self._store.plan(*place)}
        return theirs.get(phase.steps, phase.seen)

    async def _decide(self, island: int, number: int) -> Generation | None:
        scripted = self._script.get((island, number))
        while scripted is not None and not self._ready(scripted):
            self._progress.clear()
            await self._progress.wait()
        return scripted

    def _ready(self, scripted: Generation) -> bool:
        reached = all(
            closed >= known for closed, known in zip(self._closed, scripted.horizon, strict=True)
        )
        return reached and set(scripted.migrants) <= set(self._recorder.waiting(scripted.island))

    def close(
        self,
        generation: Generation,
        survivors: Sequence[Individual],
        migrants: Sequence[tuple[Individual, int]],
    ) -> None:
        """Record it, and let those go on that waited for it."""
        super().close(generation, survivors, migrants)
        self._progress.set()
