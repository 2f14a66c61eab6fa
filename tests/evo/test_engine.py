"""The search with an author and an executor that answer at once."""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from evo.executor import Job, JobFailed, Purpose
from evo.executors.replay import ReplayExecutor
from evo.individual import Individual
from evo.records import State
from evo.store import Store
from evo.timeline import ReplayedTimeline
from evo.watch import Watch
from fitness.evaluation import Evaluation
from operators.author import Branch, Brief, Desk, Draft, NoFamily, Specimen, Tried
from operators.idea import Category, Idea
from tests.evo.fakes import FakeAuthor, FakeExecutor, Sitting, configuration, timed, verdict
from tests.operators.desks import ScriptedDesk


def individuals(folder: Path) -> list[Individual]:
    with Store.open(folder) as store:
        return list(store.individuals())


def lineage(folder: Path) -> dict[str, tuple[object, ...]]:
    """What must be the same when a run is repeated."""
    return {
        one.id: (one.digest, one.birth.parents, one.birth.operator, one.birth.idea, one.birth.note)
        for one in individuals(folder)
    }


# ---------------------------------------------------------------- the whole


def test_a_run_gets_faster_and_certifies_its_winner(tmp_path: Path) -> None:
    sitting = Sitting(tmp_path)
    outcome = sitting.run()
    assert outcome.winner is not None
    assert outcome.winner.birth.generation > 0
    ports = [one for one in individuals(tmp_path) if one.birth.operator == "port"]
    fastest_port = max(one.fitness.values[0] for one in ports if one.fitness.valid)
    assert outcome.winner.fitness.values[0] > fastest_port
    with Store.open(tmp_path) as store:
        assert store.info.state is State.FINISHED
        assert store.info.winner == store.info.best == outcome.winner.id
        assert store.certificate(outcome.winner.id) is not None


def test_the_winner_is_certified_against_its_parents(tmp_path: Path) -> None:
    sitting = Sitting(tmp_path)
    outcome = sitting.run()
    (certifying,) = [job for job in sitting.executor.jobs if job.purpose is Purpose.CERTIFY]
    assert outcome.winner is not None
    by_id = {one.id: one for one in individuals(tmp_path)}
    parents = [by_id[parent] for parent in outcome.winner.birth.parents]
    assert certifying.rivals == tuple(one.kernel for one in parents if one.fitness.valid)


def test_the_same_seed_gives_the_same_lineage(tmp_path: Path) -> None:
    config = configuration(population__islands=1)
    for name in "ab":
        Sitting(tmp_path / name, config).run()
    Sitting(tmp_path / "c", config.model_copy(update={"seed": 1})).run()
    assert lineage(tmp_path / "a") == lineage(tmp_path / "b")
    assert lineage(tmp_path / "a") != lineage(tmp_path / "c")


def test_an_islands_randomness_does_not_touch_pythons_own(tmp_path: Path) -> None:
    random.seed(3)
    expected = random.Random(3).random()
    Sitting(tmp_path).run()
    assert random.random() == expected


class SlowIsland(FakeAuthor):
    """Lets the islands drift apart: what is asked for island 1 takes its time."""

    async def ideate(
        self, brief: Brief, parent: Specimen, tried: Sequence[Tried], count: int, desk: Desk
    ) -> list[Idea]:
        if parent.id.startswith("1"):
            await asyncio.sleep(0.02)
        return await super().ideate(brief, parent, tried, count, desk)


def test_a_replay_follows_the_recorded_migrants_and_knowledge(tmp_path: Path) -> None:
    original = Sitting(tmp_path / "a", configuration(budget__generations=4), SlowIsland())
    original.run()
    with Store.open(tmp_path / "a") as script:
        assert any(generation.migrants for generation in script.generations())
        again = Sitting(tmp_path / "b", original.config, executor=ReplayExecutor(script))
        recorder = again.recorder()
        engine = again.engine(recorder)
        timeline = ReplayedTimeline(recorder, engine.budget, 2, script)
        engine.world = replace(engine.world, timeline=timeline)
        asyncio.run(engine.run())
        recorder.close()
        with Store.open(tmp_path / "b") as store:
            before = {(g.island, g.number): g for g in script.generations()}
            assert {(g.island, g.number): g for g in store.generations()} == before
            assert store.info.winner == script.info.winner
    assert lineage(tmp_path / "a") == lineage(tmp_path / "b")


