"""Variation operators on a toolbox that answers at once."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from fitness.evaluation import Evaluation
from operators import variation
from operators.author import Specimen
from operators.extension import UnknownName
from operators.idea import Category, Idea
from operators.variation import Child, Counts, Order, Written, operator
from operators.variation.tuning import retune

COUNTS = Counts(ideas=3, branches=2, ports=4)
IDEAS = [Idea(f"idea {letter}", Category.MEMORY, "me") for letter in "abc"]
SOURCE = "#define TILE 64  // tune: 32 64 128\n#define ROWS 1  // tune: 1 2\nint a;\n"


def specimen(identity: str = "0-0-0", source: str = SOURCE) -> Specimen:
    return Specimen(identity, Kernel(source, "cpp"), Evaluation(Status.OK))


def order(*parents: Specimen, **changes: Any) -> Order:
    return Order("0-1-0/x", parents, COUNTS, random.Random(1), **changes)


def vary(name: str, toolbox: Any, given: Order) -> list[Child]:
    children: list[Child] = []
    asyncio.run(operator(name).vary(toolbox, given, children.append))
    return children


def written(text: str, idea: Idea = IDEAS[0]) -> Written:
    return Written(Kernel(text, "cpp"), idea, "me")


def answering(*drafts: Written) -> Any:
    async def answer(*_: object) -> list[Written]:
        return list(drafts)

    return answer


def test_operators_are_the_files_and_rates_may_name_some_of_them() -> None:
    assert variation.names() == ["crossover", "mutation", "port", "repair", "tuning"]
    assert variation.by_rate() == ["crossover", "mutation", "tuning"]
    with pytest.raises(UnknownName, match="unknown operator 'mutaton'; did you mean mutation"):
        operator("mutaton")


def test_mutation_implements_all_ideas_in_all_branches_on_seats_of_their_own() -> None:
    async def ideate(_: Order) -> list[Idea]:
        return IDEAS

    async def implement(_: Order, place: int, idea: Idea) -> list[Written]:
        return [written(f"{idea.text} {branch}", idea) for branch in range(2)]

    toolbox = SimpleNamespace(ideate=ideate, implement=implement)
    children = vary("mutation", toolbox, order(specimen()))
    assert {child.seat: child.kernel.source for child in children} == {
        0: "idea a 0",
        1: "idea a 1",
        2: "idea b 0",
        3: "idea b 1",
        4: "idea c 0",
        5: "idea c 1",
    }
    assert all(child.idea and child.kernel.source.startswith(child.idea.text) for child in children)
    assert operator("mutation").seats(COUNTS) == 6


def test_a_branch_is_delivered_before_a_slower_idea_is_implemented() -> None:
    arrived: list[str] = []
    slow = asyncio.Event()

    async def ideate(_: Order) -> list[Idea]:
        return IDEAS[:2]

    async def implement(_: Order, place: int, idea: Idea) -> list[Written]:
        if place == 0:
            await slow.wait()
        return [written(idea.text)]

    def deliver(child: Child) -> None:
        arrived.append(child.kernel.source)
        slow.set()

    toolbox = SimpleNamespace(ideate=ideate, implement=implement)
    asyncio.run(operator("mutation").vary(toolbox, order(specimen()), deliver))
    assert arrived == ["idea b", "idea a"]


def test_ports_and_crossings_are_what_the_author_answers() -> None:
    toolbox = SimpleNamespace(port=answering(written("a"), written("b")), mate=answering())
    assert [child.kernel.source for child in vary("port", toolbox, order())] == ["a", "b"]
    assert vary("crossover", toolbox, order(specimen(), specimen("0-0-1"))) == []


def test_only_the_first_repair_is_tried() -> None:
    toolbox = SimpleNamespace(repair=answering(written("a"), written("b")))
    (child,) = vary("repair", toolbox, order(specimen()))
    assert child.kernel.source == "a"


def test_tuning_changes_declared_constants_and_says_which() -> None:
    toolbox = SimpleNamespace(tune=retune)
    children = vary("tuning", toolbox, order(specimen()))
    assert len({child.kernel.source for child in children}) == 2
    for child in children:
        values = {tunable.name: tunable.value for tunable in child.kernel.tunables()}
        assert values != {"TILE": "64", "ROWS": "1"}
        for name, before in (("TILE", "64"), ("ROWS", "1")):
            changed = f"{name} {before} -> {values[name]}" in child.note
            assert changed == (values[name] != before)


def test_tuning_avoids_what_is_known() -> None:
    def known(kernel: Kernel) -> bool:
        return {t.name: t.value for t in kernel.tunables()} != {"TILE": "32", "ROWS": "2"}

    toolbox = SimpleNamespace(tune=retune)
    found: list[Child] = []
    for seed in range(20):
        given = Order("k", (specimen(),), COUNTS, random.Random(seed), known=known)
        asyncio.run(operator("tuning").vary(toolbox, given, found.append))
    assert found
    assert {child.note for child in found} <= {
        "TILE 64 -> 32, ROWS 1 -> 2",
        "ROWS 1 -> 2, TILE 64 -> 32",
    }


def test_nothing_to_tune_gives_no_children() -> None:
    toolbox = SimpleNamespace(tune=retune)
    assert vary("tuning", toolbox, order(specimen(source="int a;"))) == []
    assert vary("tuning", toolbox, order(specimen(source="#define A 1  // tune: 1"))) == []


def test_the_same_randomness_tunes_the_same() -> None:
    one, other = (retune(Kernel(SOURCE, "cpp"), random.Random(4)) for _ in range(2))
    assert one == other
