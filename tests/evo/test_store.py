"""The store: what is written is read back, also by others and after a kill."""

from __future__ import annotations

import math
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Resources, Status
from evo.individual import Birth, Individual
from evo.recorder import Recorder
from evo.records import Call, Generation, Migration, RunInfo, State, Step
from evo.schema import StoreError
from evo.store import Store
from fitness.evaluation import Demand, Evaluation, Precision, Seconds, Tier
from operators.idea import Category, Idea
from operators.llm import Usage
from tests.evo.fakes import HEADER, description, timed

IDEA = Idea("load four floats at once", Category.MEMORY, "me")
FULL = replace(
    timed(2.0),
    precision=Precision(Tier.TF32, 1e-3, 2e-4, 1e-7, 1e-8, "tiny"),
    seconds=Seconds(0.2, None),
    resources=(Resources("k", 40, 1024, 0, 8),),
    certificate={"checks": {"memcheck": "not run: no device"}, "spread": math.inf},
)


def info() -> RunInfo:
    return RunInfo("r", "name: r\n", description(), Demand(), "cpp", HEADER, {"torch": "2"}, "2025")


def individual(identity: str, source: str = "int a;", parents: tuple[str, ...] = ()) -> Individual:
    birth = Birth(int(identity[0]), 0, "mutation", "me", parents, IDEA if parents else None, "note")
    kernel = Kernel(source, "cpp", ("-O2",))
    return Individual(identity, kernel, kernel.digest(HEADER), birth)


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder.create(tmp_path / "r", info())


def test_the_runs_description_reads_back(recorder: Recorder, tmp_path: Path) -> None:
    recorder.set_info(replace(info(), state=State.FINISHED, winner="0-0-1", outcome="done"))
    with Store.open(tmp_path / "r") as store:
        assert store.info == replace(info(), state=State.FINISHED, winner="0-0-1", outcome="done")


def test_an_individual_reads_back_with_its_latest_verdict(recorder: Recorder) -> None:
    parent, child = individual("0-0-0"), individual("0-0-1", "int b;", ("0-0-0",))
    recorder.add_individual(parent)
    recorder.add_individual(child)
    recorder.add_evaluation(child.digest, "here", "search", Evaluation(Status.TIMEOUT, "slow"))
    recorder.add_evaluation(child.digest, "there", "search", FULL)
    found = recorder.individual("0-0-1")
    assert (found.kernel, found.birth, found.digest) == (child.kernel, child.birth, child.digest)
    assert found.evaluation == FULL
    assert found.fitness.values == (5.0,)
    assert recorder.individual("0-0-0").evaluation is None
    assert [one.id for one in recorder.individuals()] == ["0-0-0", "0-0-1"]


def test_an_unknown_individual_is_named_with_the_nearest(recorder: Recorder) -> None:
    recorder.add_individual(individual("0-0-0"))
    with pytest.raises(StoreError, match="r has no individual '0-0-7'; there are 0-0-0"):
        recorder.individual("0-0-7")


def test_a_parent_must_be_there_before_its_child(recorder: Recorder) -> None:
    with pytest.raises(ValueError, match="0-0-1 names a parent 0-0-0 that does not exist"):
        recorder.add_individual(individual("0-0-1", parents=("0-0-0",)))
    assert list(recorder.individuals()) == []


def test_verdicts_are_kept_for_each_hardware_and_purpose(recorder: Recorder) -> None:
    recorder.add_individual(one := individual("0-0-0"))
    recorder.add_evaluation(one.digest, "here", "search", timed(1.0))
    recorder.add_evaluation(one.digest, "here", "certify", FULL)
    assert recorder.evaluation(one.digest, "here", "search") == timed(1.0)
    assert recorder.evaluation(one.digest, "there", "search") is None
    assert recorder.certificate("0-0-0") == FULL
    assert recorder.individual("0-0-0").evaluation == timed(1.0)
    assert recorder.spent().evaluations == 1
    assert recorder.statuses() == {"ok": 1}


