"""The search: islands side by side until the budget is spent, then the winner is certified."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evo.budget import Budget
from evo.champion import Champion
from evo.config import RunConfig
from evo.docket import Docket
from evo.executor import Executor
from evo.finale import Finale
from evo.individual import Individual
from evo.island import Island
from evo.ledger import ASK, Ledger
from evo.memory import Memory
from evo.recorder import Recorder
from evo.records import State
from evo.replay import OnMiss, Recording, Verdicts
from evo.requests.postbox import Postbox
from evo.studio import Staff, Studio
from evo.switchboard import Switchboard
from evo.timeline import ReplayedTimeline, Timeline
from evo.toolbox import build
from evo.waiting import Waiting
from evo.watch import Watch
from evo.world import World
from fitness.evaluation import Evaluation
from operators.author import Brief


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: the certified winner with its certificate, or why there is none."""

    winner: Individual | None
    certificate: Evaluation | None
    reason: str


class Engine:
    """Runs one sitting of a run: from wherever its record stands to the end of its budget."""

    def __init__(
        self,
        config: RunConfig,
        brief: Brief,
        staff: Staff,
        executor: Executor,
        recorder: Recorder,
        watch: Watch,
        recording: Recording | None = None,
    ) -> None:
        self.waiting = Waiting()
        self.postbox = Postbox(recorder.path.parent, self.waiting)
        Ledger(recorder).write_off()
        self.budget = Budget(config.budget, recorder.spent(), recorder.elapsed)
        self._recorder = recorder
        self._watch = watch
        self._docket = Docket(executor, recorder, self.budget, self.waiting)
        self._hardware = executor.hardware
        asks = recording is None or recording.on_miss is OnMiss.ASK
        self._models = staff.models if asks else ()
        self._people = any(model.provider == ASK for model in self._models)
        self.switchboard = Switchboard(
            recorder, self.budget, watch, self.postbox, self.waiting, recording
        )
        memory = _memory(recorder, recording)
        studio = Studio(brief, staff, recorder, memory, self.switchboard)
        self.world = World(
            config,
            brief.header,
            build(config, studio, self._docket),
            recorder,
            memory,
            self.budget,
            _timeline(recorder, self.budget, config.population.islands, recording),
            Champion(recorder, watch),
            watch,
            profiling=_profiling(config, staff),
        )

    async def run(self) -> Outcome:
        """Evolve all islands, then certify. Raises what an author or a machine's failure raises."""
        await self.switchboard.check(self._models)
        await self._recall_champion()
        islands = [Island(n, self.world) for n in range(self.world.config.population.islands)]
        try:
            async with asyncio.TaskGroup() as group:
                for island in islands:
                    group.create_task(island.evolve())
        except BaseExceptionGroup as group:
            raise _cause(group) from group
        resting = all(island.rests for island in islands)
        return await self._conclude(islands, "no author has anything new" if resting else "")

    async def _recall_champion(self) -> None:
        """The best of earlier sittings; judged again where that was on other hardware."""
        best = self._recorder.info.best
        if best is None:
            return
        individual = self._recorder.individual(best)
        evaluation = await self._docket.evaluate(individual.kernel, individual.digest)
        if evaluation is not None and not self._recorder.demoted(individual.digest):
            individual.judged(evaluation, self.world.config.fitness.baseline)
            self.world.champion.restore(individual)

    async def _conclude(self, islands: Sequence[Island], why: str) -> Outcome:
        """Certify the best, and what mends it where it fails."""
        ended = self.budget.exhausted() or why or "all generations are done"
        if not self.budget.close_search():
            self.postbox.withdraw()  # nobody is there to be waited for
        finale = Finale(self.world, self._docket, self._hardware, islands, self._people)
        sealed = await finale.seal()
        if sealed is not None:
            return self._end(Outcome(sealed.individual, sealed.certificate, ended))
        if finale.without_verdict is not None:
            return self._uncertified(finale.without_verdict)
        return self._end(Outcome(None, None, f"{ended}; {_nobody(finale.failed)}"))

    def _uncertified(self, best: Individual) -> Outcome:
        """The machine failed, not the kernel: running it again tries once more."""
        reason = f"{best.id} could not be certified: {self._docket.last_failure}"
        return self._end(Outcome(None, None, reason), State.FAILED)

    def _end(self, outcome: Outcome, state: State = State.FINISHED) -> Outcome:
        winner = outcome.winner
        if winner is not None:
            (speedup,) = winner.fitness.values
            self._recorder.set_best(winner.id, speedup=speedup)
        info = replace(
            self._recorder.info,
            state=state,
            winner=winner.id if winner else None,
            outcome=outcome.reason,
        )
        self._recorder.set_info(info)
        return outcome


def _nobody(failed: int) -> str:
    """Why there is no winner."""
    if not failed:
        return "no kernel was accepted"
    return f"none of the {failed} that were tried was certified: kernelevo show RUN ID says why"


def _profiling(config: RunConfig, staff: Staff) -> bool:
    """Whether profiles are wanted: as configured, or where a model or a person is to read them."""
    wanted = {"always": True, "never": False}
    return wanted.get(config.fitness.profile, bool(staff.models))


def _memory(recorder: Recorder, recording: Recording | None) -> Memory:
    if recording is None:
        return Memory(recorder)
    profiles = recording.store if recording.verdicts is Verdicts.RECORDED else None
    return Memory(recorder, recording.store, profiles)


def _timeline(
    recorder: Recorder, budget: Budget, islands: int, recording: Recording | None
) -> Timeline:
    """With the recorded verdicts the order of events is the recorded one too."""
    if recording is None or recording.verdicts is Verdicts.NEW:
        return Timeline(recorder, budget, islands)
    return ReplayedTimeline(recorder, budget, islands, recording.store)


def _cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first failure behind a group of them: the others are its consequences."""
    first = group.exceptions[0]
    return _cause(first) if isinstance(first, BaseExceptionGroup) else first
