"""Whole runs with models: the real libraries, servers in the vendors' formats, a fake judge."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from evo.config import RunConfig
from evo.engine import Engine, Outcome
from evo.executor import Executor, Job
from evo.executors.replay import ReplayExecutor
from evo.individual import Individual
from evo.records import Generation
from evo.replay import Departed, OnMiss, Recording, Verdicts
from evo.report.models import Accounts, lines
from evo.report.view import RunView
from evo.sitting import staff
from evo.store import Store
from evo.watch import Watch
from fitness.evaluation import Evaluation
from operators.author import Brief
from tests.evo.fakes import FakeExecutor, Sitting, configuration, timed
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


async def run(
    folder: Path,
    config: RunConfig,
    executor: Executor | None = None,
    recording: Recording | None = None,
    arch: str = "",
    facts: tuple[str, ...] = ("2 cores",),
) -> Outcome:
    """One sitting, with the configured authors."""
    recorder = Sitting(folder, config).recorder()
    info = recorder.info
    brief = Brief(info.task, info.language, info.demand, info.header, facts, arch)
    engine = Engine(
        config,
        brief,
        staff(config),
        executor or FakeExecutor(),
        recorder,
        Watch(),
        recording,
    )
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
    # replies that chat instead of writing a kernel, if this run drew any, are the unusable ones
    drafted = sum(1 for one in born if one.birth.model)
    unusable = sum(one.unusable for one in found.models.values())
    assert unusable == asked.total() - asked["ideas"] - drafted
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
        # the budget may end the run while servers are out
        assert 0 <= kinds["outage"] - kinds["outage over"] <= 2 < kinds["outage over"]
        billed = server.billed(told=True)
        assert spent.tokens - guessed[0] == billed.input + billed.output + billed.reasoning
        unknown = server.billed(told=False)
        assert guessed[0] >= unknown.input + unknown.output + unknown.reasoning

    travel(main())


class Otherwise(FakeExecutor):
    """Measures other times than the fake judge of the run before."""

    def judge(self, job: Job) -> Evaluation:
        found = super().judge(job)
        return timed(found.time_ms.median * 1.5) if found.time_ms else found


def lineage(folder: Path) -> dict[str, tuple[object, ...]]:
    with Store.open(folder) as store:
        return {one.id: (one.digest, one.birth) for one in store.individuals()}


def recorded(folder: Path, on_miss: str = "stop", verdicts: str = "new") -> Recording:
    return Recording(Store.open(folder), OnMiss(on_miss), Verdicts(verdicts))


def test_a_replay_gives_the_recorded_replies_again_until_timings_lead_elsewhere(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with Loopback(write) as server:
            config = written_by([model(server, "o3", "responses")], population__islands=1)
            await run(tmp_path / "r", config)
            asked = len(server.log)
            same = recorded(tmp_path / "r")
            await run(tmp_path / "same", config, recording=same)
            assert same.used == asked == len(server.log)
            with pytest.raises(Departed) as report:
                await run(tmp_path / "other", config, Otherwise(), recorded(tmp_path / "r"))
            assert len(server.log) == asked
            check(str(report.value))
            await run(tmp_path / "other", config, Otherwise(), recorded(tmp_path / "r", "ask"))
            assert len(server.log) > asked

    def check(report: str) -> None:
        first, *rest = report.splitlines()
        assert first.startswith("the replay departed from r at 0-0-")
        assert "a prompt came up that was never asked" in first
        assert any(line.startswith("  -- time ") for line in rest), report
        assert any(line.startswith("  +- time ") for line in rest), report
        assert "--on-miss ask" in rest[-1]
        with Store.open(tmp_path / "other") as store:
            used, spent = list(store.calls(state="done")), store.spent()
        assert f"after {len(used)} of " in first
        assert used  # the ports were written for the same prompts
        assert (spent.calls, spent.tokens, spent.dollars) == (0, 0, 0.0)

    travel(main())
    assert lineage(tmp_path / "same") == lineage(tmp_path / "r")
    with Store.open(tmp_path / "same") as store:
        assert store.spent().tokens == 0
        assert {call.note for call in store.calls()} == {"from a recording"}


def test_with_its_verdicts_a_run_is_repeated_to_the_last_migrant(tmp_path: Path) -> None:
    class Slow(FakeExecutor):
        """Lets the islands drift apart."""

        def submit(self, job: Job) -> Future[Evaluation]:
            future: Future[Evaluation] = Future()
            later = asyncio.get_running_loop().call_later
            later(1 + len(job.kernel.source) % 7, future.set_result, self.judge(job))
            return future

    async def main() -> None:
        async with Loopback(write, latency_s=1.0) as server:
            models = both_vendors(server)
            authors = [{"name": "llm", "models": models, "choice": "bandit"}]
            config = configuration(authors=authors, budget__generations=4)
            await run(tmp_path / "r", config, Slow())
            asked = len(server.log)
            again = recorded(tmp_path / "r", verdicts="recorded")
            await run(tmp_path / "again", config, ReplayExecutor(again.store), again)
            assert len(server.log) == asked

    travel(main())
    assert lineage(tmp_path / "again") == lineage(tmp_path / "r")
    with Store.open(tmp_path / "r") as before, Store.open(tmp_path / "again") as after:
        assert before.info.winner == after.info.winner
        assert any(generation.migrants for generation in before.generations())
        assert sorted(before.generations(), key=place) == sorted(after.generations(), key=place)


def place(generation: Generation) -> tuple[int, int]:
    return generation.island, generation.number
