"""The plan before the run: what it says is what the run does, and nothing is asked for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evo.config import RunConfig
from evo.machine import survey
from evo.rehearsal import Rehearsal, rehearse
from evo.report.rehearsal import lines
from evo.store import Store
from operators.llm.estimate import at_most
from tests.evo.fakes import HEADER, FakeExecutor, configuration, description
from tests.evo.pen import write
from tests.evo.test_whole_runs import model, run
from tests.loopback import Loopback
from tests.loopback.clock import travel

PRICED = {
    "provider": "openai",
    "price": {"input": 2.0, "output": 8.0},
    "base_url": "http://[::1]/v1",
}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def config(models: list[dict[str, Any]], **sections: Any) -> RunConfig:
    return configuration(authors=[{"name": "llm", "models": models}], **sections)


def planned(**sections: Any) -> tuple[Rehearsal, RunConfig]:
    found = config([{"name": "m", **PRICED}], **sections)
    return rehearse(found, description()), found


def test_the_run_takes_the_steps_and_asks_the_prompts_that_were_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_KEY", "sk-x")

    async def main() -> Rehearsal:
        async with Loopback(write) as server:
            models = [model(server, "o3", "responses"), model(server, "gem", "gemini")]
            made = config(models, budget__generations=3)
            announced = await asyncio.to_thread(rehearse, made, description())
            assert server.log == []
            assert server.looked_up == []
            here, judge = survey("cpu", None, None), FakeExecutor(failing=0.0)
            await run(tmp_path / "r", made, judge, arch=here.arch, facts=here.facts)
            return announced

    announced = travel(main())
    with Store.open(tmp_path / "r") as store:
        places = [(one.island, one.number) for one in store.generations()]
        steps = [step for place in places for phase in store.plan(*place) for step in phase.steps]
        calls = list(store.calls())
        evaluations = store.spent().evaluations
    done = Counter(step.operator for step in steps)
    assert announced.steps["port"] == sum(call.prompt.purpose == "port" for call in calls)
    assert {**announced.steps, "port": 0} == {**done, "port": 0}
    asked = {call.key: (call.prompt.text, call.model) for call in calls}
    header = description().signature.header("cpp").strip()  # the fake run has one of its own
    first = [(one.text.replace(header, HEADER), to.name) for one, to in announced.prompts]
    assert first == [asked[f"0-0-0/port/port/{number}/llm/kernel"] for number in range(2)]
    counts = Counter(call.prompt.purpose for call in calls)
    expected = {one.purpose: one.count for one in announced.calls}
    assert counts["ideas"] == pytest.approx(expected["ideas"], abs=3)  # some ask again
    assert counts["kernel"] == pytest.approx(expected["kernel"], rel=0.1)
    assert evaluations == pytest.approx(announced.evaluations, rel=0.5)


def test_the_estimate_covers_what_every_call_may_cost_at_most() -> None:
    found, _ = planned()
    (prompt, asked), *_ = found.prompts
    (port,) = (one for one in found.calls if one.purpose == "port")
    assert port.most.dollars == pytest.approx(at_most(prompt, asked).dollars, rel=0.05)
    assert 0 < port.likely.dollars < port.most.dollars
    total = sum(one.count * one.likely.dollars for one in found.calls)
    assert found.likely.dollars == pytest.approx(total)


def test_the_plan_names_costs_and_the_budget_that_ends_it_and_shows_the_prompts_in_full() -> None:
    found, made = planned(budget={"generations": 3, "tokens": 100_000})
    text = "\n".join(lines(found, made))
    assert text.startswith("fake: nothing is asked, judged or spent; this is the plan\n")
    assert "the budget of 100,000 tokens is likely to end it after " in text
    for prompt, _ in found.prompts:
        assert prompt.system in text
        assert prompt.text in text
    found, made = planned(budget={"generations": 3, "calls": 1000})
    assert "within its budget of 1,000 calls, 7,000,000 tokens, 50.0 dollars" in "\n".join(
        lines(found, made)
    )


def test_a_plan_for_a_gpu_that_is_not_here_says_what_it_lacks() -> None:
    found, made = planned(devices="auto", require="L40S")
    text = "\n".join(lines(found, made))
    assert "note: require: L40S: this machine has no GPU; the run's prompts will state" in text
    assert "CUDA" in text


def test_authors_without_models_cost_nothing() -> None:
    made = configuration(authors=[{"name": "ask"}])
    found = rehearse(made, description())
    assert found.most.dollars == 0.0
    assert found.prompts