# ---------------------------------------------------------------- islands


def test_no_island_waits_for_a_slow_one(tmp_path: Path) -> None:
    class Order(Watch):
        closed_ones: list[tuple[int, int]] = []  # noqa: RUF012

        def closed(self, generation, survivors) -> None:  # type: ignore[no-untyped-def]
            self.closed_ones.append((generation.island, generation.number))

    Sitting(tmp_path, author=SlowIsland(), watch=Order()).run()
    assert Order.closed_ones.index((0, 3)) < Order.closed_ones.index((1, 2))


def test_migrants_go_round_the_ring_as_copies(tmp_path: Path) -> None:
    config = configuration(
        population__islands=3, population__migration__count=2, budget__generations=4
    )
    Sitting(tmp_path, config).run()
    with Store.open(tmp_path) as store:
        moves = store.migrations()
        survivors = {(g.island, g.number): g.survivors or () for g in store.generations()}
    assert {(move.source, move.target) for move in moves} == {(0, 1), (1, 2), (2, 0)}
    assert all(move.sent_in > 0 for move in moves)
    for move in moves:
        assert move.individual in survivors[move.source, move.sent_in][:2]
    taken = [move for move in moves if move.taken_in is not None]
    assert any(move.individual in survivors[move.target, move.taken_in] for move in taken)
    parents = {p for one in individuals(tmp_path) for p in one.birth.parents}
    assert parents & {move.individual for move in taken}


def test_one_island_sends_nobody(tmp_path: Path) -> None:
    Sitting(tmp_path, configuration(population__islands=1)).run()
    with Store.open(tmp_path) as store:
        assert store.migrations() == []


def test_survivors_are_accepted_distinct_and_no_more_than_the_population_holds(
    tmp_path: Path,
) -> None:
    Sitting(tmp_path).run()
    by_id = {one.id: one for one in individuals(tmp_path)}
    with Store.open(tmp_path) as store:
        for generation in store.generations():
            alive = [by_id[one] for one in generation.survivors or ()]
            assert all(one.fitness.valid for one in alive)
            assert len({one.digest for one in alive}) == len(alive) <= 4


# ---------------------------------------------------------------- budgets


def test_evaluations_are_counted_to_the_last_one(tmp_path: Path) -> None:
    sitting = Sitting(tmp_path, configuration(budget__evaluations=17))
    outcome = sitting.run()
    assert outcome.reason == "the budget of 17 evaluations is spent"
    assert len(sitting.executor.searched) == 17
    with Store.open(tmp_path) as store:
        assert store.spent().evaluations == 17


def test_a_larger_budget_continues_the_generation_that_was_cut_short(tmp_path: Path) -> None:
    config = configuration(population__islands=1)
    Sitting(tmp_path / "whole", config).run()
    for evaluations in (5, 11, 23, 40, 500):
        part = configuration(population__islands=1, budget__evaluations=evaluations)
        Sitting(tmp_path / "parts", part).run()
    assert lineage(tmp_path / "parts") == lineage(tmp_path / "whole")


def test_generations_are_counted_after_the_ports(tmp_path: Path) -> None:
    Sitting(tmp_path, configuration(budget__generations=2)).run()
    assert {one.birth.generation for one in individuals(tmp_path)} == {0, 1, 2}


def test_hours_are_running_time_over_all_sittings(tmp_path: Path) -> None:
    config = configuration(budget={"generations": None, "hours": 0.4 / 3600, "evaluations": None})
    outcome = Sitting(tmp_path, config, FakeAuthor(delay_s=0.01)).run()
    assert outcome.reason == "the budget of 0.000111111 hours is spent"
    before = len(individuals(tmp_path))
    Sitting(tmp_path, config).run()
    assert len(individuals(tmp_path)) == before


def test_an_island_rests_when_its_authors_have_nothing_new(tmp_path: Path) -> None:
    class Silent(FakeAuthor):
        async def ideate(self, *args: object) -> list[Idea]:  # type: ignore[override]
            return []

    config = configuration(
        variation__rates={"mutation": 1.0}, budget={"generations": None, "hours": 1}
    )
    outcome = Sitting(tmp_path, config, Silent()).run()
    assert outcome.reason == "no author has anything new"
    with Store.open(tmp_path) as store:
        assert Counter(event.kind for event in store.events())["rest"] == 2


