"""Profiles in a run: taken when nobody waits, told to authors, never in the way."""

from __future__ import annotations

import re
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CompileReport, Status
from evo.cli.main import main
from evo.executor import Job, JobFailed, Purpose
from evo.executors._jobs import Jobs, Ticket
from evo.executors._judge_process import Order
from evo.store import Store
from fitness.bottleneck import Bottleneck
from fitness.evaluation import Evaluation
from tests.evo.fakes import FakeExecutor, Sitting, configuration

REPORT = CompileReport(Status.OK, "", "key", 0.1)


class Profiler(FakeExecutor):
    """Finds every kernel bound by dram."""

    def judge(self, job: Job) -> Evaluation:
        if job.purpose is not Purpose.PROFILE:
            return super().judge(job)
        assert job.verdict is not None
        return replace(job.verdict, bottleneck=Bottleneck("dram", notes=("a note",)))


def profiled(sitting: Sitting) -> list[Job]:
    return [job for job in sitting.executor.jobs if job.purpose is Purpose.PROFILE]


def run(folder: Path, how: str, executor: FakeExecutor | None = None) -> Sitting:
    config = configuration(fitness={"profile": how})
    sitting = Sitting(folder, config, executor=executor or Profiler())
    sitting.outcome = sitting.run()  # type: ignore[attr-defined]
    return sitting


def test_kernels_at_the_top_are_profiled_once_each_and_authors_are_told(tmp_path: Path) -> None:
    sitting = run(tmp_path, "always")

    sources = [job.kernel.source for job in profiled(sitting)]
    assert sources
    assert len(set(sources)) == len(sources)
    told = [about[0] for kind, about in sitting.author.calls if kind == "ideate"]
    found = [parent.evaluation.bottleneck for parent in told]
    assert Bottleneck("dram", notes=("a note",)) in found
    with Store.open(tmp_path) as store:
        purposes = [verdict.purpose for verdict in store.verdicts()]
    assert purposes.count("profile") == len(sources)


@pytest.mark.parametrize("how", ["never", "auto"])
def test_without_anybody_to_read_them_no_profiles_are_taken(tmp_path: Path, how: str) -> None:
    assert profiled(run(tmp_path, how)) == []


def test_a_profiler_that_always_fails_stops_nothing(tmp_path: Path) -> None:
    class Broken(FakeExecutor):
        def judge(self, job: Job) -> Evaluation:
            if job.purpose is Purpose.PROFILE:
                raise JobFailed("no counters")
            return super().judge(job)

    sitting = run(tmp_path, "always", Broken())

    assert sitting.outcome.winner is not None  # type: ignore[attr-defined]
    with Store.open(tmp_path) as store:
        failures = [event for event in store.events() if event.kind == "failure"]
    assert {event.subject for event in failures} == {"profile"}
    assert failures[0].detail == {"reason": "no counters"}


def test_show_tells_the_bottleneck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sitting = run(tmp_path / "populations" / "fake", "always")
    monkeypatch.chdir(tmp_path)
    with Store.open(tmp_path / "populations" / "fake") as store:
        top = profiled(sitting)[0].kernel.source
        one = next(each for each in store.individuals() if each.kernel.source == top)

    text = CliRunner().invoke(main, ["show", "fake", one.id]).output

    assert re.search(r"  profile +bound by dram\n  profile +a note\n", text)


def ticket(purpose: Purpose) -> Ticket:
    return Ticket(Order(Job(Kernel("", "cpp"), purpose), REPORT), Future())


def test_a_profile_is_taken_when_no_other_job_waits() -> None:
    jobs = Jobs()
    profile, first, last = map(ticket, (Purpose.PROFILE, Purpose.SEARCH, Purpose.CERTIFY))
    for one in (profile, first, last):
        jobs.put(one)

    assert [jobs.get() for _ in range(3)] == [first, last, profile]


def test_a_job_that_nobody_wants_any_more_is_passed_over_and_a_wake_comes_first() -> None:
    jobs = Jobs()
    gone, wanted = ticket(Purpose.SEARCH), ticket(Purpose.SEARCH)
    gone.future.cancel()
    jobs.put(gone)
    jobs.put(wanted)
    jobs.wake()

    assert jobs.get() is None
    assert jobs.get() is wanted
