"""The command line's own behaviour: messages, exit codes, doctor, cache."""

from __future__ import annotations

import errno
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from cuda_sandbox.errors import UserError
from evo.cli import main as cli

ROOT = Path(__file__).parents[1]


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, arguments)


def failing_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> Result:
    @click.command()
    def command() -> None:
        raise error

    monkeypatch.setattr(cli.CommandFolder, "get_command", lambda *_: command)
    return invoke("anything")


def test_an_error_for_the_user_is_one_message_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    result = failing_with(UserError("run 'x' does not exist; there are: a, b"), monkeypatch)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == "Error: run 'x' does not exist; there are: a, b\n"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    result = failing_with(ModuleNotFoundError("No module named 'deap'", name="deap"), monkeypatch)
    assert result.exit_code == 2
    assert "No module named 'deap'" in result.stderr
    assert "kernelevo doctor" in result.stderr


def test_a_fault_of_ours_never_reads_as_a_kernel_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    result = failing_with(ZeroDivisionError("ours"), monkeypatch)
    assert result.exit_code == cli.OUR_FAULT
    assert "ZeroDivisionError: ours" in result.stderr
    assert "fault of kernelevo" in result.stderr


def test_ctrl_c_never_reads_as_a_kernel_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    result = failing_with(KeyboardInterrupt(), monkeypatch)
    assert result.exit_code == 130
    assert "stopped" in result.stderr


def test_a_full_disk_and_a_damaged_file_are_no_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result = failing_with(OSError(errno.ENOSPC, "No space left on device", "x"), monkeypatch)
    assert result.exit_code == 2
    assert "No space left on device: 'x': make room" in result.stderr
    result = failing_with(full_database(), monkeypatch)
    assert result.exit_code == 2
    assert "database or disk is full: make room" in result.stderr
    result = failing_with(damaged_database(tmp_path / "file"), monkeypatch)
    assert result.exit_code == 2
    assert "malformed: the file is damaged" in result.stderr


def full_database() -> Exception:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("pragma max_page_count = 2")
        with pytest.raises(sqlite3.OperationalError) as caught:
            connection.execute("create table t as select randomblob(100000)")
        return caught.value


def damaged_database(path: Path) -> Exception:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("create table t as select randomblob(20000)")
    path.write_bytes(path.read_bytes()[:4096] + b"x" * (path.stat().st_size - 4096))
    with closing(sqlite3.connect(path)) as connection:
        with pytest.raises(sqlite3.DatabaseError) as caught:
            connection.execute("select * from t").fetchall()
        return caught.value


def test_doctor_names_the_keys_and_never_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    result = invoke("doctor", "--json")
    assert "secret" not in result.output
    findings = {one["name"]: one for one in json.loads(result.stdout)["findings"]}
    assert findings["OPENAI_API_KEY"]["state"] == "ok"
    assert findings["GEMINI_API_KEY"]["state"] == "missing"
    assert "export GEMINI_API_KEY" in findings["GEMINI_API_KEY"]["remedy"]


def test_doctor_where_there_is_no_compiler_says_what_to_install(tmp_path: Path) -> None:
    bare = {"PATH": str(tmp_path), "HOME": str(tmp_path), "KERNELEVO_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "evo", "doctor"], cwd=ROOT, env=bare, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    assert "apt install g++" in done.stdout
    assert "no      compile and judge CPU kernels" in done.stdout


def test_every_lack_that_doctor_finds_has_a_remedy() -> None:
    findings = json.loads(invoke("doctor", "--json").stdout)["findings"]
    assert all(one["remedy"] for one in findings if one["state"] != "ok")


def test_the_cache_is_shown_and_cleared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KERNELEVO_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache/objects").mkdir(parents=True)
    (tmp_path / "cache/objects/one.so").write_bytes(bytes(2_500_000))
    assert "2.5 MB" in invoke("cache").stdout
    assert invoke("cache", "--clear").exit_code == 0
    assert not list((tmp_path / "cache").rglob("*.so"))
    assert "0 files" in invoke("cache").stdout