# ---------------------------------------------------------------- verdicts


def test_equal_kernels_are_judged_once_and_share_the_verdict(tmp_path: Path) -> None:
    class Repeating(FakeAuthor):
        async def implement(
            self, brief: Brief, parent: Specimen, idea: Idea, branch: Branch, desk: Desk
        ) -> Draft | None:
            alone = Branch(0, 1)
            draft = await super().implement(brief, parent, idea, alone, ScriptedDesk())
            assert draft
            layout = replace(draft.kernel, source=f"// other words\n{draft.kernel.source}\n\n")
            return Draft(layout, idea) if branch.number else draft

    sitting = Sitting(tmp_path, author=Repeating())
    sitting.run()
    born = individuals(tmp_path)
    digests = Counter(one.digest for one in born)
    assert max(digests.values()) > 1
    judged = [kernel.digest("// header") for kernel in sitting.executor.searched]
    assert len(judged) == len(set(judged)) == len(digests)
    assert all(one.evaluation is not None for one in born)


class Scripted(FakeExecutor):
    """Gives each kernel a time by its number, as its author writes it: ``int ms = 5;``."""

    def judge(self, job: Job) -> Evaluation:
        ms = job.kernel.source.partition("ms = ")[2].partition(";")[0]
        return timed(float(ms), spread=0.05) if float(ms) else Evaluation(Status.INCORRECT, "zero")


class Times(FakeAuthor):
    """Ports and then children with times from a list."""

    def __init__(self, *times: float) -> None:
        super().__init__(ports=1)
        self._times = list(times)

    def _next(self) -> Kernel:
        ms = self._times.pop(0) if self._times else 50 + random.random()
        return Kernel(f"int ms = {ms};", "cpp")

    async def port(self, brief: Brief, branch: Branch, desk: Desk) -> Draft | None:
        if branch.number:
            return None
        return Draft(self._next(), Idea("plain", Category.COMPUTE, "fake"))

    async def implement(
        self, brief: Brief, parent: Specimen, idea: Idea, branch: Branch, desk: Desk
    ) -> Draft | None:
        return Draft(self._next(), idea)


ONE_LINE = {
    "population": {"size": 1, "elite": 1, "islands": 1, "offspring": 1},
    "variation": {"rates": {"mutation": 1.0}, "ideas": 1, "branches": 1, "repairs": 0},
}


def test_the_best_is_replaced_only_by_a_significant_win(tmp_path: Path) -> None:
    config = configuration(**ONE_LINE, budget={"generations": 3})
    sitting = Sitting(tmp_path, config, Times(10.0, 9.6, 9.2, 8.0), Scripted())
    outcome = sitting.run()
    with Store.open(tmp_path) as store:
        best = [event.subject for event in store.events() if event.kind == "best"]
        alive = [generation.survivors for generation in store.generations()]
    assert outcome.winner is not None
    # 9.6 and 9.2 overlap with 10; 8 lies wholly below
    assert alive == [("0-0-0",), ("0-0-0",), ("0-0-0",), ("0-3-0",)]
    assert best == ["0-0-0", "0-3-0", "0-3-0"]


def test_an_incorrect_kernel_never_beats_a_correct_one(tmp_path: Path) -> None:
    config = configuration(**ONE_LINE, budget={"generations": 2})
    Sitting(tmp_path, config, Times(10.0, 0.0, 0.0), Scripted()).run()
    with Store.open(tmp_path) as store:
        assert [generation.survivors for generation in store.generations()] == [("0-0-0",)] * 3


@pytest.mark.parametrize("speedup", [math.nan, math.inf, -1.0, 0.0, None])
def test_an_insane_speedup_counts_as_none(tmp_path: Path, speedup: float | None) -> None:
    class Insane(FakeExecutor):
        def judge(self, job: Job) -> Evaluation:
            found = verdict(job.kernel, failing=0.0)
            if "port" in job.kernel.source and "more" not in job.kernel.source:
                return found
            return replace(found, speedup={} if speedup is None else {"eager": speedup})

    outcome = Sitting(tmp_path, executor=Insane()).run()
    assert outcome.winner is not None
    assert math.isfinite(outcome.winner.fitness.values[0])
    assert "more" not in outcome.winner.kernel.source


