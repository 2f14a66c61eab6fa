"""Which model is asked next."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from operators.author import Credit
from operators.llm import Model, Price
from operators.llm.choice import CHOICES, bandit, weights

CHEAP = Model("cheap", "openai", price=Price(1, 1, 4, 4))
DEAR = Model("dear", "openai", price=Price(10, 10, 40, 40))
OWN = Model("own", "openai", price=Price(0, 0, 0, 0))
DOUBLED = 2.0


def shares(
    choice: str, models: list[Model], credit: dict[str, Credit], draws: int = 2000
) -> Counter[str]:
    rng = random.Random(0)
    return Counter(CHOICES[choice](models, credit, rng).name for _ in range(draws))


def test_weights_are_kept_to() -> None:
    models = [Model("a", "x", weight=3), Model("b", "x", weight=1), Model("c", "x", weight=0)]
    drawn = shares("weights", models, {})
    assert drawn["a"] == pytest.approx(1500, abs=100)
    assert drawn["c"] == 0


@pytest.mark.parametrize("choice", [weights, bandit])
def test_the_same_seed_draws_the_same(choice: object) -> None:
    def draw() -> list[str]:
        rng = random.Random("0-3-12/mutation")
        return [choice([CHEAP, DEAR], {}, rng).name for _ in range(20)]  # type: ignore[operator]

    assert draw() == draw()


def test_at_equal_cost_the_one_that_gains_more_is_asked_more() -> None:
    credit = {
        "a": Credit(20, 1.0, 20, (DOUBLED,) * 8),
        "b": Credit(20, 1.0, 20, (DOUBLED,)),
    }
    drawn = shares("bandit", [Model("a", "x"), Model("b", "x")], credit)
    assert drawn["a"] > 1800
    assert drawn["b"] > 0, "nobody is dropped for good"


def test_at_equal_gain_the_cheaper_one_is_asked_more() -> None:
    credit = {
        "cheap": Credit(20, 0.2, 20, (DOUBLED,) * 4),
        "dear": Credit(20, 2.0, 20, (DOUBLED,) * 4),
    }
    assert shares("bandit", [CHEAP, DEAR], credit)["cheap"] > 1900


def test_a_dear_model_is_worth_it_if_it_gains_enough() -> None:
    credit = {
        "cheap": Credit(100, 1.0, 100, (1.05,)),
        "dear": Credit(100, 10.0, 100, (DOUBLED,) * 60),
    }
    assert shares("bandit", [CHEAP, DEAR], credit)["dear"] > 1900


def test_large_gains_count_more_than_small_ones() -> None:
    credit = {
        "a": Credit(30, 1.0, 30, (1.03,) * 10),
        "b": Credit(30, 1.0, 30, (1.6,) * 10),
    }
    assert shares("bandit", [Model("a", "x"), Model("b", "x")], credit)["b"] > 1800


def test_before_anything_is_known_each_gets_a_chance_by_its_price() -> None:
    drawn = shares("bandit", [CHEAP, DEAR], {})
    assert drawn["cheap"] > drawn["dear"] > 50


def test_calls_that_bring_no_child_cost_too() -> None:
    credit = {
        "a": Credit(50, 5.0, 2, (DOUBLED,)),  # most of what it said could not be used
        "b": Credit(50, 5.0, 50, (DOUBLED,) * 25),
    }
    assert shares("bandit", [Model("a", "x"), Model("b", "x")], credit)["b"] > 1800


def test_a_model_of_ones_own_costs_nothing_and_still_has_to_gain() -> None:
    paid = Credit(100, 1.0, 100, (DOUBLED,) * 50)
    drawn = shares("bandit", [CHEAP, OWN], {"cheap": paid, "own": Credit(100, 0.0, 100, ())})
    assert drawn["cheap"] > 1700
    drawn = shares(
        "bandit", [CHEAP, OWN], {"cheap": paid, "own": Credit(100, 0.0, 100, (DOUBLED,) * 50)}
    )
    assert drawn["own"] > 1900


def test_over_a_run_most_dollars_go_to_the_model_that_pays() -> None:
    rng = random.Random(1)
    chances = {
        "cheap": 0.05,
        "dear": 0.15,
    }  # a third of the price for a third of the gain, and more
    costs = {"cheap": 0.01, "dear": 0.02}
    credit = {name: Credit() for name in chances}
    for _ in range(600):
        name = bandit([CHEAP, DEAR], credit, rng).name
        was = credit[name]
        gain = (DOUBLED,) if rng.random() < chances[name] else ()
        credit[name] = Credit(
            was.calls + 1, was.dollars + costs[name], was.children + 1, was.gains + gain
        )
    assert credit["dear"].calls > 300
