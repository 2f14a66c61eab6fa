"""A run that asks models, killed at any moment: no reply is lost, none is asked for twice."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from evo.records import CallState
from evo.store import Store
from tests.evo.pen import write
from tests.evo.test_run import Runs, Server
from tests.loopback import Loopback

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
