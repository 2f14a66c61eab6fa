"""Calls to models: on record before they are made and before they are used, within the budget."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from evo import switchboard
from evo.budget import Budget
from evo.desk import Desk, OverBudget
from evo.ledger import Asked, Ledger
from evo.recorder import Recorder
from evo.records import Call, CallState, RunInfo
from evo.requests.postbox import Postbox
from evo.sections import Budget as Limits
from evo.store import Store
from evo.switchboard import Switchboard
from evo.waiting import Waiting
from evo.watch import Watch
from fitness.evaluation import Demand
from operators.llm import Cost, Kind, Prompt, Reply, Trouble, Unusable
from operators.llm.estimate import at_most
from tests.evo.fakes import HEADER, description
from tests.loopback.clock import travel
from tests.operators.test_llm_policy import COST, FINE, MODEL, Scripted

PROMPT = Prompt("You write kernels.", ("the task", "the parent"), "kernel")
MOST = at_most(PROMPT, MODEL)


def asked(key: str = "0-1-0/mutation/implement/0/llm/kernel") -> Asked:
    return Asked(key, "llm", ("0-0-0",), PROMPT, MODEL)


class Told(Watch):
    def __init__(self) -> None:
        self.messages: list[str] = []

    def say(self, message: str) -> None:
        self.messages.append(message)


class Bench:
    """A switchboard over a run's file, with a provider that does as it is told."""

    def __init__(self, folder: Path, provider: Scripted, **limits: object) -> None:
        self.provider = provider
        self.watch = Told()
        self.recorder = _recorder(folder)
        Ledger(self.recorder).write_off()
        bounds = Limits(**{"evaluations": None, **limits})  # type: ignore[arg-type]
        self.budget = Budget(bounds, self.recorder.spent(), self.recorder.elapsed)
        waiting = Waiting()
        post = Postbox(folder, waiting)
        self.board = Switchboard(self.recorder, self.budget, self.watch, post, waiting)

    def run(self, scene: Callable[[Switchboard], Awaitable[None]]) -> None:
        async def main() -> None:
            switchboard.provider = lambda _: self.provider  # type: ignore[assignment]
            async with asyncio.timeout(1e6):
                await scene(self.board)

        travel(main())

    def call(self) -> Call:
        (call,) = self.recorder.calls()
        return call


def _recorder(folder: Path) -> Recorder:
    if (folder / "run.sqlite").exists():
        return Recorder.open(folder)
    facts = (description(), Demand(), "cpp", HEADER, {}, "2025-01-01")
    return Recorder.create(folder, RunInfo("r", "", *facts))


@pytest.fixture(autouse=True)
def real_provider() -> Iterator[None]:
    before = switchboard.provider
    yield
    switchboard.provider = before


def test_a_reply_is_on_the_disk_before_it_is_used_and_is_not_asked_for_again(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path / "r", Scripted())

    async def scene(board: Switchboard) -> None:
        assert await board.reply(asked()) == FINE
        shutil.copytree(tmp_path / "r", tmp_path / "killed")  # what a kill at this moment leaves
        assert await board.reply(asked()) == FINE

    bench.run(scene)
    assert len(bench.provider.asked) == 1
    again = Bench(tmp_path / "killed", Scripted())

    async def after(board: Switchboard) -> None:
        assert await board.reply(asked()) == FINE

    again.run(after)
    assert again.provider.asked == []
    assert again.recorder.spent().tokens == COST.tokens


def test_an_attempt_is_on_the_disk_before_it_is_made(tmp_path: Path) -> None:
    async def look(prompt: Prompt) -> Reply:
        with Store.open(tmp_path / "r") as store:
            (call,) = store.calls(state="open")
        assert call.prompt == prompt
        shutil.copytree(tmp_path / "r", tmp_path / "killed")
        return FINE

    bench = Bench(tmp_path / "r", Scripted(look))

    async def scene(board: Switchboard) -> None:
        await board.reply(asked())

    bench.run(scene)
    again = Bench(tmp_path / "killed", Scripted())
    assert again.call().state is CallState.LOST
    assert again.budget.used().tokens == MOST.tokens  # nobody can say what it cost
    again.run(scene)  # and it is asked for once more
    assert again.call().state is CallState.DONE
    assert again.budget.used().tokens == MOST.tokens + COST.tokens
    spent = again.recorder.spent()
    assert (spent.calls, spent.tokens) == (2, MOST.tokens + COST.tokens)


def test_what_is_stopped_under_way_counts_as_its_estimate(tmp_path: Path) -> None:
    async def never(_: Prompt) -> Reply:
        await asyncio.sleep(50)
        raise AssertionError

    bench = Bench(tmp_path / "r", Scripted(never))

    async def scene(board: Switchboard) -> None:
        task = asyncio.ensure_future(board.reply(asked()))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    bench.run(scene)
    assert bench.call().state is CallState.LOST
    assert bench.recorder.spent().tokens == MOST.tokens
    assert bench.budget.in_flight() == {}


