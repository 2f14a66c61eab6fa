"""Whole runs with models: the real libraries, servers in the vendors' formats, a fake judge."""

from __future__ import annotations

import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evo.config import RunConfig
from evo.engine import Engine, Outcome
from evo.individual import Individual
from evo.report.models import Accounts, lines
from evo.report.view import RunView
from evo.sitting import staff
from evo.store import Store
from evo.watch import Watch
from operators.author import Brief
from tests.evo.fakes import FakeExecutor, Sitting, configuration
from tests.evo.pen import write
from tests.loopback import BILLED_BUT_LOST, FREE, KNOWN, Loopback, scattered
from tests.loopback.clock import travel

KEY = "sk-planted-Hq3Vn8sT2wYd6cGm"
PRICE = {"input": 2.0, "cached": 0.5, "output": 8.0}


@pytest.fixture(autouse=True)
def planted_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLANTED_KEY", KEY)


def model(server: Loopback, name: str, api: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "provider": "gemini" if api == "gemini" else "openai",
        "base_url": server.url(api),
        "key_env": "PLANTED_KEY",
        "price": PRICE,
        "max_output_tokens": 2000,
        **({} if api == "gemini" else {"api": api}),
        **more,
    }


def both_vendors(server: Loopback, **more: Any) -> list[dict[str, Any]]:
    return [model(server, "o3", "responses", **more), model(server, "gem", "gemini", **more)]


def written_by(models: list[dict[str, Any]], **sections: Any) -> RunConfig:
    return configuration(authors=[{"name": "llm", "models": models}], **sections)


async def run(folder: Path, config: RunConfig, watch: Watch | None = None) -> Outcome:
    """One sitting, with the configured authors."""
    sitting = Sitting(folder, config)
    recorder = sitting.recorder()
    info = recorder.info
    brief = Brief(info.task, info.language, info.demand, info.header, ("2 cores",))
    engine = Engine(config, brief, staff(config), FakeExecutor(), recorder, watch or Watch())
    try:
        return await engine.run()
    finally:
        await engine.switchboard.aclose()
        recorder.close()


def everything(folder: Path) -> str:
    """All that a run leaves, in plain text."""
    texts = [path.read_bytes().decode("latin1") for path in folder.rglob("*") if path.is_file()]
    with Store.open(folder) as store:
        for (name,) in store.rows("select name from sqlite_master where type = 'table'"):
            for row in store.rows(f"select * from {name}"):
                texts += [_plain(value) for value in row]
    return "\n".join(texts)


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        try:
            return zlib.decompress(value).decode()
        except zlib.error:
            return value.decode("latin1")
    return str(value)


def test_a_run_goes_through_ideas_branches_crossing_and_repair_with_both_vendors(
    tmp_path: Path,
) -> None:
    rates = {"mutation": 0.6, "crossover": 0.3, "tuning": 0.1}

    async def main() -> None:
        async with Loopback(write, key=KEY) as server:
            config = written_by(
                both_vendors(server), budget__generations=4, variation={"rates": rates}
            )
            outcome = await run(tmp_path / "r", config)
            check(outcome, server)

    def check(outcome: Outcome, server: Loopback) -> None:
        assert outcome.winner is not None
        with Store.open(tmp_path / "r") as store:
            calls, born = list(store.calls()), list(store.individuals())
            proposals, spent = store.proposals(), store.spent()
        purposes = Counter(call.prompt.purpose for call in calls)
        assert set(purposes) == {"port", "ideas", "kernel", "crossover", "repair"}
        assert {call.model for call in calls} == {"o3", "gem"}
        asked = Counter(entry.asked.text for entry in server.log)
        assert asked == Counter(call.prompt.text for call in calls)
        billed = server.billed(told=True)
        assert spent.calls == len(server.log) == len(calls)
        assert spent.tokens == billed.input + billed.output + billed.reasoning
        cost = (2 * (billed.input - billed.cached) + 0.5 * billed.cached) / 1e6
        assert spent.dollars == pytest.approx(cost + 8 * (billed.output + billed.reasoning) / 1e6)
        written = [one for one in born if one.birth.operator in ("mutation", "crossover", "repair")]
        assert {one.birth.model for one in written} == {"o3", "gem"}
        carried_out = {one.birth.idea for one in born if one.birth.operator == "mutation"}
        assert carried_out <= {proposal.idea for proposal in proposals}
        parents = {one.id for one in born}
        assert {proposal.parent for proposal in proposals} <= parents
        accounted(tmp_path / "r", written)

    travel(main())
    left = everything(tmp_path / "r")
    assert KEY not in left
    assert "PLANTED_KEY" in left  # the configuration names the variable: the search does look there


def accounted(folder: Path, written: list[Individual]) -> None:
    """``kernelevo models`` leaves nothing out and counts nothing twice."""
    with Store.open(folder) as store:
        found = Accounts.read(store, RunView.read(store))
        spent, born = store.spent(), list(store.individuals())
        asked = Counter(call.prompt.purpose for call in store.calls(state="done"))
    for accounts in (found.models, found.categories):
        assert sum(one.calls for one in accounts.values()) == pytest.approx(spent.calls)
        assert sum(one.replies for one in accounts.values()) == pytest.approx(asked.total())
        dollars = sum(one.usage.dollars for one in accounts.values())
        assert dollars == pytest.approx(spent.dollars)
    assert sum(one.kernels for one in found.categories.values()) == len(born)
    assert {"(crossings)", "(first kernels)", "(tunings)"} < set(found.categories)
    own = sum(one.kernels for one in found.models.values())
    assert len(written) < own < len(born)  # tunings count for the model that wrote what is tuned
    # some replies chat instead of writing a kernel: those are the unusable ones
    drafted = sum(1 for one in born if one.birth.model)
    unusable = sum(one.unusable for one in found.models.values())
    assert unusable == asked.total() - asked["ideas"] - drafted > 0
    text = "\n".join(lines(found, "r"))
    assert "o3" in text
    assert "gain/$" in text


FAULTS = [*FREE, *BILLED_BUT_LOST, *KNOWN]


def test_in_a_soak_with_every_fault_the_books_agree_and_the_budget_holds(tmp_path: Path) -> None:
    tokens = 1_500_000

    async def main() -> None:
        plan = scattered(0.1, FAULTS, seed=3)
        async with Loopback(write, plan, latency_s=2.0) as server:
            config = written_by(
                both_vendors(server, deadline_s=60),
                population__size=12,
                budget={
                    "generations": None,
                    "evaluations": None,
                    "hours": 1000,
                    "tokens": tokens,
                    "dollars": None,
                },
            )
            outcome = await run(tmp_path / "r", config)
            check(outcome, server)

    def check(outcome: Outcome, server: Loopback) -> None:
        with Store.open(tmp_path / "r") as store:
            spent, guessed = store.spent(), store.guessed()
            states = Counter(str(call.state) for call in store.calls())
            kinds = Counter(event.kind for event in store.events())
        assert outcome.winner is not None
        assert "tokens are left, and a call may need" in outcome.reason
        assert spent.tokens <= tokens
        assert len(server.log) > 450
        assert set(states) <= {"done", "refused", "lost"}
        assert kinds["outage"] == kinds["outage over"] > 0
        billed = server.billed(told=True)
        assert spent.tokens - guessed[0] == billed.input + billed.output + billed.reasoning
        unknown = server.billed(told=False)
        assert guessed[0] >= unknown.input + unknown.output + unknown.reasoning

    travel(main())
