"""``kernelevo ask`` and ``tell``: requests taken and answered by several at once, none lost."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cuda_sandbox.errors import UserError
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CompileReport, Resources, Status
from evo.cli.main import main
from evo.machine import survey
from evo.requests import answers, board
from evo.requests.answers import Answers
from evo.requests.draft import line
from evo.store import Store
from tests.evo.asking import Asking

RUN = Path("populations/fake")


class Unreadable(UserError):
    """The answer cannot be read."""


def check(purpose: str, text: str, language: str, parents: tuple[Kernel, ...]) -> None:
    if "no kernel" in text:
        raise Unreadable(f"there is no {language} source for a {purpose} on {len(parents)} parents")


@pytest.fixture(autouse=True)
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asking:
    """A run with four open requests for kernels."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(board, "check", check)
    RUN.mkdir(parents=True)
    asking = Asking(RUN)
    for _ in range(2):
        asking.sit()
        asking.answer_all()
    asking.sit()
    return asking


def call(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=text)


def asked(*arguments: str) -> dict[str, object]:
    result = call("ask", "fake", "--json", *arguments)
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def test_a_request_can_be_had_as_files(run: Asking, tmp_path: Path) -> None:
    desk = tmp_path / "desk"
    entry = run.open()[0]
    result = call("ask", "fake", "--take", "anna", "--files", str(desk))

    assert result.exit_code == 0, result.output
    (parent,) = entry.request.parents
    assert {path.name for path in desk.iterdir()} == {"request.md", "header.h", f"{parent}.cpp"}
    assert entry.request.prompt.text in (desk / "request.md").read_text()
    assert "taken by anna" in (desk / "request.md").read_text()
    assert (desk / f"{parent}.cpp").read_text().strip()
    assert str(desk / "header.h") in result.output


DRAFT = """#define STEP 1  // tune: 1 2 0
extern "C" int launch(const float* x, float* out, void* workspace) {
    static_assert(STEP > 0, "no step");
    for (int i = 0; i < 16; i += STEP) out[i] = x[i];
    return 0;
}
"""


