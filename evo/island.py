"""One island: parents are selected, children are born and judged, the fittest stay."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field

from evo.champion import place
from evo.generation import Planner
from evo.individual import Birth, Individual
from evo.records import Generation, Phase, Step
from evo.survival import accepted, survivors
from evo.world import World
from fitness.evaluation import Evaluation
from operators import variation
from operators.author import Specimen
from operators.chance import chance
from operators.variation import Child, Order
from operators.variation.repair import BEYOND_REPAIR
from operators.variation.tuning import AUTHOR as TUNING

BARREN = 5  # generations in a row that bring no new kernel, after which an island rests


@dataclass(slots=True)
class Brood:
    """A generation while its children are being born."""

    generation: Generation
    members: dict[str, Individual]  # who may be a parent, by id
    seen: int  # up to where its authors may know of profiles
    resumed: bool  # an earlier sitting began it
    refusals: int  # of the budget, when the step began
    born: list[Individual] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a child comes from: see `evo.individual.Birth`."""

    operator: str
    slot: str
    parents: tuple[str, ...]
    base: str


class Island:
    """A population with a loop of its own; it shares judges and authors, and waits for no other."""

    def __init__(self, number: int, world: World) -> None:
        self.number = number
        self.population: list[Individual] = []
        self.rests = False
        self._world = world
        self._planner = Planner(world.config, world.toolbox)

    async def evolve(self) -> None:
        """Generation after generation, until the budget is spent or nothing new comes."""
        upcoming, barren = await self._recall(), 0
        while generation := await self._world.timeline.begin(self.number, upcoming):
            self._world.watch.begun(generation)
            refusals = self._world.budget.refusals
            guests = await self._members(generation.migrants)
            offspring = await self._breed(generation, accepted([*self.population, *guests]))
            if self._world.budget.refusals > refusals:
                return  # cut short: it is completed when the run goes on with a larger budget
            await self._close(generation, [*guests, *offspring])
            barren = 0 if self._any_new(offspring, generation) else barren + 1
            if barren == BARREN:
                self._rest()
                return
            upcoming += 1

    def _rest(self) -> None:
        self.rests = True
        message = f"island {self.number} rests: no new kernel in {BARREN} generations"
        self._world.recorder.add_event("rest", str(self.number))
        self._world.watch.say(message)

    async def _recall(self) -> int:
        """Take the population up where it was left; the number of the generation to begin."""
        last = self._world.timeline.last(self.number)
        if last is None:
            return 0
        self.population = accepted(await self._members(last.survivors or ()))
        return last.number + 1

    async def mend(
        self, loser: Individual, certificate: Evaluation, attempts: int
    ) -> Individual | None:
        """Have one that failed its certificate mended, as one that fails its verdict is.

        The last attempt, of the same generation as the loser; None if there was none.
        """
        recorder, birth = self._world.recorder, loser.birth
        generation = recorder.generation(birth.island, birth.generation)
        assert generation is not None
        phase = recorder.plan(birth.island, birth.generation)[-1]
        seen = self._world.timeline.seen(generation, phase)
        failed = self._world.toolbox.clone(loser)
        failed.judged(certificate, self._world.config.fitness.baseline)
        brood = Brood(generation, {}, seen, True, self._world.budget.refusals)
        _, _, number, earlier = place(loser.id)
        seats = [f"{number}r{earlier + attempt}" for attempt in range(1, attempts + 1)]
        mended = await self._mend_often(brood, failed, seats, birth.base)
        return None if mended is failed else mended

    async def _members(self, ids: Sequence[str]) -> list[Individual]:
        """Copies of individuals in the store, judged on this hardware if they were not yet.

        In the place of one that failed its certificate stands what mends it.
        """
        return await self._copies(self._standing(ids))

    async def _copies(self, ids: Sequence[str]) -> list[Individual]:
        recorder, clone = self._world.recorder, self._world.toolbox.clone
        copies = [clone(recorder.individual(identity)) for identity in ids]
        await asyncio.gather(*(self._judge(one) for one in copies))
        return copies

    def _standing(self, ids: Iterable[str]) -> list[str]:
        """Those that have failed no certificate, then what mends the others."""
        places = {identity: self._world.recorder.standing(identity) for identity in ids}
        heirs = [one for identity, found in places.items() for one in found if one != identity]
        return list(dict.fromkeys([*(one for one in places if one in places[one]), *heirs]))

    async def _breed(self, generation: Generation, pool: list[Individual]) -> list[Individual]:
        """All children of a generation. Where there are no parents, ports come first."""
        if pool or self._planned(generation):
            phase = self._phase(generation, 0, lambda rng: self._planner.offspring(rng, pool))
            return await self._carry_out(generation, phase, pool)
        refusals = self._world.budget.refusals
        phase = self._phase(generation, 0, lambda _: self._planner.ports())
        ports = await self._carry_out(generation, phase, [])
        if self._world.budget.refusals > refusals:
            return ports  # there will be more of them
        found = accepted(ports)
        phase = self._phase(
            generation, 1, lambda rng: self._planner.filling(rng, found, len(ports))
        )
        return ports + await self._carry_out(generation, phase, found)

    def _planned(self, generation: Generation) -> bool:
        """Whether steps on parents are on record, whatever became of those parents since."""
        first = self._world.recorder.plan(generation.island, generation.number)[:1]
        return any(step.parents for phase in first for step in phase.steps)

    def _phase(
        self, generation: Generation, number: int, plan: Callable[[random.Random], list[Step]]
    ) -> Phase:
        """The steps as planned and recorded earlier, or planned and recorded now."""
        recorder, place = self._world.recorder, (generation.island, generation.number)
        phases = recorder.plan(*place)
        if number < len(phases):
            return phases[number]
        with chance(self._seed(generation, f"plan {number}")) as rng:
            steps = plan(rng)
        return recorder.add_phase(*place, steps)

    def _seed(self, generation: Generation, purpose: str) -> str:
        seed = self._world.config.seed
        return f"{seed}/{generation.island}/{generation.number}/{purpose}"

    async def _carry_out(
        self, generation: Generation, phase: Phase, parents: Sequence[Individual]
    ) -> list[Individual]:
        """All steps at once; children in the order of their slots."""
        members = {parent.id: parent for parent in parents}
        members |= await self._fallen(phase, members)
        seen = self._world.timeline.seen(generation, phase)
        resumed = phase.seen <= self._world.recorder.opened_at
        async with asyncio.TaskGroup() as group:
            refusals = self._world.budget.refusals
            brood = Brood(generation, members, seen, resumed, refusals)
            for step in phase.steps:
                group.create_task(self._step(group, brood, step))
        return sorted(brood.born, key=lambda one: place(one.id))

    async def _fallen(self, phase: Phase, members: Container[str]) -> dict[str, Individual]:
        """Parents of a recorded plan who have failed their certificate since."""
        ids = {parent for step in phase.steps for parent in step.parents if parent not in members}
        return {one.id: one for one in await self._copies(sorted(ids))}

    async def _step(self, group: asyncio.TaskGroup, brood: Brood, step: Step) -> None:
        """One act of variation. A mutation that nobody has an idea for becomes tuning."""
        refusals = self._world.budget.refusals
        delivered = await self._vary(group, brood, step)
        stand_in = self._planner.stand_in(step)
        # nobody asked is not the same as nobody with an idea
        asked = self._world.budget.refusals == refusals
        if not delivered and stand_in is not None and asked:
            await self._vary(group, brood, stand_in)

    async def _vary(self, group: asyncio.TaskGroup, brood: Brood, step: Step) -> int:
        delivered = 0

        def deliver(child: Child) -> asyncio.Task[Specimen | None]:
            nonlocal delivered
            delivered += 1
            return group.create_task(self._raise(brood, step, child))

        parents = [brood.members[parent] for parent in step.parents]
        order = self._order(brood, f"{step.slot}/{step.operator}", parents)
        await variation.operator(step.operator).vary(self._world.toolbox, order, deliver)
        return delivered

    def _order(self, brood: Brood, key: str, parents: Sequence[Individual]) -> Order:
        memory, header, generation = self._world.memory, self._world.header, brood.generation
        full_key = f"{generation.island}-{generation.number}-{key}"
        return Order(
            full_key,
            tuple(memory.specimen(parent, generation.horizon, brood.seen) for parent in parents),
            self._planner.counts,
            random.Random(f"{self._world.config.seed}/{full_key}"),
            generation.horizon,
            lambda kernel: memory.known(kernel.digest(header), generation.horizon),
        )

    async def _raise(self, brood: Brood, step: Step, child: Child) -> Specimen | None:
        """A child is born, judged, and mended if it failed, each attempt being an individual.

        The last of them as its operator may see it (without ancestry), if it was accepted.
        """
        slot, base = str(step.slot + child.seat), "".join(step.parents[:1])
        if child.tuned and self._world.budget.refusals > brood.refusals:
            return None  # who is best may change when the generation is completed
        if child.tuned:
            origin = Origin(TUNING, slot, (child.tuned,), base)
        else:
            origin = Origin(step.operator, slot, step.parents, base)
        individual = await self._birth(brood, origin, child)
        # nobody is asked to mend a value that did not fit: there are others
        if child.author != TUNING:
            repairs = self._world.config.variation.repairs
            seats = [f"{slot}r{attempt}" for attempt in range(1, repairs + 1)]
            individual = await self._mend_often(brood, individual, seats, base)
        if individual.evaluation is None or not individual.fitness.valid:
            return None
        return Specimen(individual.id, individual.kernel, individual.evaluation)

    async def _mend_often(
        self, brood: Brood, failed: Individual, slots: Sequence[str], base: str
    ) -> Individual:
        """The last attempt at mending one that failed; itself where there is none."""
        individual = failed
        for slot in slots:
            mended = await self._mend(brood, individual, slot, base)
            if mended is None:
                break
            individual = mended
        return individual

    async def _mend(
        self, brood: Brood, failed: Individual, slot: str, base: str
    ) -> Individual | None:
        if failed.evaluation is None or failed.evaluation.status in BEYOND_REPAIR:
            return None
        children: list[Child] = []

        async def take(child: Child) -> None:
            children.append(child)

        order = self._order(brood, slot, [failed])
        await variation.operator("repair").vary(self._world.toolbox, order, take)
        if not children:
            return None
        origin = Origin("repair", slot, (failed.id,), base)
        return await self._birth(brood, origin, children[0])

    async def _birth(self, brood: Brood, origin: Origin, child: Child) -> Individual:
        """The individual with its verdict; recorded, unless an interrupted sitting did so."""
        place = (brood.generation.island, brood.generation.number)
        identity = "-".join(map(str, (*place, origin.slot)))
        birth = Birth(
            *place,
            origin.operator,
            child.author,
            origin.parents,
            child.idea,
            child.note,
            child.model,
            origin.base,
        )
        digest = child.kernel.digest(self._world.header)
        individual = Individual(identity, child.kernel, digest, birth)
        recorder = self._world.recorder
        if not (brood.resumed and recorder.has(identity)):
            recorder.add_individual(individual)
        await self._judge(individual)
        brood.born.append(individual)
        self._have_profiled(individual, brood.born)
        self._world.watch.judged(individual)
        return individual

    async def _judge(self, individual: Individual) -> None:
        """Get the verdict; without one (the budget) the individual has no fitness."""
        world = self._world
        individual.evaluation = None
        del individual.fitness.values
        evaluation = await world.toolbox.evaluate(individual.kernel, individual.digest)
        if evaluation is None:
            return
        individual.judged(evaluation, world.config.fitness.baseline)
        world.champion.consider(individual)

    def _have_profiled(self, one: Individual, born: Sequence[Individual]) -> None:
        """Look into a kernel that is elite as things stand, before anybody writes on from it."""
        if not self._world.profiling or not one.fitness.valid:
            return
        rivals = accepted([*self.population, *born])
        faster = sum(other.fitness.values > one.fitness.values for other in rivals)
        if faster < max(1, self._world.config.population.elite):
            self._world.toolbox.profile(one.kernel, one.digest, one.evaluation)

    async def _arrivals(self, born: Sequence[Individual]) -> list[Individual]:
        """As a generation is completed, some of its first may have failed their certificates."""
        known = {one.id: one for one in born}
        standing = self._standing(known)
        late = await self._copies([one for one in standing if one not in known])
        return [known[one] for one in standing if one in known] + late

    def _any_new(self, offspring: Sequence[Individual], generation: Generation) -> bool:
        known = self._world.memory.known
        return any(not known(child.digest, generation.horizon) for child in offspring)

    async def _close(self, generation: Generation, born: Sequence[Individual]) -> None:
        """Who survives, and whose copies leave."""
        world, settings = self._world, self._world.config.population
        arrivals = await self._arrivals(born)
        with chance(self._seed(generation, "survivors")):
            select = world.toolbox.select
            self.population = survivors(
                self.population, arrivals, settings.size, settings.elite, select
            )
        migrants = world.toolbox.migrate(self.number, generation.number, self.population)
        world.timeline.close(generation, self.population, migrants)
        for elite in self.population[: max(1, settings.elite)]:
            self._have_profiled(elite, ())  # also who came from elsewhere
        world.watch.closed(generation, self.population)
