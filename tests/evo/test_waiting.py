"""A run of an author that asks people: it waits, ends when only waiting is left, and goes on."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from concurrent.futures import Future
from pathlib import Path

from evo.engine import Outcome
from evo.executor import Job
from evo.executors.absent import AbsentExecutor
from evo.records import CallState
from evo.requests.board import request_of
from evo.store import Store
from evo.supervision import Stopped, Waits
from evo.watch import Watch
from fitness.evaluation import Evaluation
from tests.evo.asking import Asking, answer, asking
from tests.evo.fakes import FakeExecutor


def purposes(run: Asking) -> list[str]:
    return [entry.request.prompt.purpose for entry in run.open()]


def test_a_run_ends_as_soon_as_only_answers_are_waited_for_and_goes_on_with_them(
    tmp_path: Path,
) -> None:
    run = Asking(tmp_path)
    waits = run.sit()
    assert isinstance(waits, Waits)
    assert (waits.answers, waits.jobs, waits.exit_code) == (1, 0, 3)
    assert purposes(run) == ["port"]
    run.answer_all()
    assert isinstance(run.sit(), Waits)
    assert purposes(run) == ["ideas"]
    run.answer_all()
    waits = run.sit()
    assert isinstance(waits, Waits)
    assert waits.answers == 4  # two ideas in two branches, all open at once
    assert purposes(run) == ["kernel"] * 4
    run.answer_all()
    outcome = run.sit()
    assert isinstance(outcome, Outcome)
    assert outcome.winner is not None
    with Store.open(tmp_path) as store:
        assert len(list(store.individuals())) == 5
        assert {call.state for call in store.calls()} == {CallState.DONE}


def test_what_is_answered_is_judged_although_other_requests_are_open(tmp_path: Path) -> None:
    run = Asking(tmp_path)
    for _ in range(2):
        run.sit()
        run.answer_all()
    run.sit()
    with run.board() as board:
        board.tell(board.open()[2].request.id, "int one = 1;\n")
    waits = run.sit()
    assert isinstance(waits, Waits)
    assert waits.answers == 3
    with Store.open(tmp_path) as store:
        assert [one.id for one in store.individuals()] == ["0-0-0", "0-1-2"]
        assert all(one.evaluation for one in store.individuals())


def test_a_request_keeps_its_id_and_wording_over_sittings(tmp_path: Path) -> None:
    run = Asking(tmp_path)
    run.sit()
    before = run.open()
    run.sit()
    assert run.open() == before


def test_without_the_device_answered_ideas_become_requests_for_code(tmp_path: Path) -> None:
    run = Asking(tmp_path)
    for _ in range(2):
        run.sit()
        run.answer_all()
    here = Asking(tmp_path, executor=AbsentExecutor("fake"))
    waits = here.sit()
    assert isinstance(waits, Waits)
    assert (waits.answers, waits.jobs, waits.exit_code) == (4, 0, 3)
    here.answer_all()
    waits = here.sit()
    assert isinstance(waits, Waits)
    assert (waits.answers, waits.jobs, waits.exit_code) == (0, 4, 4)
    assert isinstance(run.sit(), Outcome)


def test_a_missing_device_ends_the_run_also_where_it_would_wait_for_people(tmp_path: Path) -> None:
    run = Asking(tmp_path)
    run.sit()
    run.answer_all()
    waits = Asking(tmp_path, executor=AbsentExecutor("fake")).sit(until_waiting=False)
    assert isinstance(waits, Waits)
    assert (waits.answers, waits.jobs, waits.exit_code) == (0, 1, 4)


class Notes(Watch):
    def __init__(self) -> None:
        self.asked: list[int] = []
        self.waited = 0

    def asks(self, count: int) -> None:
        self.asked.append(count)

    def waits(self) -> None:
        self.waited += 1


def test_a_run_that_waits_goes_on_as_soon_as_it_is_told(tmp_path: Path) -> None:
    notes = Notes()
    run = Asking(tmp_path, watch=notes)
    crowd = threading.Thread(target=lambda: people(run, notes))
    crowd.start()  # signals come to the main thread only, so the run is there
    outcome = run.sit(until_waiting=False)
    crowd.join()
    assert isinstance(outcome, Outcome)
    assert max(notes.asked) == 4
    assert notes.asked[-1] == 0
    assert notes.waited > 0


def people(run: Asking, notes: Notes) -> None:
    """Answer whatever is open, until the last six requests are answered."""
    answered, deadline = 0, time.monotonic() + 60
    while answered < 6 and time.monotonic() < deadline:
        time.sleep(0.02)
        if notes.waited:
            answered += run.answer_all()


def test_waiting_for_people_costs_no_hours(tmp_path: Path) -> None:
    notes = Notes()
    run = Asking(tmp_path, watch=notes)
    began = time.monotonic()

    def later() -> None:
        time.sleep(1.5)
        people(run, notes)

    crowd = threading.Thread(target=later)
    crowd.start()
    run.sit(until_waiting=False)
    crowd.join()
    with Store.open(tmp_path) as store:
        assert time.monotonic() - began > 1.5
        assert store.seconds() < time.monotonic() - began - 1.0


def test_requests_are_withdrawn_when_the_budget_is_spent_and_open_again_with_a_larger_one(
    tmp_path: Path,
) -> None:
    run = Asking(tmp_path, config=asking(budget__evaluations=3))
    for _ in range(2):
        run.sit()
        run.answer_all()
    run.sit()
    with run.board() as board:
        for entry in board.open()[:2]:
            board.tell(entry.request.id, f"int {entry.request.id[:1]}x{entry.request.id} = 1;\n")
    outcome = run.sit(until_waiting=False)
    assert isinstance(outcome, Outcome)
    assert "3 evaluations is spent" in outcome.reason
    assert len(run.open()) == 2
    more = Asking(tmp_path, config=asking(budget__evaluations=50))
    waits = more.sit()
    assert isinstance(waits, Waits)
    assert waits.answers == 2
    more.answer_all()
    assert isinstance(more.sit(), Outcome)
    with Store.open(tmp_path) as store:
        assert len(list(store.individuals())) == 5


class Slow(FakeExecutor):
    def submit(self, job: Job) -> Future[Evaluation]:
        verdict, later = super().submit(job).result(), Future[Evaluation]()
        threading.Timer(0.2, later.set_result, [verdict]).start()
        return later


def test_a_judge_at_work_is_waited_for(tmp_path: Path) -> None:
    run = Asking(tmp_path, executor=Slow(failing=0))
    run.sit()
    run.answer_all()
    waits = run.sit()
    assert isinstance(waits, Waits)
    assert purposes(run) == ["ideas"]


def test_what_is_told_while_a_judge_works_is_used_in_the_same_sitting(tmp_path: Path) -> None:
    run = Asking(tmp_path)
    for _ in range(2):
        run.sit()
        run.answer_all()
    run.sit()
    with run.board() as board:
        board.tell(board.open()[0].request.id, "int first = 1;\n")

    class Meanwhile(FakeExecutor):
        def judge(self, job: Job) -> Evaluation:
            if "first" in job.kernel.source:
                run.answer_all()
            return super().judge(job)

    run.executor = Meanwhile(failing=0)
    assert isinstance(run.sit(), Outcome)


def test_a_run_that_waits_is_stopped_by_a_signal_and_its_requests_stay_open(tmp_path: Path) -> None:
    run = Asking(tmp_path)
    run.sit()
    before = run.open()
    pid = in_a_process(run)
    time.sleep(0.3)
    os.kill(pid, signal.SIGTERM)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGTERM
    assert run.open() == before
    run.answer_all()
    run.sit()
    assert purposes(run) == ["ideas"]


def in_a_process(run: Asking) -> int:
    """Let the run go on in a process of its own; its id."""
    if pid := os.fork():
        return pid
    code = 0
    try:
        run.sit(until_waiting=False)
    except Stopped as stopped:
        code = stopped.exit_code
    finally:
        os._exit(code)


def test_a_run_killed_at_any_moment_uses_each_answer_once(tmp_path: Path) -> None:
    rng = random.Random(7)
    run = Asking(tmp_path, config=asking(budget__generations=2, population__islands=2))
    run.sit()
    told: dict[str, str] = {}
    for _ in range(60):
        pid = in_a_process(run)
        for entry in rng.sample(run.open(), min(2, len(run.open()))):
            time.sleep(rng.uniform(0, 0.1))
            with run.board() as board:
                told[entry.request.id] = board.tell(entry.request.id, answer(entry)).text
        time.sleep(rng.uniform(0, 0.1))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    while not isinstance(run.sit(), Outcome):
        run.answer_all()
    with Store.open(tmp_path) as store:
        calls = {request_of(call).id: call for call in store.calls()}
        ids = [one.id for one in store.individuals()]
    assert len(told) > 5
    for request, text in told.items():
        reply = calls[request].reply
        assert reply is not None
        assert reply.text == text
    assert len(calls) == 2 * (1 + 2 * 5)  # islands; a port, then ideas and kernels, twice
    assert len(ids) == len(set(ids)) == 2 * (1 + 2 * 4)