def test_failures_go_back_for_repair_but_cheats_do_not(tmp_path: Path) -> None:
    sitting = Sitting(tmp_path, configuration(variation__repairs=2))
    sitting.run()
    born = individuals(tmp_path)
    by_id = {one.id: one for one in born}
    repairs = [one for one in born if one.birth.operator == "repair"]
    assert any(one.id.endswith("r2") for one in repairs)
    for one in repairs:
        (failed,) = one.birth.parents
        assert by_id[failed].evaluation is not None
        assert by_id[failed].evaluation.status in (Status.INCORRECT, Status.COMPILE_ERROR)
        if by_id[failed].birth.operator != "tuning":  # which has no idea to hand on
            assert one.birth.idea == by_id[failed].birth.idea
    beyond = {one.id for one in born if one.evaluation and one.evaluation.status is Status.HACK}
    assert beyond
    assert not beyond & {parent for one in born for parent in one.birth.parents}


def test_a_run_without_a_correct_kernel_goes_on_and_ends_saying_so(tmp_path: Path) -> None:
    sitting = Sitting(tmp_path, executor=FakeExecutor(failing=1.0))
    outcome = sitting.run()
    assert outcome.winner is None
    assert outcome.reason == "all generations are done; no kernel was accepted"
    ports = [one for one in individuals(tmp_path) if one.birth.operator == "port"]
    assert {one.birth.generation for one in ports} == {0, 1, 2, 3}


def test_too_few_ports_are_made_up_for_in_generation_0(tmp_path: Path) -> None:
    executor = FakeExecutor(failing=0.0)
    Sitting(tmp_path, author=FakeAuthor(ports=1), executor=executor).run()
    first = [one for one in individuals(tmp_path) if one.birth.generation == 0]
    assert Counter(one.birth.operator for one in first)["port"] == 2  # one on each island
    with Store.open(tmp_path) as store:
        generations = [g for g in store.generations() if g.number == 0]
    assert [len(g.survivors or ()) for g in generations] == [4, 4]


def test_a_winner_that_fails_to_be_certified_is_demoted_for_the_next_best(tmp_path: Path) -> None:
    class Strict(FakeExecutor):
        def judge(self, job: Job) -> Evaluation:
            certifying = [one for one in self.jobs if one.purpose is Purpose.CERTIFY]
            if len(certifying) == 1 and job is certifying[0]:
                return Evaluation(Status.INCORRECT, "certification: wrong on hidden inputs")
            return super().judge(job)

    sitting = Sitting(tmp_path, executor=Strict())
    outcome = sitting.run()
    first, second = [job.kernel for job in sitting.executor.jobs if job.purpose is Purpose.CERTIFY]
    assert outcome.winner is not None
    assert outcome.winner.kernel == second != first
    with Store.open(tmp_path) as store:
        (event,) = [event for event in store.events() if event.kind == "demoted"]
        assert store.individual(event.subject).kernel == first
        assert event.detail["reason"] == "incorrect: certification: wrong on hidden inputs"
        assert store.info.best == store.info.winner == outcome.winner.id


def test_a_failing_machine_costs_one_verdict_and_three_in_a_row_end_the_sitting(
    tmp_path: Path,
) -> None:
    class Flaky(FakeExecutor):
        def judge(self, job: Job) -> Evaluation:
            if len(self.jobs) in (5, 9):
                raise JobFailed("no answer")
            return super().judge(job)

    class Broken(FakeExecutor):
        def judge(self, job: Job) -> Evaluation:
            raise JobFailed("no device")

    Sitting(tmp_path / "flaky", executor=Flaky()).run()
    pending = [one for one in individuals(tmp_path / "flaky") if one.evaluation is None]
    assert len(pending) == 2
    with pytest.raises(JobFailed, match="no device"):
        Sitting(tmp_path / "broken", executor=Broken()).run()


def test_other_hardware_judges_the_survivors_again(tmp_path: Path) -> None:
    Sitting(tmp_path, configuration(budget__generations=1)).run()
    with Store.open(tmp_path) as store:
        alive = {one for g in store.generations() if g.number == 1 for one in g.survivors or ()}
        digests = {store.individual(one).digest for one in alive}
    elsewhere = Sitting(tmp_path, executor=FakeExecutor(hardware="other"))
    outcome = elsewhere.run()
    judged = {kernel.digest("// header") for kernel in elsewhere.executor.searched}
    assert digests <= judged
    assert outcome.winner is not None
    with Store.open(tmp_path) as store:
        assert store.evaluation(outcome.winner.digest, "other", "search") is not None


