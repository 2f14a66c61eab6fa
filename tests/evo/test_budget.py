"""Budgets: what is granted, and which limit is named when nothing is any more."""

from __future__ import annotations

import pytest

from evo.budget import Budget
from evo.config import Budget as Limits
from evo.records import Spent

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
    assert found.grant_call()
    found.grant_evaluation()
    assert not found.grant_call()


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


def test_calls_are_paid_from_tokens_and_dollars() -> None:
    found = budget(tokens=100, dollars=1.0)
    found.called(60, 0.25)
    assert found.grant_call()
    found.called(60, 0.25)
    assert found.exhausted() == "the budget of 100 tokens is spent"


def test_an_author_that_costs_nothing_works_on_no_dollars() -> None:
    assert budget(dollars=0.0, tokens=0).grant_call()


def test_generation_0_holds_the_ports() -> None:
    found = budget(generations=2)
    assert [found.allows_generation(number) for number in range(4)] == [True, True, True, False]
    assert budget(generations=None).allows_generation(1000)
