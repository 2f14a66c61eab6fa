"""``kernelevo show``: a run in figures, one kernel in full."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evo.cli.main import main
from evo.report.summary import by_category, by_operator, statuses
from tests.evo.synthetic_run import record, synthetic


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["show", *arguments])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    record(synthetic(), folder / "populations" / "softmax-demo")
    return folder


@pytest.fixture(autouse=True)
def run(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


def test_counts_add_up() -> None:
    view = synthetic()
    assert sum(statuses(view).values()) == len(view.individuals)
    assert sum(each.tried for each in by_operator(view).values()) == len(view.individuals)
    for group in (*by_operator(view).values(), *by_category(view).values()):
        assert group.tried >= group.correct >= group.faster
        if group.best_gain and group.mean_gain:
            assert group.best_gain >= group.mean_gain


def test_a_run_shows_state_best_budget_counts_and_config() -> None:
    text = call("softmax-demo").output
    winner = synthetic().winner
    assert text.startswith("softmax-demo: finished (5 generations done)")
    assert f"best      {winner}: " in text
    assert "144 evaluations" in text
    assert "incorrect 9" in text
    assert "memory access" in text
    assert "budget: {generations: 5, evaluations: 500}" in text


def test_a_run_as_json() -> None:
    data = json.loads(call("softmax-demo", "--json").output)
    assert data["winner"] == synthetic().winner
    assert data["statuses"]["ok"] == 97
    assert data["operators"]["mutation"]["tried"] > data["operators"]["crossover"]["tried"]
    assert data["spent"]["evaluations"] == 144


def test_a_kernel_shows_kin_times_precision_resources_and_source() -> None:
    one = synthetic().individual("winner")
    text = call("softmax-demo", "winner").output
    assert text.startswith(f"{one.id} (winner)")
    assert one.birth.parents[0] in text
    assert "PyTorch's own 2.4e-07" in text
    assert "softmax_rows: 40 registers" in text
    assert one.kernel.source.splitlines()[1] in text


def test_a_failed_kernel_shows_its_reason() -> None:
    failed = next(one for one in synthetic().individuals if not one.fitness.valid)
    assert failed.evaluation is not None
    assert failed.evaluation.reason in call("softmax-demo", failed.id).output
    data = json.loads(call("softmax-demo", failed.id, "--json").output)
    assert data["evaluation"]["status"] == failed.evaluation.status
    assert data["evaluation"]["time_ms"] is None
    assert data["source"] == failed.kernel.source


def test_an_unknown_kernel_is_exit_2_with_a_hint() -> None:
    result = call("softmax-demo", "9-9-9")
    assert result.exit_code == 2
    assert "no kernel '9-9-9'" in result.output
    assert "'winner'" in result.output


def test_control_characters_do_not_reach_the_terminal() -> None:
    from evo.cli._view import CONTROL

    assert CONTROL.sub("?", "a\x1b[31mb\tc\x9b") == "a?[31mb\tc?"