# ---------------------------------------------------------------- authors


def test_authors_are_told_what_was_tried_and_how_it_went(tmp_path: Path) -> None:
    config = configuration(budget__generations=4, variation__repairs=0)
    sitting = Sitting(tmp_path, config, executor=FakeExecutor(failing=0.6))
    sitting.run()
    by_id = {one.id: one for one in individuals(tmp_path)}
    asked = [about for kind, about in sitting.author.calls if kind == "ideate"]
    specimen, tried = asked[-1]  # type: ignore[misc]
    assert len(specimen.ancestry) >= 2
    assert specimen.ancestry[0].text == "a plain kernel"
    gains = [one.gain for one in tried if one.gain is not None]
    assert gains
    outcomes = {one.outcome for _, told in asked for one in told}  # type: ignore[misc]
    assert {"ok", "hack", "compile_error: made up"} <= outcomes
    own = {
        one.birth.idea
        for one in by_id.values()
        if one.birth.parents == (specimen.id,)
        and one.birth.generation < 4
        and one.birth.operator != "repair"
        and one.birth.idea
    }
    assert {one.idea.text for one in tried if one.here} >= {idea.text for idea in own}


def test_authors_are_told_what_other_constants_gave_and_what_a_failed_kernel_was_made_of(
    tmp_path: Path,
) -> None:
    config = configuration(
        budget__generations=6,
        variation__repairs=1,
        variation__tunings=2,
        variation__rates={"mutation": 1.0, "tuning": 0.5, "crossover": 0.0},
    )
    sitting = Sitting(tmp_path, config, executor=FakeExecutor(failing=0.3))
    sitting.run()
    by_id = {one.id: one for one in individuals(tmp_path)}
    told = [about[0] for kind, about in sitting.author.calls if kind == "ideate"]  # type: ignore[index]
    tuned = {what for specimen in told for what in specimen.tuned}

    assert tuned
    notes = {one.birth.note for one in by_id.values() if one.birth.operator == "tuning"}
    assert {what for what, _ in tuned} <= notes
    failed = [about for kind, about in sitting.author.calls if kind == "repair"]
    assert failed
    for specimen in failed:
        base = by_id[specimen.id].birth.base  # type: ignore[attr-defined]
        assert specimen.origin == (by_id[base].kernel if base else None)


def test_an_author_that_does_not_serve_the_task_is_passed_over(tmp_path: Path) -> None:
    class Specialist(FakeAuthor):
        async def port(self, *args: object) -> Draft | None:  # type: ignore[override]
            raise NoFamily("only softmax")

    both = Sitting(tmp_path / "both", author=Specialist("specialist"), more=[FakeAuthor()])
    assert both.run().winner is not None
    with pytest.raises(NoFamily, match="only softmax"):
        Sitting(tmp_path / "alone", author=Specialist()).run()


def test_whoever_had_an_idea_carries_it_out(tmp_path: Path) -> None:
    Sitting(tmp_path, author=FakeAuthor("one"), more=[FakeAuthor("two")]).run()
    mutants = [one for one in individuals(tmp_path) if one.birth.operator == "mutation"]
    assert {one.birth.author for one in mutants} == {"one", "two"}
    assert all(one.birth.idea and one.birth.idea.author == one.birth.author for one in mutants)


def test_what_an_author_breaks_ends_the_sitting_with_that_error(tmp_path: Path) -> None:
    class Broken(FakeAuthor):
        async def implement(self, *args: object) -> Draft | None:  # type: ignore[override]
            raise ZeroDivisionError("our fault")

    with pytest.raises(ZeroDivisionError, match="our fault"):
        Sitting(tmp_path, author=Broken()).run()


def test_all_operators_take_part_by_their_rates(tmp_path: Path) -> None:
    rates = {"mutation": 1.0, "crossover": 1.0, "tuning": 1.0}
    Sitting(tmp_path, configuration(variation__rates=rates, budget__generations=6)).run()
    born = Counter(one.birth.operator for one in individuals(tmp_path))
    assert {"port", "mutation", "crossover", "tuning", "repair"} == set(born)
    assert all(
        len(set(one.birth.parents)) == 2
        for one in individuals(tmp_path)
        if one.birth.operator == "crossover"
    )
