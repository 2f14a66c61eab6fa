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
from evo.ledger import Asked, Ledger
from evo.recorder import Recorder
from evo.records import (
    Answer,
    CallState,
    Generation,
    Migration,
    Proposal,
    RunInfo,
    State,
    Step,
)
from evo.schema import StoreError
from evo.store import Store
from fitness.evaluation import Demand, Evaluation, Precision, Seconds, Tier
from operators.idea import Category, Idea
from operators.llm import Model, Prompt, Reply, Usage
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


def asked(key: str = "0-1-0/ideate/llm/ideas", provider: str = "openai") -> Asked:
    prompt = Prompt("be brief", ("the task", "the parent"), "ideas", {"type": "object"})
    return Asked(key, "llm", ("0-0-0",), prompt, Model("o3", provider))


def test_a_call_reads_back_with_its_prompt_and_reply(recorder: Recorder) -> None:
    ledger, question = Ledger(recorder), asked()
    ledger.open(question, Usage(1000, 0, 500, 0, 1.0))
    (call,) = recorder.calls(state="open")
    assert (call.key, call.author, call.model) == (question.key, "llm", "o3")
    assert (call.prompt, call.parents, call.reply) == (question.prompt, ("0-0-0",), None)
    usage = Usage(100, 40, 20, 3, 0.5)
    ledger.pay(question.key, usage)
    ledger.done(question.key, Reply("[]", usage, "o3-2025-04-16"))
    found = recorder.call(question.key)
    assert found is not None
    assert found.state is CallState.DONE
    assert found.reply == Reply("[]", usage, "o3-2025-04-16")
    assert (found.seq, found.at) == (call.seq, call.at)
    assert recorder.call("0-9-9/ideate/llm/ideas") is None


def test_all_attempts_are_paid_for_the_free_ones_excepted(recorder: Recorder) -> None:
    ledger = Ledger(recorder)
    for number, usage in enumerate([Usage(100, 40, 20, 3, 0.5), None, Usage(1, 0, 1, 0, 0.25)]):
        ledger.open(asked(f"0-1-{number}/x"), Usage(500, 0, 500, 0, 9.0))
        ledger.pay(f"0-1-{number}/x", usage)
    ledger.open(asked("0-1-0/x"), Usage(500, 0, 500, 0, 9.0))
    ledger.pay("0-1-0/x", Usage(7))
    spent = recorder.spent()
    assert (spent.calls, spent.tokens, spent.dollars) == (3, 132, 0.75)


def test_what_a_killed_run_left_under_way_is_written_off_at_its_estimate(
    recorder: Recorder,
) -> None:
    ledger = Ledger(recorder)
    ledger.open(asked("paid"), Usage(100, 0, 900, 0, 2.0))
    ledger.open(asked("between attempts"), Usage(100, 0, 900, 0, 2.0))
    ledger.pay("between attempts", None)
    ledger.open(asked("person", provider="ask"))
    assert ledger.write_off() == 2
    assert ledger.write_off() == 0
    assert (recorder.spent().tokens, recorder.spent().dollars) == (1000, 2.0)
    assert [call.key for call in recorder.calls(state="lost")] == ["paid", "between attempts"]
    assert [call.key for call in recorder.calls(state="open", provider="ask")] == ["person"]


def test_an_answer_reads_back_in_its_parts(recorder: Recorder) -> None:
    recorder.add_answer(Answer("0-0-0/port", "me", ("[]", "int a;")))
    assert recorder.answer("0-0-0/port") == ("[]", "int a;")
    assert recorder.answer("0-0-9/port") is None


def test_ideas_are_kept_whether_carried_out_or_not(recorder: Recorder) -> None:
    ideas = [Idea(text, Category.COMPUTE, "llm", "o3") for text in ("first", "second")]
    proposals = [Proposal("0-1-0/ideate", n, idea, "0-0-0", 0, 1) for n, idea in enumerate(ideas)]
    recorder.add_proposals(proposals)
    assert recorder.proposals() == proposals


def test_equal_texts_are_stored_once(recorder: Recorder) -> None:
    recorder.add_individual(individual("0-0-0", "int shared;"))
    recorder.add_individual(individual("1-0-0", "int shared;"))
    recorder.add_answer(Answer("k", "me", ("[]", "int shared;")))
    ledger = Ledger(recorder)
    ledger.open(asked("a"))
    ledger.open(asked("b"))
    # the kernel, the prompt's three parts and its schema
    assert recorder.rows("select count(*) from blobs") == [(5,)]


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
    (phase,) = recorder.plan(0, 0)
    assert phase.steps == (Step("port", (), 0),)


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
    with pytest.raises(StoreError, match="has format 9, this kernelevo reads format 2: use the"):
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
