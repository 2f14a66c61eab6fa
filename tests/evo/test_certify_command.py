"""``kernelevo certify``: what is certified, compared, written and answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cuda_sandbox.report import Status
from evo.cli import certify as under_test
from evo.cli.certify import Candidate
from evo.cli.main import main
from fitness.certificate import SCHEMA, Terms
from fitness.evaluation import Evaluation
from tests.evo.fakes import Sitting

TIME = {"median": 1.0, "low": 0.99, "high": 1.01}


def document(candidate: Candidate, terms: Terms, time: dict[str, float] = TIME) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "verdict": "certified",
        "status": "ok",
        "reason": "",
        "made": "2026-11-30T12:00:00+00:00",
        "made_by": terms.made_by,
        "command": terms.command,
        "task": {"name": candidate.task_name, "digest": "sha256:11"},
        "source_digest": str(hash(candidate.kernel.source)),
        "checks": {"hidden inputs": "passed on 7 distributions"},
        "figures": {"time_ms": {"kernel": time}, "speedup": {}},
        "environment": {"device": "fake"},
    }


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Candidate, Terms]]:
    """Certifies everything at once, and keeps what it was given."""
    calls: list[tuple[Candidate, Terms]] = []

    def certified(candidate: Candidate, terms: Terms) -> Evaluation:
        calls.append((candidate, terms))
        return Evaluation(Status.OK, certificate=document(candidate, terms))

    monkeypatch.setattr(under_test, "certified", certified)
    return calls


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rows.py").write_text("class Model: ...\n")
    for name in ("my.cpp", "old.cpp"):
        (tmp_path / name).write_text(f"// {name}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["certify", *arguments])


def test_a_kernel_file_is_certified_beside_its_parent_and_told_in_text(
    files: Path, seen: list[tuple[Candidate, Terms]]
) -> None:
    result = call("rows.py", "my.cpp", "--parent", "old.cpp", "--sanitizer-seconds", "9")

    assert result.exit_code == 0, result.output
    ((candidate, terms),) = seen
    assert candidate.kernel.source == "// my.cpp\n"
    assert candidate.rivals["parent"].source == "// old.cpp\n"
    assert candidate.device == "cpu"
    assert terms.sanitizer_s == 9
    assert result.output.startswith("certified\n")
    assert "kernelevo certify rows.py my.cpp --sanitizer-seconds 9.0 --parent=old.cpp" in (
        result.output
    )


def test_the_certificate_is_written_and_the_next_one_is_compared_with_it(
    files: Path, seen: list[tuple[Candidate, Terms]]
) -> None:
    assert "comparison" not in json.loads(call("rows.py", "my.cpp", "--json").output)
    call("rows.py", "my.cpp", "-o", "certificate.json")
    assert json.loads(Path("certificate.json").read_text())["schema"] == SCHEMA

    result = call("rows.py", "my.cpp", "-o", "certificate.json")
    assert "agrees with the certificate of 2026-11-30" in result.output
    other = call("rows.py", "old.cpp", "--earlier", "certificate.json", "--json")
    assert "another kernel" in json.loads(other.output)["comparison"]["summary"]


def test_a_kernel_that_is_not_certified_ends_with_1(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(candidate: Candidate, terms: Terms) -> Evaluation:
        found = document(candidate, terms) | {"verdict": "not certified", "reason": "racecheck"}
        return Evaluation(Status.INCORRECT, "racecheck", certificate=found)

    monkeypatch.setattr(under_test, "certified", refused)
    result = call("rows.py", "my.cpp")

    assert result.exit_code == 1
    assert result.output.startswith("not certified: racecheck\n")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("missing.py", "my.cpp"), "no task file missing.py"),
        (("rows.py",), "name the kernel's file too"),
        (("rows.py", "my.cpp", "--earlier", "rows.py"), "cannot be read as a certificate"),
        (("nobody",), "no run 'nobody'"),
    ],
)
def test_a_wrong_call_is_exit_2_also_as_json(
    files: Path, seen: list[tuple[Candidate, Terms]], arguments: tuple[str, ...], word: str
) -> None:
    result, data = call(*arguments), call(*arguments, "--json")

    assert (result.exit_code, data.exit_code) == (2, 2)
    assert word in result.output
    assert json.loads(data.output)["status"] is None
    assert word in json.loads(data.output)["error"]


def test_a_runs_winner_is_certified_as_the_run_demands_and_the_run_stays_as_it_is(
    files: Path, seen: list[tuple[Candidate, Terms]]
) -> None:
    folder = files / "populations" / "fake"
    winner = Sitting(folder).run().winner
    assert winner is not None
    before = (folder / "run.sqlite").read_bytes()

    result = call("fake")

    assert result.exit_code == 0, result.output
    ((candidate, terms),) = seen
    assert candidate.kernel == winner.kernel
    assert candidate.task_source == "class Model: ...\n"
    assert len(candidate.rivals) == len(winner.birth.parents)
    assert (terms.sanitizer_s, terms.command) == (120.0, "kernelevo certify fake")
    assert (folder / "run.sqlite").read_bytes() == before
    assert call("fake", "--tier", "half").exit_code == 2