def test_calls_read_back_and_are_paid_for(recorder: Recorder) -> None:
    call = Call("0-0-0/port", "me", "o3", ("common", "own"), ("[]", "int a;"), "done")
    recorder.add_call(replace(call, usage=Usage(100, 40, 20, 3, 0.5)))
    recorder.add_call(replace(call, key="0-0-1/port", usage=Usage(1, 0, 1, 0, 0.25)))
    assert next(recorder.calls()).prompt == ("common", "own")
    assert recorder.reply("0-0-0/port") == ("[]", "int a;")
    assert recorder.reply("0-0-9/port") is None
    assert (recorder.spent().tokens, recorder.spent().dollars) == (125, 0.75)


def test_equal_texts_are_stored_once(recorder: Recorder) -> None:
    recorder.add_individual(individual("0-0-0", "int shared;"))
    recorder.add_individual(individual("1-0-0", "int shared;"))
    recorder.add_call(Call("k", "me", "", ("prompt",), ("int shared;",)))
    assert recorder.rows("select count(*) from blobs") == [(2,)]


def test_migrants_wait_until_they_are_taken_in(recorder: Recorder) -> None:
    recorder.add_individual(individual("0-0-0"))
    recorder.start_generation(Generation(0, 0, (-1, -1), ()))
    recorder.add_phase(0, 0, [Step("port", (), 0)])
    recorder.close_generation(0, 0, ["0-0-0"], [("0-0-0", 1)])
    assert recorder.waiting(1) == ("0-0-0",)
    recorder.start_generation(Generation(1, 3, (0, 2), ("0-0-0",)))
    assert recorder.waiting(1) == ()
    assert recorder.migrations() == [Migration("0-0-0", 0, 1, 0, 3)]
    assert recorder.generations() == [
        Generation(0, 0, (-1, -1), (), ("0-0-0",)),
        Generation(1, 3, (0, 2), ("0-0-0",), None),
    ]
    assert recorder.plan(0, 0) == [(Step("port", (), 0),)]


def test_others_read_while_it_is_written(recorder: Recorder, tmp_path: Path) -> None:
    with Store.open(tmp_path / "r") as reader:
        recorder.add_individual(individual("0-0-0"))
        assert [one.id for one in reader.individuals()] == ["0-0-0"]


def test_a_reader_cannot_write(recorder: Recorder, tmp_path: Path) -> None:
    with Store.open(tmp_path / "r") as reader, pytest.raises(sqlite3.OperationalError):
        reader.rows("delete from meta")


def test_a_closed_run_is_one_file_that_a_read_only_folder_can_hold(
    recorder: Recorder, tmp_path: Path
) -> None:
    recorder.add_individual(individual("0-0-0"))
    recorder.close()
    assert [path.name for path in (tmp_path / "r").iterdir()] == ["run.sqlite"]
    (tmp_path / "r").chmod(0o555)
    try:
        with Store.open(tmp_path / "r") as store:
            assert [one.id for one in store.individuals()] == ["0-0-0"]
    finally:
        (tmp_path / "r").chmod(0o755)


def test_running_time_goes_on_where_it_was(recorder: Recorder, tmp_path: Path) -> None:
    recorder.add_event("late")
    recorder.rows("update events set at = 100.0")
    recorder.close()
    with Recorder.open(tmp_path / "r") as again:
        assert 100 <= again.elapsed() < 160
        assert again.spent().seconds == 100


def test_a_foreign_or_newer_file_is_refused_with_a_word(recorder: Recorder, tmp_path: Path) -> None:
    recorder.rows("pragma user_version = 9")
    recorder.close()
    with pytest.raises(StoreError, match="has format 9, this kernelevo reads format 1: use the"):
        Store.open(tmp_path / "r")
    (tmp_path / "text.sqlite").write_text("no database, but long enough to be looked at " * 20)
    with pytest.raises(StoreError, match="cannot be read as a run: file is not a database"):
        Store.open(tmp_path / "text.sqlite")
    sqlite3.connect(tmp_path / "other.sqlite").execute("create table t (a)")
    with pytest.raises(StoreError, match="is no run of kernelevo"):
        Store.open(tmp_path / "other.sqlite")
    with pytest.raises(StoreError, match="does not exist: there is no run here"):
        Store.open(tmp_path / "nowhere")


def test_a_run_is_not_begun_over_another(recorder: Recorder, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="exists already"):
        Recorder.create(tmp_path / "r", info())
