"""``kernelevo run`` with an author that asks: exit codes, what is said, with and without device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import fitness.audit
import fitness.task
from evo import sitting
from evo.cli import run as run_command
from evo.cli.main import main
from evo.machine import DeviceMissing, Machine
from evo.store import Store
from evo.studio import Staff
from fitness.audit.record import Audit, Outcome
from tests.evo.asking import Asker, Asking
from tests.evo.fakes import FakeExecutor, description

RUN = Path("populations/fake")
CONFIG = """
name: fake
task: task.py
devices: cpu
population: {size: 1, elite: 1, islands: 1, offspring: 4}
variation: {ideas: 2, branches: 2, repairs: 0, rates: {mutation: 1, crossover: 0, tuning: 0}}
budget: {generations: 1}
"""
STAFF = sitting.staff
HERE = Machine(("cpu",), "cpp", "fake", "native", ("a fact of the device",))


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("task.py").write_text("class Model: ...\n")
    Path("fake.yaml").write_text(CONFIG)
    sound = Audit("task.py", Outcome.SOUND)
    monkeypatch.setattr(fitness.audit, "require_sound", lambda *_: sound)
    monkeypatch.setattr(fitness.task, "describe", lambda *_: description())
    monkeypatch.setattr(sitting, "staff", lambda config: Staff((Asker(),), (1.0,), config.seed))
    monkeypatch.setattr(run_command, "_local", lambda *_: FakeExecutor(failing=0))
    with_device(monkeypatch)


def with_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitting, "survey", lambda *_: HERE)


def without_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> Machine:
        raise DeviceMissing("cuda:0 is not here; this machine has no GPU")

    monkeypatch.setattr(sitting, "survey", missing)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["run", *arguments])


def answer_all() -> int:
    return Asking(RUN).answer_all()


def state() -> str:
    with Store.open(RUN) as store:
        return str(store.info.state)


def test_a_new_run_ends_with_3_and_says_how_to_answer() -> None:
    result = run("fake.yaml", "--until-waiting")
    assert result.exit_code == 3, result.output
    assert "1 request is open: kernelevo ask fake" in result.output
    assert state() == "waiting"
    assert "waiting" in CliRunner().invoke(main, ["ls"]).output
    assert len(Asking(RUN).open()) == 1


def test_the_whole_of_a_run_by_sittings_that_end(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = []
    for _ in range(4):
        codes.append(run("fake.yaml", "--until-waiting").exit_code)
        if RUN.exists():
            answer_all()
    assert codes == [3, 3, 3, 0]
    assert state() == "finished"


def test_without_its_device_the_authors_side_goes_on_and_then_it_ends_with_4(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run("fake.yaml", "--until-waiting")
    answer_all()
    run("fake.yaml", "--until-waiting")
    without_device(monkeypatch)
    result = run("fake", "--until-waiting")
    assert result.exit_code == 3, result.output
    assert "1 request is open" in result.output
    answer_all()
    result = run("fake", "--until-waiting")
    assert result.exit_code == 3, result.output
    assert "4 requests are open" in result.output
    answer_all()
    result = run("fake", "--until-waiting")
    assert result.exit_code == 4, result.output
    assert "4 kernels are to be judged where the device is: kernelevo pack fake" in result.output
    with_device(monkeypatch)
    assert run("fake", "--until-waiting").exit_code == 0


def test_a_machine_with_a_device_can_be_told_to_judge_nothing() -> None:
    run("fake.yaml", "--until-waiting")
    answer_all()
    result = run("fake", "--until-waiting", "--no-device")
    assert result.exit_code == 4, result.output
    assert "1 kernel is to be judged" in result.output
    assert run("fake", "--no-device").exit_code == 4  # nobody could answer anything
    with Store.open(RUN) as store:
        assert store.spent().evaluations == 0


def test_a_run_is_not_begun_without_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    without_device(monkeypatch)
    result = run("fake.yaml", "--until-waiting")
    assert result.exit_code == 4
    assert "cuda:0 is not here" in result.output
    with_device(monkeypatch)
    result = run("fake.yaml", "--until-waiting", "--no-device")
    assert result.exit_code == 4
    assert "a run begins on a machine with its device" in result.output
    assert not RUN.exists()


def test_without_until_waiting_a_missing_device_is_an_error_as_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run("fake.yaml", "--until-waiting")
    without_device(monkeypatch)
    result = run("fake")
    assert result.exit_code == 4
    assert "cuda:0 is not here" in result.output


def test_the_facts_of_the_device_are_known_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, ...]] = []

    class Curious(Asker):
        async def ideate(self, brief, *rest):  # type: ignore[no-untyped-def]
            seen.append(brief.facts)
            return await super().ideate(brief, *rest)

    run("fake.yaml", "--until-waiting")
    answer_all()
    run("fake.yaml", "--until-waiting")
    monkeypatch.setattr(sitting, "staff", lambda config: Staff((Curious(),), (1.0,), config.seed))
    without_device(monkeypatch)
    run("fake", "--until-waiting")
    assert seen == [("a fact of the device",)]


IDEAS = {
    "analysis": "slow",
    "ideas": [
        {"title": "wide loads", "detail": "Load 8 values at once.", "category": "memory access"},
        {
            "title": "fewer branches",
            "detail": "Hoist the test.",
            "category": "control flow and loops",
        },
    ],
}


def kernel(number: int) -> str:
    source = f"int launch(const float* x, float* out, void*) {{ return {number} * 0; }}"
    return f'A thought first.\n\n```cpp\nextern "C" {source}\n```\n'


def test_the_author_ask_from_the_prompts_to_the_winner_at_the_command_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sitting, "staff", STAFF)
    Path("asked.yaml").write_text(f"{CONFIG}authors: [{{name: ask, ports: 1}}]\n")
    runner, told = CliRunner(), 0
    while (code := run("asked.yaml", "--until-waiting").exit_code) == 3:
        while (
            shown := runner.invoke(main, ["ask", "fake", "--take", "anna", "--json"])
        ).exit_code == 0:
            record = json.loads(shown.stdout)
            assert "launch" in record["prompt"]
            ideas = record["purpose"] == "ideas"
            assert (record["schema"] is not None) == ideas
            told += 1
            answer = json.dumps(IDEAS) if ideas else kernel(told)
            arguments = ["tell", "fake", record["request"], "-", "--by", "anna"]
            refused = runner.invoke(main, arguments, input="neither code nor ideas")
            assert refused.exit_code == 2, refused.output
            taken = runner.invoke(main, arguments, input=answer)
            assert taken.exit_code == 0, taken.output
    assert code == 0
    assert told == 1 + 1 + 4
    with Store.open(RUN) as store:
        thoughts = {one.birth.idea.text for one in store.individuals() if one.birth.idea}
        assert "wide loads: Load 8 values at once." in thoughts
        assert store.spent().tokens == 0
