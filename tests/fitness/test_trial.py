"""A trial on a device that is still busy when the kernel has answered, or that others use."""

import contextlib
import random
import types

import pytest
import torch

from cuda_sandbox.report import CandidateFailure, Status
from fitness import trial as trials
from fitness.clocks import Reading
from fitness.pulse import DeviceShared
from fitness.trial import Trial


class Worker:
    closed = False
    at_work = False

    def close(self):
        self.closed = True

    def run(self, count, *, flush):
        self.at_work = True
        return [1.0] * count


class Pulse:
    """``disturbed`` as ``rule(worker)`` says; a rest ends the work that a call has left."""

    def __init__(self, worker, rule):
        self.worker = worker
        self.rule = rule

    def disturbed(self):
        found = self.rule(self.worker)
        self.worker.at_work = False
        return found


@pytest.fixture
def look(monkeypatch):
    monkeypatch.setattr(trials.time, "sleep", lambda _: None)
    content = types.SimpleNamespace(fresh=lambda _: types.SimpleNamespace(leaves={}))

    def looks(rule, others=False):
        worker = Worker()
        arena = types.SimpleNamespace(device=torch.device("cuda:0"))
        overhead = types.SimpleNamespace(undisturbed=lambda: worker.closed and not others)
        trial = Trial(
            *(worker, arena, random.Random(1), 1), pulse=Pulse(worker, rule), overhead=overhead
        )
        trial._read = lambda run, batch: run()
        for _ in range(200):
            worker.run(1, flush=True)
            if trial._glance():
                trial._explain_work([content])

    return looks


@pytest.mark.parametrize(
    "rule",
    [lambda worker: worker.at_work, lambda worker: not worker.closed],
    ids=["after each call", "as long as its process lives"],
)
def test_a_device_that_is_busy_with_the_kernel_gives_it_away(look, rule):
    with pytest.raises(CandidateFailure, match="still at work after launch's work") as caught:
        look(rule)
    assert caught.value.status is Status.HACK


def test_a_device_that_others_keep_busy_says_nothing_about_the_kernel(look):
    with pytest.raises(DeviceShared, match="cuda:0 is kept busy by something else"):
        look(lambda _: True)


def test_a_neighbour_that_happens_to_rest_with_the_kernel_is_not_held_against_it(look):
    with pytest.raises(DeviceShared, match="cuda:0 is kept busy by something else"):
        look(lambda worker: worker.at_work, others=True)


@pytest.mark.parametrize("burst", [1, 2, 3, 5])
def test_other_programs_that_use_the_device_now_and_then_are_not_held_against_it(look, burst):
    chance, left = random.Random(burst), [0]

    def rule(_):
        left[0] = left[0] - 1 if left[0] else chance.choice([0, 0, burst])
        return left[0] > 0

    look(rule)


def test_looking_whose_work_it_is_spoils_nothing_that_is_still_to_be_checked(monkeypatch):
    """Which is done by calls on other arguments, whose outputs take the place of the first ones."""
    monkeypatch.setattr(trials.time, "sleep", lambda _: None)
    states = iter([True, False] * 1000)
    pulse = types.SimpleNamespace(disturbed=lambda: next(states))
    content = types.SimpleNamespace(fresh=lambda _: types.SimpleNamespace(leaves=object()))
    worker = types.SimpleNamespace(run=print, frozen=contextlib.nullcontext)
    trial = Trial(worker, Arena(), random.Random(1), 1, pulse=pulse)
    there, checked = [], []

    def read(run, batch):
        there[:] = batch
        return Reading(1.0, 1.3), [None] * len(batch)

    monkeypatch.setattr(trial, "_read", read)
    monkeypatch.setattr(
        trial, "_check", lambda at, content, _: checked.append(there[at] is content.leaves)
    )
    for _ in range(100):
        trial.timed([content])

    assert len(checked) == 100
    assert all(checked)


class Arena:
    device = torch.device("cuda:0")

    def __len__(self):
        return 16

    def outputs(self, at=0):
        return ()

    def inspect(self, leaves, glimpse, at=0):
        pass


class Content:
    leaves = {}  # noqa: RUF012

    def fresh(self, rng):
        return self

    def complaint(self, outputs):
        return ""


@pytest.fixture
def compare(monkeypatch):
    """Both clocks on calls that take ``seen`` ms and are told to take ``told``."""

    monkeypatch.setattr(trials.time, "sleep", lambda _: None)

    def compared(told, seen, noise=0.0, others=False, in_rows=True, busy=1000):
        rng = random.Random(1)
        ended, late = [], iter([seen] * busy + [told] * 1000)
        worker = types.SimpleNamespace(
            run=print,
            run_empty=print,
            frozen=contextlib.nullcontext,
            close=lambda: ended.append(True),
        )
        overhead = types.SimpleNamespace(
            ms=lambda: 0.2, undisturbed=lambda: bool(ended) and not others
        )
        trial = Trial(worker, Arena(), rng, 1, overhead=overhead, in_rows=in_rows)
        trial._checked = lambda contents, sets, run: Reading(told, seen + 0.3)
        trial._read = lambda run, batch: (Reading(0.0, 0.3), [None])
        trial._row = lambda contents, calls: 0.2 + calls * next(late) + rng.random() * noise
        return trial.compare_clocks([Content()])

    return compared


def test_a_clock_that_lies_about_a_short_call_is_found_out(compare):
    assert compare(told=0.02, seen=0.02) == 0
    with pytest.raises(CandidateFailure, match=r"tells 0\.02 ms a call") as found:
        compare(told=0.02, seen=0.03)
    assert found.value.status is Status.HACK


@pytest.mark.parametrize("in_rows", [True, False], ids=["kernel", "module"])
def test_on_a_device_that_others_use_a_clock_is_neither_believed_nor_held_against_it(
    compare, in_rows
):
    with pytest.raises(CandidateFailure, match="clocks"):
        compare(told=0.02, seen=0.25, in_rows=in_rows)
    with pytest.raises(DeviceShared, match="too busy"):
        compare(told=0.02, seen=0.25, others=True, in_rows=in_rows)


def test_one_that_looks_slow_for_a_moment_is_looked_at_again(compare):
    assert compare(told=0.02, seen=0.25, busy=9) == 0


def test_a_kernel_cannot_make_the_noise_that_would_excuse_it(compare):
    with pytest.raises(CandidateFailure, match="clocks"):
        compare(told=0.02, seen=0.05, noise=50.0)


def test_a_worker_that_answers_late_after_a_rest_does_so_without_a_call_too(monkeypatch):
    """While outputs are checked it stands still; Python takes long to come back from that."""
    worker = types.SimpleNamespace(run=print, run_empty=print, frozen=contextlib.nullcontext)
    trial = Trial(worker, Arena(), random.Random(1), 1)
    rested = []

    def read(run, batch):
        late = 0.5 * len(rested)
        rested.clear()
        return Reading(0.01, 0.31 + late), [None]

    monkeypatch.setattr(trial, "_read", read)
    monkeypatch.setattr(Content, "complaint", lambda *_: rested.append(True) and "")

    assert trial.compare_clocks([Content()]) == 0
