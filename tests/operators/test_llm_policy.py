"""The policy for trouble, with a provider that does as it is told and a clock that jumps."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from operators.llm import (
    Booking,
    Cost,
    Kind,
    Limits,
    Model,
    Price,
    Prompt,
    Refused,
    Reply,
    Trouble,
    Unusable,
    Usage,
)
from operators.llm.estimate import about, at_most
from operators.llm.gate import LONGEST_S
from operators.llm.policy import Line, Notice
from operators.llm.rules import RULES, Then
from tests.loopback.clock import TravellingLoop, now, travel

PRICE = Price(input=2.0, cached=0.5, output=8.0, reasoning=8.0)
MODEL = Model("o3", "openai", {"max_output_tokens": 1000}, PRICE, Limits(deadline_s=100))
PROMPT = Prompt("You write kernels.", ("a", "b"), "ideas")
COST = PRICE.usage(100, 0, 20, 5)
FINE = Reply("fine", COST, "o3-1")

Outcome = Reply | Trouble | Callable[[Prompt], Awaitable[Reply]]


class Scripted:
    """A provider that answers by a list, then fine; it notes when it was asked."""

    def __init__(self, *outcomes: Outcome, checks: tuple[Trouble, ...] = ()) -> None:
        self.outcomes = list(outcomes)
        self.checks = list(checks)
        self.asked: list[float] = []
        self.under_way = self.busiest = 0

    async def complete(self, prompt: Prompt, model: Model) -> Reply:
        self.asked.append(now())
        self.under_way += 1
        self.busiest = max(self.busiest, self.under_way)
        try:
            outcome = self.outcomes.pop(0) if self.outcomes else FINE
            if isinstance(outcome, Trouble):
                raise outcome
            return outcome if isinstance(outcome, Reply) else await outcome(prompt)
        finally:
            self.under_way -= 1

    async def check(self, model: Model) -> None:
        if self.checks:
            raise self.checks.pop(0)

    async def aclose(self) -> None:
        pass

    def gaps(self) -> list[float]:
        return [later - sooner for sooner, later in pairwise(self.asked)]


class Pages:
    """Books that remember each attempt: what it was booked at, and what became of it."""

    def __init__(self, attempts: int | None = None) -> None:
        self.entries: list[str | Usage | None] = []
        self.estimates: list[Usage] = []
        self._left = attempts

    async def book(self, prompt: Prompt, model: Model, estimate: Usage) -> Booking | None:
        if self._left is not None and len(self.entries) >= self._left:
            return None
        self.estimates.append(estimate)
        self.entries.append(None)
        return Page(self, len(self.entries) - 1)


class Page:
    def __init__(self, pages: Pages, number: int) -> None:
        self._pages, self._number = pages, number

    def _close(self, outcome: str | Usage) -> None:
        assert self._pages.entries[self._number] is None, "an attempt is closed once"
        self._pages.entries[self._number] = outcome

    def settled(self, usage: Usage) -> None:
        self._close(usage)

    def free(self) -> None:
        self._close("free")

    def unknown(self) -> None:
        self._close("unknown")


class Scene:
    """A line with a scripted provider, its books and what it said."""

    def __init__(
        self, *outcomes: Outcome, model: Model = MODEL, pages: Pages | None = None
    ) -> None:
        self.provider = Scripted(*outcomes)
        self.pages = pages or Pages()
        self.said: list[Notice] = []
        self.line = Line(model, self.provider, self.said.append, random.Random(0))

    async def ask(self) -> Reply:
        return await self.line.complete(PROMPT, self.pages)

    async def refusal(self) -> Trouble:
        with pytest.raises(Refused) as refused:
            await self.ask()
        return refused.value.trouble


def trouble(kind: Kind, cost: Cost = Cost.FREE, **more: object) -> Trouble:
    return Trouble(kind, f"because of {kind}", cost, **more)  # type: ignore[arg-type]


async def silence(prompt: Prompt) -> Reply:
    await asyncio.sleep(1e9)
    raise AssertionError


def after(seconds: float, outcome: Reply | Trouble = FINE) -> Outcome:
    async def late(prompt: Prompt) -> Reply:
        await asyncio.sleep(seconds)
        if isinstance(outcome, Trouble):
            raise outcome
        return outcome

    return late


def test_something_is_said_about_every_kind_of_trouble() -> None:
    assert set(RULES) == set(Kind)


def test_an_answer_is_booked_at_what_it_cost() -> None:
    async def main() -> None:
        scene = Scene()
        assert await scene.ask() == FINE
        assert scene.pages.entries == [COST]
        assert scene.pages.estimates == [at_most(PROMPT, MODEL)]
        assert not scene.said

    travel(main())


def test_the_server_is_left_alone_for_as_long_as_it_asks() -> None:
    async def main() -> None:
        scene = Scene(trouble(Kind.RATE, retry_after_s=42.0))
        await scene.ask()
        assert 42 <= scene.provider.gaps()[0] < 45
        assert scene.pages.entries == ["free", COST]

    travel(main())


def test_without_a_word_from_the_server_pauses_double_up_to_a_minute() -> None:
    async def main() -> None:
        scene = Scene(*[trouble(Kind.RATE)] * 10)
        await scene.ask()
        for number, gap in enumerate(scene.provider.gaps(), 1):
            whole = min(2.0**number, LONGEST_S)
            assert whole / 2 <= gap < whole + 1

    travel(main())


@pytest.mark.parametrize("kind", [Kind.OUTAGE, Kind.UNREACHABLE, Kind.QUOTA, Kind.RATE])
def test_an_outage_of_hours_is_outlived_by_all_calls_and_said(kind: Kind) -> None:
    async def main() -> None:
        scene = Scene()
        begun = now()

        async def down(prompt: Prompt) -> Reply:
            if now() < begun + 3 * 3600:
                raise trouble(kind)
            return FINE

        scene.provider.outcomes = [down] * 10_000
        replies = await asyncio.gather(*(scene.ask() for _ in range(20)))
        assert replies == [FINE] * 20
        # at first all eight at once run into it; then one at a time finds out
        assert len(scene.provider.asked) < 8 + 3 * 3600 / 30 + 20
        assert "next try in" in str(scene.said[0])
        assert scene.said[-1].then is None
        assert str(scene.said[-1]) == "o3 answers again"
        assert [notice.then for notice in scene.said].count(None) == 1
        loop = asyncio.get_running_loop()
        assert isinstance(loop, TravellingLoop)
        assert loop.naps < 5_000  # nobody waits by looking at the clock again and again

    travel(main())


def test_while_a_server_is_out_one_call_at_a_time_asks_it() -> None:
    async def main() -> None:
        scene = Scene(*[after(1.0, trouble(Kind.OUTAGE))] * 30)
        asking = [asyncio.create_task(scene.ask()) for _ in range(8)]
        await asyncio.sleep(5)  # the eight that were under way have failed
        scene.provider.busiest = 0
        await asyncio.gather(*asking)
        assert scene.provider.busiest <= 8
        probes = scene.provider.asked[8:30]
        assert all(later - sooner > 1 for sooner, later in pairwise(probes))

    travel(main())


def test_calls_of_before_the_trouble_neither_lengthen_nor_end_it() -> None:
    async def main() -> None:
        scene = Scene(
            after(1, trouble(Kind.OUTAGE)), after(2, trouble(Kind.OUTAGE)), after(2.1, FINE)
        )
        await asyncio.gather(*(scene.ask() for _ in range(3)))
        shut = [notice for notice in scene.said if notice.wait_s is not None]
        assert len(shut) == 1
        assert scene.said[-1].then is None

    travel(main())


def test_an_answer_to_what_was_asked_before_the_trouble_does_not_end_it() -> None:
    async def main() -> None:
        scene = Scene(after(1, trouble(Kind.RATE, retry_after_s=50.0)), after(2))
        begun = now()
        first, second = (asyncio.create_task(scene.ask()) for _ in range(2))
        await second
        await asyncio.sleep(1)
        await asyncio.gather(first, scene.ask())
        assert [moment - begun >= 51 for moment in scene.provider.asked] == [False] * 2 + [True] * 2

    travel(main())


def test_an_attempt_that_waited_for_room_in_the_budget_is_not_made_into_an_outage() -> None:
    class Slow(Pages):
        async def book(self, prompt: Prompt, model: Model, estimate: Usage) -> Booking | None:
            if self.entries:  # the first has room at once
                await asyncio.sleep(5)
            return await super().book(prompt, model, estimate)

    async def main() -> None:
        scene = Scene(after(1, trouble(Kind.RATE, retry_after_s=50.0)), pages=Slow())
        begun = now()
        await asyncio.gather(scene.ask(), scene.ask())
        assert all(moment - begun >= 51 for moment in scene.provider.asked[1:])
        assert None not in scene.pages.entries
        assert scene.pages.entries.count("free") == 2

    travel(main())


@pytest.mark.parametrize("kind", [Kind.LOST, Kind.GARBLED])
def test_an_attempt_of_unknown_outcome_is_booked_so_and_the_next_one_anew(kind: Kind) -> None:
    async def main() -> None:
        scene = Scene(trouble(kind, Cost.UNKNOWN), trouble(kind, Cost.UNKNOWN))
        assert await scene.ask() == FINE
        assert scene.pages.entries == ["unknown", "unknown", COST]

        scene = Scene(*[trouble(kind, Cost.UNKNOWN)] * 9)
        assert (await scene.refusal()).kind is kind
        assert scene.pages.entries == ["unknown"] * 3

    travel(main())


def test_troubles_of_several_kinds_do_not_add_up_to_many_paid_attempts() -> None:
    async def main() -> None:
        scene = Scene(
            trouble(Kind.LOST, Cost.UNKNOWN),
            trouble(Kind.TRUNCATED, usage=COST),
            trouble(Kind.GARBLED, Cost.UNKNOWN),
            trouble(Kind.EMPTY, usage=COST),
        )
        await scene.refusal()
        assert len(scene.pages.entries) <= 3

    travel(main())


def test_after_the_deadline_the_answer_is_given_up_and_booked_as_unknown() -> None:
    async def main() -> None:
        scene = Scene(silence)
        begun = now()
        given_up = await scene.refusal()
        assert given_up.kind is Kind.TIMEOUT
        assert "100 s" in given_up.message
        assert now() - begun == pytest.approx(100, abs=1)
        assert scene.pages.entries == ["unknown"]
        assert await scene.ask() == FINE

    travel(main())


def test_a_server_that_never_answers_is_not_asked_by_all_at_once_for_ever() -> None:
    async def main() -> None:
        scene = Scene(*[silence] * 40)
        calls = [asyncio.create_task(scene.ask()) for _ in range(40)]
        await asyncio.sleep(1000)
        # 8 at once, then (three in a row are an outage) one after the other
        assert len(scene.provider.asked) < 8 + 1000 / 100 + 1
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    travel(main())


@pytest.mark.parametrize("kind", [Kind.EMPTY, Kind.TRUNCATED])
def test_an_empty_or_cut_answer_is_paid_for_and_asked_again_once(kind: Kind) -> None:
    async def main() -> None:
        scene = Scene(trouble(kind, usage=COST))
        assert await scene.ask() == FINE
        assert scene.pages.entries == [COST, COST]

        scene = Scene(*[trouble(kind, usage=COST, text="half an ans")] * 2)
        given_up = await scene.refusal()
        assert given_up.text == "half an ans"
        assert scene.pages.entries == [COST, COST]

    travel(main())


@pytest.mark.parametrize("kind", [Kind.DECLINED, Kind.REJECTED])
def test_what_a_model_declines_is_not_asked_again(kind: Kind) -> None:
    async def main() -> None:
        scene = Scene(trouble(kind, usage=COST))
        assert (await scene.refusal()).kind is kind
        assert scene.pages.entries == [COST]
        assert scene.line.troubles == {kind: 1}
        assert scene.said[0].then is Then.GIVE_UP

    travel(main())


@pytest.mark.parametrize("kind", [Kind.KEY, Kind.MODEL])
def test_a_wrong_key_or_name_stops_the_run(kind: Kind) -> None:
    async def main() -> None:
        scene = Scene(trouble(kind))
        with pytest.raises(Unusable, match=f"o3: because of {kind}"):
            await scene.ask()
        assert scene.pages.entries == ["free"]

    travel(main())


def test_a_key_that_was_good_gets_the_benefit_of_the_doubt() -> None:
    async def main() -> None:
        scene = Scene(FINE, *[trouble(Kind.KEY)] * 3)
        assert [await scene.ask(), await scene.ask()] == [FINE, FINE]
        scene.provider.outcomes = [trouble(Kind.KEY)] * 100
        with pytest.raises(Unusable):
            await scene.ask()
        assert len(scene.provider.outcomes) > 90

    travel(main())


def test_options_that_the_server_never_accepts_stop_the_run() -> None:
    async def main() -> None:
        scene = Scene(*[trouble(Kind.REJECTED)] * 3)
        await scene.refusal()
        await scene.refusal()
        with pytest.raises(Unusable, match="because of request rejected"):
            await scene.ask()

        scene = Scene(FINE, *[trouble(Kind.REJECTED)] * 9)
        await scene.ask()
        for _ in range(9):
            await scene.refusal()

    travel(main())


def test_a_prompt_that_no_server_survives_is_given_up_while_others_go_on() -> None:
    async def main() -> None:
        async def poisoned(prompt: Prompt) -> Reply:
            if prompt.system == "poison":
                raise trouble(Kind.OUTAGE)
            return FINE

        scene = Scene(*[poisoned] * 1000)
        bad = asyncio.create_task(
            scene.line.complete(replace(PROMPT, system="poison"), scene.pages)
        )
        for _ in range(20):
            await asyncio.sleep(30)
            await scene.ask()
        with pytest.raises(Refused):
            await bad

    travel(main())


def test_what_the_budget_does_not_allow_is_not_sent() -> None:
    async def main() -> None:
        scene = Scene(pages=Pages(attempts=0))
        assert (await scene.refusal()).kind is Kind.BUDGET
        assert not scene.provider.asked

        scene = Scene(*[trouble(Kind.LOST, Cost.UNKNOWN)] * 3, pages=Pages(attempts=1))
        assert (await scene.refusal()).kind is Kind.BUDGET
        assert len(scene.provider.asked) == 1

    travel(main())


def test_a_cancelled_call_is_booked_as_unknown_and_leaves_the_line_free() -> None:
    async def main() -> None:
        model = replace(MODEL, limits=Limits(concurrency=1, requests_per_minute=2))
        scene = Scene(silence, model=model)
        call = asyncio.create_task(scene.ask())
        waiting = asyncio.create_task(scene.ask())
        await asyncio.sleep(1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await waiting == FINE
        assert scene.pages.entries == ["unknown", COST]

    travel(main())


def test_a_call_cancelled_in_an_outage_lets_the_next_one_try() -> None:
    async def main() -> None:
        scene = Scene(trouble(Kind.OUTAGE, retry_after_s=50.0))
        first, second = asyncio.create_task(scene.ask()), asyncio.create_task(scene.ask())
        await asyncio.sleep(10)
        first.cancel()
        assert await second == FINE
        assert await scene.ask() == FINE

    travel(main())


def test_no_more_calls_are_under_way_than_the_limit_allows() -> None:
    async def main() -> None:
        model = replace(MODEL, limits=Limits(concurrency=3))
        scene = Scene(*[after(2)] * 20, model=model)
        await asyncio.gather(*(scene.ask() for _ in range(20)))
        assert scene.provider.busiest == 3

    travel(main())


def test_no_minute_sees_more_requests_or_tokens_than_allowed() -> None:
    async def main() -> None:
        limits = Limits(concurrency=50, requests_per_minute=10)
        scene = Scene(*[after(1)] * 45, model=replace(MODEL, limits=limits))
        begun = now()
        await asyncio.gather(*(scene.ask() for _ in range(45)))
        assert now() - begun < 4 * 60 + 10
        for moment in scene.provider.asked:
            assert sum(moment <= other < moment + 59.99 for other in scene.provider.asked) <= 10

        # each takes 125 tokens, but until that is known counts as its limit and its prompt
        limits = Limits(concurrency=50, tokens_per_minute=4_000)
        scene = Scene(*[after(1)] * 20, model=replace(MODEL, limits=limits))
        begun = now()
        await asyncio.gather(*(scene.ask() for _ in range(20)))
        assert scene.provider.busiest == 3
        assert now() - begun < 60

    travel(main())


def test_a_call_larger_than_the_rate_waits_for_an_idle_minute_and_goes() -> None:
    async def main() -> None:
        limits = Limits(tokens_per_minute=500)
        scene = Scene(model=replace(MODEL, limits=limits))
        assert await scene.ask() == FINE

    travel(main())


class TestCheck:
    def test_it_waits_out_an_outage(self) -> None:
        async def main() -> None:
            scene = Scene()
            scene.provider.checks = [trouble(Kind.UNREACHABLE)] * 5
            await scene.line.check()
            assert scene.said[-1].then is None

        travel(main())

    def test_it_stops_at_a_wrong_key_or_an_unknown_model(self) -> None:
        async def main() -> None:
            for kind in (Kind.KEY, Kind.MODEL):
                scene = Scene()
                scene.provider.checks = [trouble(kind)]
                with pytest.raises(Unusable, match=str(kind)):
                    await scene.line.check()
                assert not scene.provider.asked

        travel(main())

    def test_a_server_that_cannot_tell_passes(self) -> None:
        async def main() -> None:
            scene = Scene()
            scene.provider.checks = [trouble(Kind.GARBLED, Cost.UNKNOWN)] * 9
            await scene.line.check()

        travel(main())


class TestEstimate:
    def test_it_is_never_below_what_a_byte_tokenizer_could_count(self) -> None:
        for text in ("int x = 0;", "é" * 50, "\U0001f600" * 10, "a" * 10_000):
            prompt = Prompt(text, (text, text), "ideas", {"type": "object", "title": text})
            estimate = at_most(prompt, MODEL)
            assert estimate.input > 4 * len(text.encode())
            assert estimate.output == 1000
            assert about(prompt) < estimate.input

    def test_it_is_priced_at_the_dearest_that_may_come(self) -> None:
        dear = replace(MODEL, price=Price(1.0, 3.0, 10.0, 20.0))
        estimate = at_most(PROMPT, dear)
        assert estimate.dollars == pytest.approx((3 * estimate.input + 20 * 1000) / 1e6)