def test_a_refused_call_stays_refused(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path / "r", Scripted(Trouble(Kind.DECLINED, "I would rather not", usage=COST))
    )

    async def scene(board: Switchboard) -> None:
        assert await board.reply(asked()) is None
        assert await board.reply(asked()) is None

    bench.run(scene)
    assert len(bench.provider.asked) == 1
    assert bench.call().state is CallState.REFUSED
    assert bench.call().note == "model declined: I would rather not"
    assert bench.recorder.spent().tokens == COST.tokens


def test_without_room_in_the_budget_nothing_is_asked_and_nothing_recorded(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "r", Scripted(), tokens=MOST.tokens - 1)

    async def scene(board: Switchboard) -> None:
        with pytest.raises(OverBudget):
            await board.reply(asked())

    bench.run(scene)
    assert bench.provider.asked == []
    assert list(bench.recorder.calls()) == []
    assert bench.budget.refusals == 1
    assert f"a call may need {MOST.tokens:.6g}" in (bench.budget.exhausted() or "")


@pytest.mark.parametrize("limit", ["tokens", "dollars", "calls"])
def test_no_budget_is_exceeded_however_many_ask_at_once(tmp_path: Path, limit: str) -> None:
    limits = {"tokens": 3 * MOST.tokens, "dollars": 3.5 * MOST.dollars, "calls": 7}
    lost = [Trouble(Kind.LOST, "gone", Cost.UNKNOWN) if n % 5 == 0 else FINE for n in range(200)]
    bench = Bench(tmp_path / "r", Scripted(*lost), **{limit: limits[limit]})

    async def one(board: Switchboard, number: int) -> bool:
        try:
            return await board.reply(asked(f"0-1-{number}/x")) is not None
        except OverBudget:
            return False

    async def scene(board: Switchboard) -> None:
        answered = sum(await asyncio.gather(*(one(board, number) for number in range(40))))
        assert 0 < answered < 40

    bench.run(scene)
    used = bench.recorder.spent()
    assert getattr(used, limit) <= limits[limit]
    # and it is used up: what is left would not do for another call
    needs = {"tokens": MOST.tokens, "dollars": MOST.dollars, "calls": 1}
    assert getattr(used, limit) + needs[limit] > limits[limit]
    assert (used.calls, used.tokens) == (bench.budget.used().calls, bench.budget.used().tokens)
    assert used.dollars == pytest.approx(bench.budget.used().dollars)


def test_an_outage_is_said_once_and_its_end_too(tmp_path: Path) -> None:
    down = [Trouble(Kind.OUTAGE, "the server had an error") for _ in range(4)]
    bench = Bench(tmp_path / "r", Scripted(*down))

    async def scene(board: Switchboard) -> None:
        task = asyncio.ensure_future(board.reply(asked()))
        await asyncio.sleep(4)
        (outage,) = board.outages.now
        assert str(outage).startswith("waiting for o3 since ")
        assert await task == FINE
        assert board.outages.now == []

    bench.run(scene)
    begun, ended = bench.watch.messages
    assert begun.startswith("o3: server trouble: the server had an error; next try in ")
    assert ended.startswith("o3 answers again, after ")
    kinds = [event.kind for event in bench.recorder.events()]
    assert kinds == ["outage", "outage over"]
    assert bench.recorder.spent().calls == 1


def test_nobody_waits_for_a_server_longer_than_the_hours_of_the_budget(tmp_path: Path) -> None:
    down = [Trouble(Kind.UNREACHABLE, "nobody there") for _ in range(1000)]
    bench = Bench(tmp_path / "r", Scripted(*down), hours=1e-9)

    async def scene(board: Switchboard) -> None:
        with pytest.raises(OverBudget):
            await board.reply(asked())

    bench.run(scene)
    assert bench.budget.refusals == 1
    assert bench.recorder.spent().calls == 0


def test_a_model_that_cannot_be_asked_ends_the_run_before_anything_is_spent(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "r", Scripted(checks=(Trouble(Kind.KEY, "put another key"),)))

    async def scene(board: Switchboard) -> None:
        with pytest.raises(Unusable, match="o3: put another key"):
            await board.check([MODEL])

    bench.run(scene)
    assert list(bench.recorder.calls()) == []


def test_an_author_is_told_that_no_answer_will_come_and_the_desk_knows_why(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "r", Scripted(), calls=1)

    async def scene(board: Switchboard) -> None:
        desk = Desk("0-1-0/x", random.Random(1), "llm", ("0-0-0",), board.reply, dict)
        assert await desk.ask("kernel", PROMPT, MODEL) == FINE
        assert not desk.cut_short
        assert await desk.ask("another", PROMPT, MODEL) is None
        assert desk.cut_short
        assert await desk.ask("kernel", PROMPT, MODEL) == FINE

    bench.run(scene)
    assert bench.call().key == "0-1-0/x/llm/kernel"
    assert bench.call().parents == ("0-0-0",)
