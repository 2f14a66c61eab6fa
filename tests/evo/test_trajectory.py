"""``kernelevo trajectory``: the form in which users expect to read a run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from cuda_sandbox.report import Status
from evo.cli.main import main
from evo.individual import Birth
from evo.report.trajectory import lines, trajectory
from evo.report.view import RunView
from operators.idea import Category, Idea
from tests.evo.synthetic_run import failure, individual, info, record, synthetic, verdict

PORT = individual("0-0-0", Birth(0, 0, "port", "catalogue", (), None), "a", verdict(0.201))
IDEA = Idea("FP16 tensor-core GEMM", Category.PRECISION, "catalogue")
MENDED = individual(
    "0-2-0",
    Birth(0, 2, "mutation", "catalogue", ("0-0-0",), IDEA),
    "b",
    failure(Status.TIMEOUT, ""),
)
TUNED = individual(
    "0-3-0",
    Birth(0, 3, "tuning", "catalogue", ("0-2-0",), None, "TILE 64 -> 128"),
    "c",
    verdict(1.5),
)


def test_the_table_reads_as_published() -> None:
    text = lines(RunView(info(), (PORT, MENDED, TUNED)))
    assert text[0] == "softmax-demo: softmax on NVIDIA H200"
    assert text[2].split() == ["round", "ms", "95%", "interval", "%", "of", "eager", "idea"]
    assert re.fullmatch(
        r" +0 +5\.224 +\[5\.172, 5\.287\] +20\.1%  replace the operation with a CUDA kernel",
        text[3],
    )
    assert re.fullmatch(r" +2 +- +- +timeout  FP16 tensor-core GEMM", text[4])
    assert re.fullmatch(r" +3 +0\.7 +\[.*\] +150\.0%  tuning: TILE 64 -> 128", text[5])
    assert text[7] == "PyTorch eager: 1.05 ms [1.04, 1.06] (tier fp32)"
    assert text[8] == "0-3-0 is not certified yet; tier fp32 was demanded"


def test_a_certified_winner_is_told_with_its_own_figures() -> None:
    view = RunView(replace(info(), winner="0-3-0"), (PORT, MENDED, TUNED))
    sealed = replace(view, certificate=verdict(1.45))
    assert "0-3-0 is certified on hidden inputs: 0.7241 ms" in "\n".join(lines(sealed))
    failed = replace(view, certificate=failure(Status.INCORRECT, "racecheck: 1 hazard"))
    assert "failed certification: incorrect: racecheck" in "\n".join(lines(failed))


def test_one_that_failed_its_certificate_is_no_winner_and_what_mends_it_is_told_as_such() -> None:
    fast = individual(
        "0-2-1", Birth(0, 2, "mutation", "catalogue", ("0-0-0",), IDEA), "d", verdict(1.6)
    )
    birth = Birth(0, 2, "repair", "catalogue", ("0-2-1",), IDEA, base="0-0-0")
    mended = individual("0-2-1r1", birth, "e", verdict(1.5))
    view = RunView(info(), (PORT, fast, mended), demoted=frozenset({"0-2-1"}))
    assert view.winner == "0-2-1r1"
    text = lines(view)
    assert text[4].endswith("160.0%  FP16 tensor-core GEMM; failed its certificate")
    assert text[5].endswith("150.0%  mended: FP16 tensor-core GEMM")
    assert [step["demoted"] for step in trajectory(view)["steps"]] == [False, True, False]


def test_a_run_without_a_correct_kernel_says_so() -> None:
    (line,) = lines(RunView(info(), (MENDED,)))
    assert "no correct kernel yet: 1 tried, none accepted" in line


def test_the_command_prints_the_path_and_the_same_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    view = synthetic()
    record(view, Path("populations/softmax-demo"))
    result = CliRunner().invoke(main, ["trajectory", "softmax-demo"])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == lines(view)
    result = CliRunner().invoke(main, ["trajectory", "softmax-demo", "--json"])
    data = json.loads(result.output)
    assert [step["id"] for step in data["steps"]] == [one.id for one in view.path]
    assert data["steps"][-1]["percent"] == pytest.approx(100 * view.path[-1].fitness.values[0])
    assert data["steps"][-1]["time_ms"]["low"] < data["steps"][-1]["time_ms"]["median"]