def test_a_draft_is_compiled_in_its_tunings_and_not_taken_in(
    run: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = survey("cpu", None, 1)
    monkeypatch.setattr("evo.sitting.last_machine", lambda _: here)
    request = run.open()[0].request.id
    good = DRAFT.replace(" 0\n", "\n")
    written = tmp_path / "kernel.cpp"
    result = call("tell", "fake", request, "-", "--draft", "-o", str(written), text=good)

    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == ["as written: compiles", "STEP = 2: compiles"]
    assert written.read_text().strip() == good.strip()

    result = call("tell", "fake", request, "-", "--draft", text=DRAFT)
    assert result.exit_code == 1
    assert "STEP = 0: compile_error: " in result.output
    assert "no step" in result.output

    result = call("tell", "fake", request, "-", "--draft", text="no kernel")
    assert result.exit_code == 2
    assert request in {entry.request.id for entry in run.open()}


@pytest.mark.parametrize(("spilled", "told"), [(0, "no spills"), (64, "spills 64 bytes")])
def test_a_draft_tells_registers_and_spills_of_each_variant(spilled: int, told: str) -> None:
    resources = (Resources("rows", 40, 0, 0, spilled),)
    report = CompileReport(Status.OK, "", "key", 1.0, resources=resources)

    assert line("STEP = 2", report) == f"STEP = 2: compiles; rows 40 registers, {told}"


def test_a_draft_of_ideas_is_read_and_that_is_all(tmp_path: Path) -> None:
    thinking = Asking(tmp_path / "populations" / "thinking")
    thinking.folder.mkdir(parents=True)
    thinking.sit()
    thinking.answer_all()
    thinking.sit()
    (entry,) = thinking.open()
    assert entry.request.prompt.purpose == "ideas"

    result = call("tell", "thinking", entry.request.id, "-", "--draft", text="one idea")

    assert result.exit_code == 0
    assert "can be read" in result.output
    assert [one.request.id for one in thinking.open()] == [entry.request.id]


def test_the_next_request_is_shown_in_full_with_the_command_that_answers_it(run: Asking) -> None:
    result = call("ask", "fake")
    first = run.open()[0].request
    assert result.exit_code == 0, result.output
    assert f"kernelevo tell fake {first.id} FILE" in result.output
    assert "You write kernels." in result.output
    assert first.prompt.text in result.output
    assert "kernel" in result.output.splitlines()[0]
    assert "on 0-0-0" in result.output.splitlines()[0]


def test_a_program_gets_purpose_prompt_schema_parents_and_lease() -> None:
    record = asked("--take", "anna", "--lease", "5")
    assert record["purpose"] == "kernel"
    assert record["system"] == "You write kernels."
    assert str(record["prompt"]).endswith("branch 0")
    assert record["schema"] is None
    assert record["parents"] == ["0-0-0"]
    assert record["lease"]["by"] == "anna"  # type: ignore[index]


def test_several_take_different_requests_and_get_their_own_again() -> None:
    anna, ben = asked("--take", "anna"), asked("--take", "ben")
    assert anna["request"] != ben["request"]
    assert asked("--take", "anna")["request"] == anna["request"]
    assert asked()["request"] not in (anna["request"], ben["request"])
    listed = call("ask", "fake", "--all").output
    assert listed.count("taken by") == 2
    assert "4 open, 2 of them taken" in listed


def test_who_finds_all_taken_hears_whose_they_are_and_when_one_is_free_again() -> None:
    taken = [asked("--take", name, "--lease", str(9 - n)) for n, name in enumerate("abcd")]
    result = call("ask", "fake", "--take", "e")
    assert result.exit_code == 1
    last = taken[-1]
    assert f"4 open, all of them taken: {last['request']}, taken by d," in result.output
    assert last["lease"]["until"] in result.output  # type: ignore[index]


def test_an_answer_is_taken_in_and_used(run: Asking) -> None:
    request = str(asked("--take", "anna")["request"])
    Path("answer").write_text("int mine = 1;\n")
    result = call("tell", "fake", request, "answer", "--by", "anna")
    assert result.exit_code == 0, result.output
    assert "took in the answer" in result.output
    assert "3 open, 0 of them taken" in result.output
    run.sit()
    with Store.open(RUN) as store:
        assert "int mine = 1;\n" in [one.kernel.source for one in store.individuals()]
    result = call("tell", "fake", request, "-", text="int other = 2;\n")
    assert result.exit_code == 2
    assert "is closed: its answer was used" in result.output


def test_an_unknown_request_is_refused_with_those_that_are_open(run: Asking) -> None:
    result = call("tell", "fake", "zzzz", "-", text="int x;\n")
    assert result.exit_code == 2
    assert "has no request 'zzzz'; open are:" in result.output
    assert run.open()[0].request.id in result.output


def test_an_answer_is_not_replaced_but_telling_it_twice_does_no_harm() -> None:
    request = str(asked()["request"])
    for _ in range(2):
        assert call("tell", "fake", request, "-", "--by", "anna", text="int x;\n").exit_code == 0
    result = call("tell", "fake", request, "-", "--by", "ben", text="int y;\n")
    assert result.exit_code == 2
    assert f"request {request} was answered by anna" in result.output
    assert call("ask", "fake", "--all").output.count("answered by anna, not used yet") == 1


def test_what_somebody_else_has_taken_is_refused_until_the_lease_ends() -> None:
    request = str(asked("--take", "anna", "--lease", "0.02")["request"])
    result = call("tell", "fake", request, "-", "--by", "ben", text="int y;\n")
    assert result.exit_code == 2
    assert f"request {request} is taken by anna until" in result.output
    assert call("ask", "fake", request, "--take", "ben").exit_code == 2
    time.sleep(1.3)
    assert asked(request, "--take", "ben")["request"] == request
    assert call("tell", "fake", request, "-", "--by", "ben", text="int y;\n").exit_code == 0


def test_a_request_can_be_given_back() -> None:
    request = str(asked("--take", "anna")["request"])
    assert call("ask", "fake", request, "--take", "anna", "--drop").exit_code == 0
    assert asked("--take", "ben")["request"] == request


def test_an_answer_that_cannot_be_read_is_refused_and_the_request_stays_open() -> None:
    request = str(asked("--take", "anna")["request"])
    result = call("tell", "fake", request, "-", "--by", "anna", text="no kernel today")
    assert result.exit_code == 2
    assert "there is no cpp source for a kernel on 1 parents" in result.output
    assert asked("--take", "anna")["request"] == request


def test_where_nothing_is_to_be_had_it_is_said_why(run: Asking) -> None:
    run.answer_all()
    result = call("ask", "fake")
    assert result.exit_code == 1
    assert (
        "nothing is open until the run goes on: kernelevo run fake --until-waiting" in result.output
    )
    run.sit()
    assert "fake is finished" in str(asked()["why"])


def test_a_wrong_name_or_lease_is_refused() -> None:
    for arguments in (("--take", ""), ("--take", "a\nb"), ("--take", "a", "--lease", "-1")):
        result = call("ask", "fake", *arguments)
        assert result.exit_code == 2, result.output
        assert "Traceback" not in result.output


def test_a_damaged_file_of_answers_is_named() -> None:
    (RUN / answers.FILE).write_bytes(b"this is no database at all" * 100)
    result = call("ask", "fake")
    assert result.exit_code == 2
    assert "answers.sqlite cannot be used" in result.output


def answering(pipe: Connection, name: str, requests: list[str]) -> None:
    """Take and tell; say so after each tell has returned."""
    with Answers.open(RUN) as file:
        while lease := file.take(requests, name, 0.0005):
            file.tell(lease.request, f"{name} {os.getpid()}", name)
            pipe.send((lease.request, f"{name} {os.getpid()}"))


def test_whoever_is_killed_no_answer_that_was_taken_in_is_lost_or_doubled() -> None:
    rng = random.Random(3)
    requests = [f"{number:010x}" for number in range(300)]
    confirmed: dict[str, str] = {}
    context = multiprocessing.get_context("fork")
    for _ in range(15):
        workers, pipes = [], []
        for name in "abc":
            ours, theirs = context.Pipe(duplex=False)
            worker = context.Process(target=answering, args=(theirs, name, requests))
            worker.start()
            theirs.close()
            workers.append(worker)
            pipes.append(ours)
        time.sleep(rng.uniform(0.02, 0.12))
        for worker, pipe in zip(workers, pipes, strict=True):
            worker.kill()  # or it has answered all there is
            worker.join()
            try:
                while True:
                    request, text = pipe.recv()
                    assert request not in confirmed
                    confirmed[request] = text
            except EOFError:
                pass
    with Answers.open(RUN) as file:
        told = [one for one in file.all() if one.request in requests]
    assert len(confirmed) > 5
    assert len({one.request for one in told}) == len(told)
    assert confirmed.items() <= {one.request: one.text for one in told}.items()


def test_who_waits_gets_the_next_request_as_soon_as_there_is_one(run: Asking) -> None:
    for entry in run.open():
        with run.board() as held:
            held.take(f"busy {entry.request.id}", 0.025)
    assert call("ask", "fake", "--take", "anna").exit_code == 1
    began = time.monotonic()
    assert asked("--take", "anna", "--wait", "1")["purpose"] == "kernel"
    assert time.monotonic() - began < 30
