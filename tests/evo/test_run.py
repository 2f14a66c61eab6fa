"""``kernelevo run`` as a process: killed, stopped, continued, refused; and ``kernelevo ls``."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from evo.cli.ls import command as ls
from evo.runs import RunBusy, UnknownRun, in_use, locked, resolve
from evo.store import Store

PROGRAM = Path(__file__).with_name("fake_run.py")
CONFIG = """
name: fake
task: task.py
devices: cpu
population: {size: 4, elite: 2, islands: 2, migration: {every: 1}}
budget: {generations: 3}
"""


class Server:
    """Starts runs by forking a process that has imported everything."""

    def __init__(self, *options: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, request: object) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Started:
    """A run that was started; ``wait`` gives its exit code, ``err`` and ``out`` what it printed."""

    def __init__(self, server: Server, pid: int, folder: Path) -> None:
        self._server = server
        self._pid = pid
        self._folder = folder

    def send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def wait(self) -> int:
        return self._server.ask(self._pid)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.wait()

    @property
    def going_on(self) -> bool:
        state = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"

    @property
    def out(self) -> str:
        return (self._folder / "out").read_text()

    @property
    def err(self) -> str:
        return (self._folder / "err").read_text()


class Runs:
    """A folder to run in, with a configuration and a log of what was asked for."""

    def __init__(self, folder: Path, server: Server) -> None:
        self._server = server
        self.folder = folder
        self.log = folder / "log"
        self.run = folder / "populations" / "fake"
        folder.mkdir(exist_ok=True)
        (folder / "task.py").write_text("class Model: ...\n")
        (folder / "fake.yaml").write_text(CONFIG)

    def start(self, *arguments: str, delay_s: float = 0.01) -> Started:
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        request = {"arguments": arguments or ("fake.yaml",), "delay_s": delay_s}
        files = {"cwd": str(self.folder), "out": f"{folder}/out", "err": f"{folder}/err"}
        return Started(self._server, self._server.ask(request | files), folder)

    def finish(self, *arguments: str) -> tuple[int, str, str]:
        started = self.start(*arguments)
        return started.wait(), started.out, started.err

    def lines(self) -> list[tuple[str, str]]:
        if not self.log.exists():
            return []
        lines = self.log.read_text().splitlines()
        return [(kind, what) for kind, what in (line.split() for line in lines)]

    def wait_for(self, count: int, process: Started) -> None:
        """Until the log has ``count`` more lines."""
        target = len(self.lines()) + count
        while len(self.lines()) < target and process.going_on:
            time.sleep(0.01)

    def judged(self) -> set[str]:
        if not (self.run / "run.sqlite").exists():
            return set()
        with Store.open(self.run) as store:
            return {verdict.digest for verdict in store.verdicts()}

    def lineage(self) -> dict[str, tuple[object, ...]]:
        with Store.open(self.run) as store:
            return {one.id: (one.digest, one.birth) for one in store.individuals()}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.close()


@pytest.fixture
def runs(tmp_path: Path, server: Server) -> Runs:
    return Runs(tmp_path, server)


def test_a_run_killed_at_any_moment_goes_on_and_nothing_is_lost_or_repeated(
    tmp_path: Path, server: Server
) -> None:
    killed, whole = Runs(tmp_path / "a", server), Runs(tmp_path / "b", server)
    one = ("fake.yaml", "--set", "population.islands=1")
    chance = random.Random(5)
    for _ in range(6):
        process = killed.start(*one)
        killed.wait_for(chance.randrange(1, 14), process)
        time.sleep(chance.random() * 0.03)
        process.kill()
        committed, before = killed.judged(), len(killed.lines())
        process = killed.start(*one)
        killed.wait_for(1, process)
        process.kill()
        assert committed <= killed.judged()
        asked = {what for kind, what in killed.lines()[before:] if kind == "search"}
        assert not committed & asked
    assert killed.finish(*one)[0] == 0
    assert whole.finish(*one)[0] == 0
    assert killed.lineage() == whole.lineage()
    with Store.open(killed.run) as store, Store.open(whole.run) as other:
        assert store.info.winner == other.info.winner
        keys = sorted(call.key for call in store.calls())
        assert keys == sorted(call.key for call in other.calls())


def test_islands_killed_together_end_with_whole_generations(runs: Runs) -> None:
    for count in (5, 17, 30):
        process = runs.start()
        runs.wait_for(count, process)
        process.kill()
    code, _, _ = runs.finish()
    assert code == 0
    with Store.open(runs.run) as store:
        closed = Counter(g.island for g in store.generations() if g.survivors is not None)
        taken = [move for move in store.migrations() if move.taken_in is not None]
        guests = [one for g in store.generations() for one in g.migrants]
        assert all(one.evaluation is not None for one in store.individuals())
    assert closed == {0: 4, 1: 4}
    assert sorted(move.individual for move in taken) == sorted(guests)


def test_a_run_is_not_continued_on_another_task_than_it_was_begun_with(runs: Runs) -> None:
    assert runs.finish()[0] == 0
    copy = runs.run / "task.py"
    task = copy.read_text()
    copy.write_text(task + "# edited\n")
    asked = len(runs.lines())
    for target in ("fake", "fake.yaml"):
        code, _, err = runs.finish(target, "--set", "budget.generations=4")
        assert code != 0
        assert "task.py is not the task that fake was begun with" in err
    assert len(runs.lines()) == asked
    copy.unlink()
    assert runs.finish("fake", "--set", "budget.generations=4")[0] == 0
    assert copy.read_text() == task


def test_a_finished_run_shows_its_result_and_does_nothing(runs: Runs) -> None:
    code, out, _ = runs.finish()
    assert code == 0
    asked = len(runs.lines())
    again = runs.finish()
    assert (again[0], again[1]) == (0, out)
    by_name = runs.finish("fake")
    assert (by_name[0], by_name[1]) == (0, out)
    assert len(runs.lines()) == asked
    assert "fake: all generations are done\nwinner " in out
    assert "certified" in out
    assert "kernelevo trajectory fake" in out
    assert "kernelevo lineage fake -o lineage.html" in out
    assert "kernelevo export fake -o DIR" in out


def test_a_larger_budget_goes_on_with_a_finished_run(runs: Runs) -> None:
    runs.finish()
    code, _, _ = runs.finish("fake", "--set", "budget.generations=4")
    assert code == 0
    with Store.open(runs.run) as store:
        assert max(generation.number for generation in store.generations()) == 4


def test_new_begins_another_run(runs: Runs) -> None:
    runs.finish()
    code, out, _ = runs.finish("fake.yaml", "--new")
    assert code == 0
    assert out.startswith("fake-2: ")
    assert (runs.folder / "populations" / "fake-2" / "run.sqlite").is_file()


def test_another_configuration_is_refused_by_its_keys(runs: Runs) -> None:
    runs.finish()
    code, _, err = runs.finish("fake.yaml", "--set", "population.size=5", "--set", "seed=1")
    assert code != 0
    assert "fake was begun with another population.size, another seed" in err
    (runs.folder / "task.py").write_text("class Model: pass\n")
    code, _, err = runs.finish("fake.yaml", "--set", "budget.generations=9")
    assert code != 0
    assert "fake was begun with another task" in err


def test_ctrl_c_stops_says_how_to_go_on_and_loses_nothing(runs: Runs) -> None:
    process = runs.start(delay_s=0.05)
    runs.wait_for(15, process)
    process.send(signal.SIGINT)
    assert process.wait() == 130
    assert "stopped; go on with: kernelevo run fake" in process.err
    assert "Traceback" not in process.err
    committed, before = runs.judged(), len(runs.lines())
    assert committed
    assert CliRunner().invoke(ls).exit_code == 0
    code, _, _ = runs.finish()
    assert code == 0
    asked = {what for kind, what in runs.lines()[before:] if kind == "search"}
    assert not committed & asked


def test_sigterm_stops_as_well(runs: Runs) -> None:
    process = runs.start(delay_s=0.05)
    runs.wait_for(5, process)
    process.send(signal.SIGTERM)
    assert process.wait() == 143
    with Store.open(runs.run) as store:
        assert store.info.state == "stopped"


def test_a_second_process_on_the_same_run_is_refused(runs: Runs) -> None:
    process = runs.start(delay_s=0.5)
    runs.wait_for(2, process)
    code, _, err = runs.finish()
    assert code != 0
    assert "fake is being run by another process: wait for it, stop it with Ctrl-C" in err
    process.kill()
    assert runs.finish()[0] == 0


def test_a_run_folder_names_no_path_and_no_person(runs: Runs) -> None:
    assert runs.finish()[0] == 0
    assert sorted(path.name for path in runs.run.iterdir()) == ["run.lock", "run.sqlite", "task.py"]
    with Store.open(runs.run) as store:
        texts = [str(row) for row in store.rows("select value from meta")]
        texts += [str(event) for event in store.events()]
        texts += [str(call) for call in store.calls()]
    everything = "\n".join(texts)
    assert str(runs.folder) not in everything
    assert os.uname().nodename not in everything


def test_a_moved_run_goes_on_where_it_is(runs: Runs, tmp_path: Path) -> None:
    process = runs.start()
    runs.wait_for(10, process)
    process.send(signal.SIGINT)
    process.wait()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    runs.run.rename(elsewhere / "carried")
    (elsewhere / "carried" / "task.py").unlink()
    code, out, _ = runs.finish(str(elsewhere / "carried"))
    assert code == 0
    assert "winner" in out


def test_ls_lists_runs_with_their_state(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(runs.folder)
    assert "no runs under populations/; begin one" in CliRunner().invoke(ls).output
    runs.finish()
    process = runs.start("fake.yaml", "--new", delay_s=0.3)
    runs.wait_for(5, process)
    first, second = json.loads(CliRunner().invoke(ls, ["--json"]).output)
    assert (first["name"], first["state"], first["task"]) == ("fake", "finished", "fake")
    assert first["percent"] > 100
    assert first["generations"] == 3
    assert (second["name"], second["state"]) == ("fake-2", "running")
    process.kill()
    assert json.loads(CliRunner().invoke(ls, ["--json"]).output)[1]["state"] == "interrupted"
    table = CliRunner().invoke(ls).output
    assert "fake-2" in table
    assert "interrupted" in table


def test_a_run_is_found_by_name_or_path_and_else_the_nearest_is_named(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs.folder)
    with pytest.raises(UnknownRun, match=r"no run 'fake' under populations/.* there are none yet"):
        resolve("fake")
    runs.finish()
    assert resolve("fake") == Path("populations/fake")
    assert resolve(str(runs.run)) == runs.run
    assert resolve(str(runs.run / "run.sqlite")) == runs.run
    with pytest.raises(UnknownRun, match=r"no run 'fkae' .* there are: fake"):
        resolve("fkae")


def test_a_lock_holds_as_long_as_its_holder(tmp_path: Path) -> None:
    assert not in_use(tmp_path)
    with locked(tmp_path):
        assert in_use(tmp_path)
        with pytest.raises(RunBusy, match="is being run by another process"), locked(tmp_path):
            pass
    assert not in_use(tmp_path)
