"""The end of a run: who is certified, who is mended, and what a later sitting makes of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from cuda_sandbox.report import Status
from evo import finale
from evo.engine import Outcome
from evo.executor import Job, Purpose
from evo.records import RunInfo
from evo.report.view import RunView
from evo.store import Store
from evo.supervision import Waits
from fitness.evaluation import Evaluation
from operators.author import Brief, Desk, Draft, NoFamily, Specimen
from tests.evo.asking import Asking, asking
from tests.evo.fakes import FakeAuthor, FakeExecutor, Sitting, configuration, timed

FAULT = {"checks": {"racecheck": "failed: a race"}}


class Mender(FakeAuthor):
    """Mends by one more statement, ``MENDED``, which costs time if it is ``slow``."""

    def __init__(self, slow: bool = False, wrong: int = 0) -> None:
        super().__init__()
        self.slow = slow
        self.wrong = wrong  # so many mends in a row do not pass their verdict

    async def repair(self, brief: Brief, failed: Specimen, desk: Desk) -> Draft | None:
        draft = await super().repair(brief, failed, desk)
        assert draft is not None
        wrong = failed.kernel.source.count("WRONG") < self.wrong
        word = "WRONG" if wrong else "MENDED" + " SLOW" * self.slow
        source = f"{draft.kernel.source}// {word} of {failed.id}\n"
        return Draft(type(draft.kernel)(source, "cpp"), draft.idea)

    @property
    def asked(self) -> list[Specimen]:
        """Whom it was to mend."""
        return [about for kind, about in self.calls if kind == "repair"]  # type: ignore[misc]


class Strict(FakeExecutor):
    """Faster with each line; certifies what was ``MENDED``, unless nothing helps."""

    def __init__(self, status: Status = Status.INCORRECT, mendable: bool = True) -> None:
        super().__init__()
        self.status = status
        self.mendable = mendable

    def judge(self, job: Job) -> Evaluation:
        source = job.kernel.source
        last = source.splitlines()[-1]
        if job.purpose is Purpose.SEARCH and "WRONG" in last:
            return Evaluation(Status.INCORRECT, "wrong", device="fake")
        if job.purpose is Purpose.SEARCH or (self.mendable and "MENDED" in last):
            return timed(10 / source.count("\n") * (1.5 if "SLOW" in last else 1.0))
        return Evaluation(self.status, "racecheck", certificate=FAULT, device="fake")


def sitting(
    folder: Path, author: FakeAuthor | None = None, executor: Strict | None = None, **sections: int
) -> Sitting:
    settings = {"budget__generations": 2, **sections}
    return Sitting(folder, configuration(**settings), author or Mender(), executor or Strict())


def test_a_winner_that_fails_its_certificate_is_mended_and_certified(tmp_path: Path) -> None:
    author = Mender()
    outcome = sitting(tmp_path, author).run()
    (failed,) = author.asked
    assert failed.evaluation.certificate == FAULT
    assert failed.origin is None  # it may have inherited the fault
    assert outcome.winner is not None
    assert outcome.winner.id == f"{failed.id}r1"
    assert outcome.winner.birth.operator == "repair"
    assert outcome.winner.birth.parents == (failed.id,)


def test_another_sitting_does_nothing_again(tmp_path: Path) -> None:
    first = sitting(tmp_path).run()
    again = sitting(tmp_path)
    repeated = again.run()
    assert repeated.winner is not None
    assert first.winner is not None
    assert repeated.winner.id == first.winner.id
    assert again.executor.jobs == []
    assert again.author.calls == []
    with Store.open(tmp_path) as store:
        assert Counter(event.kind for event in store.events())["demoted"] == 1


def test_it_stands_in_the_losers_place_when_the_run_goes_on(tmp_path: Path) -> None:
    outcome = sitting(tmp_path).run()
    assert outcome.winner is not None
    (loser,) = outcome.winner.birth.parents
    sitting(tmp_path, budget__generations=4).run()
    island = outcome.winner.birth.island
    with Store.open(tmp_path) as store:
        lasting = {one.number: one.survivors for one in store.generations() if one.island == island}
    assert loser in (lasting[2] or ())
    assert outcome.winner.id in (lasting[3] or ())
    assert all(loser not in (lasting[number] or ()) for number in (3, 4))


@pytest.mark.parametrize("evaluations", range(14, 60, 5))
def test_a_run_that_was_cut_short_anywhere_is_mended_and_goes_on(
    tmp_path: Path, evaluations: int
) -> None:
    """Also where a recorded plan names a parent that has failed its certificate since."""
    cut = sitting(tmp_path, budget__evaluations=evaluations).run()
    assert cut.winner is not None
    assert cut.winner.birth.operator == "repair"
    longer = sitting(tmp_path, budget__evaluations=evaluations + 40, budget__generations=4).run()
    assert longer.winner is not None
    with Store.open(tmp_path) as store:
        demoted = {event.subject for event in store.events() if event.kind == "demoted"}
        assert store.generations()[-1].number > 0
    assert longer.winner.id not in demoted


def test_one_that_is_mended_is_tried_at_once_however_slow(tmp_path: Path) -> None:
    """The next best may have the same fault; it is tried only because it is surely faster."""
    author, executor = Mender(slow=True), Strict()
    outcome = sitting(tmp_path, author, executor).run()
    certified = [job.kernel.source for job in executor.jobs if job.purpose is Purpose.CERTIFY]
    assert "SLOW" in certified[1]
    assert outcome.winner is not None
    assert outcome.winner.birth.operator == "repair"


@pytest.mark.parametrize(("repairs", "wrong"), [(1, 0), (2, 0), (2, 1), (3, 2)])
def test_each_is_mended_so_often_as_configured_and_no_more(
    tmp_path: Path, repairs: int, wrong: int
) -> None:
    author, executor = Mender(wrong=wrong), Strict(mendable=False)
    outcome = sitting(tmp_path, author, executor, variation__repairs=repairs).run()
    assert outcome.winner is None
    tries = finale.MOST_CERTIFIED
    certified = [job for job in executor.jobs if job.purpose is Purpose.CERTIFY]
    assert len(certified) == tries * (1 + repairs - wrong)
    assert len(author.asked) == tries * repairs
    assert len({one.id.partition("r")[0] for one in author.asked}) == tries
    assert outcome.reason.endswith("was certified: kernelevo show RUN ID says why")


@pytest.mark.parametrize(
    ("executor", "repairs"), [(Strict(Status.HACK), 1), (Strict(), 0)], ids=["a cheat", "none"]
)
def test_who_is_not_mended(tmp_path: Path, executor: Strict, repairs: int) -> None:
    author = Mender()
    outcome = sitting(tmp_path, author, executor, variation__repairs=repairs).run()
    assert outcome.winner is None
    assert author.asked == []


def test_where_nobody_answers_in_time_the_next_best_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(Mender):
        async def repair(self, brief: Brief, failed: Specimen, desk: Desk) -> Draft | None:
            await asyncio.sleep(60)
            return None

    class Lenient(Strict):
        def judge(self, job: Job) -> Evaluation:
            certified = [one for one in self.jobs if one.purpose is Purpose.CERTIFY]
            if job.purpose is Purpose.CERTIFY and len(certified) == 3:
                return timed(1.0)
            return super().judge(job)

    monkeypatch.setattr(finale, "MENDING_S", 0.05)
    outcome = sitting(tmp_path, Slow(), Lenient()).run()
    assert outcome.winner is not None


def test_where_nobody_can_mend_the_next_best_is_tried(tmp_path: Path) -> None:
    class Unable(Mender):
        async def repair(self, brief: Brief, failed: Specimen, desk: Desk) -> Draft | None:
            raise NoFamily("nobody")

    outcome = sitting(tmp_path, Unable()).run()
    assert outcome.winner is None
    assert "none of the 10 that were tried" in outcome.reason


def test_people_are_waited_for_with_a_mend_only_while_there_are_hours_left(tmp_path: Path) -> None:
    executor = Strict(mendable=False)
    run = Asking(tmp_path, asking(variation__repairs=1), executor)
    while isinstance(run.sit(), Waits) and run.open()[0].request.prompt.purpose != "repair":
        run.answer_all()
    spent = Asking(tmp_path, asking(variation__repairs=1, budget__hours=1e-9), executor)
    outcome = spent.sit()
    assert isinstance(outcome, Outcome), "it waits for people although its hours are spent"
    assert outcome.reason.startswith("the budget of")


def test_the_last_evaluations_do_not_keep_a_winner_from_being_mended(tmp_path: Path) -> None:
    outcome = sitting(tmp_path, budget__evaluations=20).run()
    assert outcome.reason == "the budget of 20 evaluations is spent"
    assert outcome.winner is not None
    assert outcome.winner.birth.operator == "repair"


def test_reports_know_who_failed_a_certificate(tmp_path: Path) -> None:
    sitting(tmp_path, executor=Strict(mendable=False)).run()
    with Store.open(tmp_path) as store:
        info: RunInfo = store.info
        view = RunView.read(store)
        failed = {verdict.digest for verdict in store.verdicts() if verdict.purpose == "certify"}
    assert info.best is None
    assert {view.by_id[one].digest for one in view.demoted} == failed
    assert view.winner not in view.demoted
