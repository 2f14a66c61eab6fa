"""``kernelevo archive``: a winner kept, small and without anything of this machine."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from cuda_sandbox.errors import UserError
from evo.archive import archive
from evo.cli.main import main
from evo.report.plain import scrubbed
from evo.report.view import RunView
from tests.evo.synthetic_run import info, record, synthetic


def test_the_command_keeps_source_lineage_trajectory_and_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    record(synthetic(), Path("populations/softmax-demo"))
    for _ in range(2):  # the second time it is brought up to date
        result = CliRunner().invoke(main, ["archive", "softmax-demo"])
        assert result.exit_code == 0, result.output
    folder = Path("populations/archive/softmax-demo")
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "README.md", "certificate.json", "config.yaml", "environment.json", "interface.h",
        "kernel.cu", "lineage.json", "lineage.svg", "run.json", "task.py", "trajectory.txt",
    }  # fmt: skip
    winner = synthetic().individual("winner")
    assert (folder / "kernel.cu").read_text() == winner.kernel.source
    assert json.loads((folder / "lineage.json").read_text())["graph"]["winner"] == winner.id
    assert sum(path.stat().st_size for path in folder.iterdir()) < 500_000


def test_the_whole_run_can_be_kept_and_looked_at_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    record(synthetic(), Path("populations/softmax-demo"))
    result = CliRunner().invoke(main, ["archive", "softmax-demo", "--store"])
    assert result.exit_code == 0, result.output
    kept = Path("populations/archive/softmax-demo/run.tar.gz").resolve()
    there = tmp_path / "elsewhere"
    there.mkdir()
    monkeypatch.chdir(there)
    assert CliRunner().invoke(main, ["unpack", str(kept)]).exit_code == 0
    shown = CliRunner().invoke(main, ["show", "softmax-demo", "winner", "--json"])
    assert json.loads(shown.output)["source"] == synthetic().individual("winner").kernel.source


def test_it_holds_no_absolute_path_and_no_host_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view, host = synthetic(generations=2), "build-host-17"
    monkeypatch.setattr(socket, "gethostname", lambda: f"{host}.example.org")
    spoilt = replace(
        view.info,
        outcome=f"read /home/someone/secret/kernel.cu on {host}",
        config="task: /a/b.py\n",
    )
    folder = archive(replace(view, info=spoilt), tmp_path)
    for path in folder.iterdir():
        text = path.read_text()
        assert "/home/someone" not in text
        assert str(tmp_path) not in text
        assert f"on {host}" not in text
    assert (folder / "config.yaml").read_text() == "task: .../b.py\n"


def test_scrubbing_keeps_what_is_no_path() -> None:
    text = "1/2 of a/b, // a comment, 3 GB/s, </script>, https://example.org/a/b"
    assert scrubbed(text) == text
    assert scrubbed("in /usr/local/cuda/bin/nvcc: no") == "in .../nvcc: no"


def test_another_runs_archive_is_not_replaced_unasked(tmp_path: Path) -> None:
    view = synthetic(generations=1)
    archive(view, tmp_path)
    other = replace(view, info=replace(view.info, created="2027-01-01T00:00:00+00:00"))
    with pytest.raises(UserError, match="another run of this name"):
        archive(other, tmp_path)
    archive(other, tmp_path, force=True)


def test_a_run_without_a_winner_is_not_archived(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no winner to keep"):
        archive(RunView(info(), ()), tmp_path)
    assert not list(tmp_path.iterdir())
