"""Budgets: what is granted, and which limit is named when nothing is any more."""

from __future__ import annotations

import asyncio

import pytest

from evo.budget import Budget
from evo.records import Spent
from evo.sections import Budget as Limits
from operators.llm import Usage

NOTHING = Spent(0, 0.0, 0, 0.0)


def budget(spent: Spent = NOTHING, seconds: float = 0.0, **limits: object) -> Budget:
    return Budget(Limits(**limits), spent, lambda: seconds)  # type: ignore[arg-type]


def test_no_more_evaluations_are_granted_than_there_are() -> None:
    found = budget(Spent(1, 0.0, 0, 0.0), evaluations=3)
    assert [found.grant_evaluation() for _ in range(4)] == [True, True, False, False]
    assert found.refusals == 2
    assert found.exhausted() is None  # two are still under way
    found.evaluated(committed=True)
    found.evaluated(committed=False)  # the machine failed: it may be tried again
    assert found.used().evaluations == 2
    assert found.grant_evaluation()
    found.evaluated(committed=True)
    assert found.exhausted() == "the budget of 3 evaluations is spent"


def test_nobody_is_asked_for_what_could_not_be_judged() -> None:
    found = budget(evaluations=1)
    assert found.grant_answer()
    found.grant_evaluation()
    assert not found.grant_answer()


@pytest.mark.parametrize(
    ("spent", "seconds", "limits", "message"),
    [
        (NOTHING, 7200.0, {"hours": 2}, "the budget of 2 hours is spent"),
        (Spent(0, 0, 9, 0.0), 0.0, {"tokens": 9}, "the budget of 9 tokens is spent"),
        (Spent(0, 0, 0, 2.5), 0.0, {"dollars": 2.5}, "the budget of 2.5 dollars is spent"),
    ],
)
def test_whichever_is_spent_first_is_named(
    spent: Spent, seconds: float, limits: dict[str, object], message: str
) -> None:
    found = budget(spent, seconds, **limits)
    assert found.exhausted() == message
    assert not found.allows_generation(0)
    assert not found.grant_evaluation()


def reserve(found: Budget, *estimates: Usage) -> list[bool]:
    async def all_at_once() -> list[bool]:
        async with asyncio.timeout(5):
            return [await found.reserve(estimate, "o3") for estimate in estimates]

    return asyncio.run(all_at_once())


def test_what_calls_may_cost_at_most_is_set_aside_before_they_are_made() -> None:
    found = budget(tokens=100, dollars=1.0)
    assert reserve(found, Usage(60, 0, 0, 0, 0.25)) == [True]
    assert found.in_flight() == {"o3": 1}
    found.settle(Usage(60, 0, 0, 0, 0.25), "o3", Usage(10, 0, 0, 0, 0.1))
    assert reserve(found, Usage(91)) == [False]
    assert found.refusals == 1
    assert found.exhausted() == "90 of 100 tokens are left, and a call may need 91"


def test_a_call_waits_for_what_is_set_aside_for_others_and_may_come_back() -> None:
    found = budget(dollars=1.0)
    order: list[str] = []

    async def call(name: str, estimate: float, cost: float) -> None:
        usage = Usage(dollars=estimate)
        assert await found.reserve(usage, name)
        order.append(f"{name} begins")
        await asyncio.sleep(0)
        order.append(f"{name} ends")
        found.settle(usage, name, Usage(dollars=cost))

    async def three() -> None:
        async with asyncio.timeout(5):
            await asyncio.gather(*(call(name, 0.8, 0.05) for name in "abc"))

    asyncio.run(three())
    assert order == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]
    assert found.used().dollars == pytest.approx(0.15)
    assert found.used().calls == 3


def test_calls_are_counted_those_under_way_included_and_free_attempts_not() -> None:
    found = budget(calls=2)
    for usage in (Usage(1), None, Usage(1)):
        assert reserve(found, Usage(9)) == [True]
        found.settle(Usage(9), "o3", usage)
    assert found.exhausted() == "the budget of 2 calls is spent"
    assert reserve(found, Usage(9)) == [False]


def test_an_author_that_costs_nothing_works_on_no_dollars() -> None:
    assert budget(dollars=0.0, tokens=0).grant_answer()


def test_generation_0_holds_the_ports() -> None:
    found = budget(generations=2)
    assert [found.allows_generation(number) for number in range(4)] == [True, True, True, False]
    assert budget(generations=None).allows_generation(1000)


def test_after_the_search_a_winner_may_still_be_mended_but_not_for_more_money() -> None:
    found = Budget(Limits(hours=2, evaluations=1), Spent(1, 0.0, 0, 0.0), lambda: 7200.0)
    assert not found.grant_evaluation()
    assert not found.close_search()  # no hours are left
    assert found.grant_answer()
    assert found.grant_evaluation()
    paid = budget(Spent(0, 0.0, 0, 2.5), dollars=2.5)
    assert paid.close_search()
    assert not paid.grant_answer()
    assert paid.grant_evaluation()  # what the last dollar bought is judged
