"""What a generation does with whom."""

from __future__ import annotations

import random
from typing import Any

import pytest
from deap import base

from cuda_sandbox.kernel import Kernel
from evo.generation import Planner
from evo.individual import Birth, Individual
from tests.evo.fakes import configuration


def kernel(name: str, tile: int) -> Kernel:
    return Kernel(f"#define TILE {tile}  // tune: 32 64 128\nint {name}[TILE];\n", "cpp")


def member(slot: int, name: str, tile: int) -> Individual:
    birth = Birth(0, 0, "port", "fake", (), None)
    return Individual(f"0-0-{slot}", kernel(name, tile), str(slot), birth)


@pytest.fixture
def planner() -> Planner:
    toolbox: Any = base.Toolbox()
    toolbox.register("select", lambda pool, count: random.choices(pool, k=count))
    variation = {"rates": {"crossover": 0.9, "mutation": 0.1}, "branches": 1}
    return Planner(configuration(variation=variation, population={"size": 40}), toolbox)


def test_kernels_that_differ_in_tuned_constants_only_are_not_crossed(planner: Planner) -> None:
    pool = [member(0, "rows", 32), member(1, "rows", 64), member(2, "columns", 64)]

    steps = planner.offspring(random.Random(1), pool)

    pairs = {step.parents for step in steps if step.operator == "crossover"}
    assert pairs
    assert all("0-0-2" in pair for pair in pairs)


def test_nothing_is_crossed_where_all_are_one_kernel(planner: Planner) -> None:
    steps = planner.offspring(random.Random(1), [member(n, "rows", 32 << n) for n in range(3)])

    assert {step.operator for step in steps} == {"mutation"}
