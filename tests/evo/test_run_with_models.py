"""``kernelevo run`` with models: killed at any moment, stopped by a wrong key, free of secrets."""

from __future__ import annotations

import json
import random
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from evo.cli.main import main as cli
from evo.records import CallState
from evo.store import Store
from tests.evo.pen import write
from tests.evo.test_run import Runs, Server
from tests.evo.test_whole_runs import everything
from tests.loopback import Asked, Loopback, Said

KEY = "sk-planted-Vb4Nm7xQ1zLk9pRe"
MODEL = {"name": "o3", "provider": "openai", "key_env": "PLANTED_KEY"}
PRICE = {"input": 2.0, "output": 8.0}


@pytest.fixture(scope="module")
def forks() -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLANTED_KEY", KEY)  # the run inherits it
        server = Server("--models")
    yield server
    server.close()


def runs(folder: Path, forks: Server, models: Loopback) -> Runs:
    """A folder with a run of one island, so that its lineage does not depend on time."""
    prepared = Runs(folder, forks)
    model = MODEL | {"base_url": models.openai_url, "price": PRICE, "max_output_tokens": 1000}
    config = {
        "name": "fake",
        "task": "task.py",
        "devices": "cpu",
        "population": {"size": 4, "elite": 2, "islands": 1},
        "authors": [{"name": "llm", "models": [model]}],
        "budget": {"generations": 3},
    }
    (folder / "fake.yaml").write_text(yaml.safe_dump(config))
    return prepared


def replies(run: Path) -> dict[str, tuple[str, int]]:
    """The text of each call that was answered, and how many attempts it took."""
    if not (run / "run.sqlite").exists():
        return {}
    with Store.open(run) as store:
        done = store.calls(state=CallState.DONE)
        return {call.key: (call.reply.text, call.attempts) for call in done if call.reply}


def test_killed_at_random_moments_it_loses_no_reply_and_asks_for_none_again(
    tmp_path: Path, forks: Server
) -> None:
    chance = random.Random(5)
    with Loopback(write, latency_s=0.05, key=KEY) as models:
        whole = runs(tmp_path / "whole", forks, models)
        assert whole.finish()[0] == 0
        expected, calls = whole.lineage(), len(models.log)
        models.log.clear()
        parts = runs(tmp_path / "parts", forks, models)
        kills = 0
        for _ in range(8):
            before, started = replies(parts.run), parts.start()
            target = len(models.log) + chance.randrange(1, calls // 5)
            while len(models.log) < target and started.going_on:
                time.sleep(0.005)
            kills += started.going_on
            started.kill()
            after = replies(parts.run)
            assert {key: after[key] for key in before} == before
        assert kills > 3
        code, _, err = parts.finish()
        assert code == 0, err
        asked = len(models.log)
    assert parts.lineage() == expected
    with Store.open(parts.run) as store:
        states = Counter(call.state for call in store.calls())
        spent, guessed = store.spent(), store.guessed()
    assert states == {CallState.DONE: len(replies(parts.run))}
    # what was under way at a kill may not have reached the server; it is paid for all the same
    assert calls < asked <= spent.calls
    told = models.billed(told=True)
    assert spent.tokens - guessed[0] <= told.input + told.output + told.reasoning <= spent.tokens


def test_a_wrong_key_stops_it_before_anything_is_spent_and_says_what_to_do(
    tmp_path: Path, forks: Server
) -> None:
    with Loopback(write, key="another") as models:
        wrong = runs(tmp_path / "wrong", forks, models)
        code, out, err = wrong.finish()
        assert models.log == []
    assert code == 2
    assert "PLANTED_KEY" in err
    assert KEY not in out + err
    assert not wrong.run.exists()


def test_no_secret_is_left_in_anything_that_a_run_writes(
    tmp_path: Path, forks: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gossip(asked: Asked) -> Said:
        """A server that knows the key, and a model that is told everything."""
        assert asked.key == KEY
        assert KEY not in json.dumps(asked.request)
        return write(asked)

    plan = {2: "rate", 5: "server error", 9: "hang up", 12: "bad request"}
    with Loopback(gossip, plan, latency_s=0.01, key=KEY) as models:
        some = runs(tmp_path / "some", forks, models)
        code, out, err = some.finish()
        assert code == 0, err
    monkeypatch.chdir(some.folder)
    shown = [out, err]
    for arguments in (
        ["pack", "fake", "-o", "fake.tar.gz"],
        ["archive", "fake"],
        ["lineage", "fake", "-o", "lineage.html"],
        ["lineage", "fake", "-o", "lineage.json"],
        ["export", "fake", "-o", "exported"],
        ["models", "fake", "--json"],
        ["show", "fake", "--json"],
        ["show", "fake", "winner"],
        ["ls", "--json"],
    ):
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == 0, done.output
        shown.append(done.output)
    with tarfile.open("fake.tar.gz") as packed:
        packed.extractall("unpacked", filter="data")
    left = everything(some.run) + everything(some.folder / "unpacked") + "".join(shown)
    for file in some.folder.rglob("*"):
        if file.is_file():
            left += file.read_bytes().decode("latin1")
    assert "PLANTED_KEY" in left  # the name of the variable is no secret
    assert KEY not in left
    assert KEY[3:15] not in left
