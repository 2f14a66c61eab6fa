"""Selection schemes, DEAP's and ours."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from operators import selection
from operators.chance import chance
from operators.selection import rank, scheme


def crowd(*speedups: float) -> list[Any]:
    return [
        SimpleNamespace(name=value, fitness=SimpleNamespace(values=(value,), wvalues=(value,)))
        for value in speedups
    ]


ARGUMENTS = {"selTournament": {"tournsize": 2}}


@pytest.mark.parametrize("name", selection.names())
def test_every_listed_scheme_selects(name: str) -> None:
    with chance("seed"):
        chosen = scheme(name, ARGUMENTS.get(name, {}))(_with_order(crowd(1.0, 2.0, 3.0)), 2)
    assert len(chosen) == 2


def _with_order(individuals: list[Any]) -> list[Any]:
    from evo.individual import Fitness

    for one in individuals:
        one.fitness = Fitness((one.name,))
    return individuals


@pytest.mark.parametrize("name", sorted(selection.UNFIT))
def test_what_does_not_fit_is_refused_with_the_list_of_what_does(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} needs .*; those that fit: selBest, "):
        scheme(name, {})


def test_values_that_a_scheme_cannot_use_are_found_at_once() -> None:
    with pytest.raises(
        ValueError, match="selTournament: tournsize must be a whole number from 1 on"
    ):
        scheme("selTournament", {"tournsize": "three"})
    with pytest.raises(ValueError, match="pressure must lie between 1 and 2, not 3"):
        scheme("rank", {"pressure": 3})


def test_a_file_is_a_scheme_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "first.py").write_text("def select(individuals, k):\n    return individuals[:k]\n")
    monkeypatch.setattr(selection, "__path__", [*selection.__path__, str(tmp_path)])
    assert "first" in selection.names()
    assert scheme("first", {})(["a", "b", "c"], 2) == ["a", "b"]


def test_rank_prefers_the_better_by_the_pressure_asked_for() -> None:
    individuals = crowd(1.0, 100.0, 2.0)
    with chance("seed"):
        drawn = Counter(one.name for one in rank.select(individuals, 6000, pressure=2.0))
        even = Counter(one.name for one in rank.select(individuals, 6000, pressure=1.0))
    assert drawn[1.0] == 0
    assert drawn[100.0] == pytest.approx(4000, abs=300)
    assert even[1.0] == pytest.approx(2000, abs=300)


def test_rank_copes_with_one_individual() -> None:
    (only,) = crowd(1.0)
    assert rank.select([only], 3) == [only] * 3


def test_chance_is_repeatable_and_puts_pythons_own_state_back() -> None:
    random.seed(1)
    expected = random.Random(1).random()
    with chance("a") as own:
        first = (random.random(), own.random())
    assert random.random() == expected
    with chance("a") as own:
        assert (random.random(), own.random()) == first
    with chance("b"):
        assert random.random() != first[0]
