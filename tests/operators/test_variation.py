"""Variation operators on a toolbox that answers at once."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from fitness.evaluation import Evaluation, Interval
from operators import variation
from operators.author import Branch, Specimen
from operators.extension import UnknownName
from operators.idea import Category, Idea
from operators.variation import Child, Counts, Order, Written, operator
from operators.variation.tuning import retune

ALONE = Branch(0, 1)
COUNTS = Counts(ideas=3, branches=2, ports=4)
IDEAS = [Idea(f"idea {letter}", Category.MEMORY, "me") for letter in "abc"]
SOURCE = "#define TILE 64  // tune: 32 64 128\n#define ROWS 1  // tune: 1 2\nint a;\n"


def specimen(identity: str = "0-0-0", source: str = SOURCE) -> Specimen:
    return Specimen(identity, Kernel(source, "cpp"), Evaluation(Status.OK))


def order(*parents: Specimen, counts: Counts = COUNTS, **changes: Any) -> Order:
    return Order("0-1-0/x", parents, counts, random.Random(1), **changes)


def judged(ms: float | None, source: str = SOURCE, identity: str = "0-0-0") -> Specimen:
    """A specimen with a time; None for one that failed."""
    if ms is None:
        return Specimen(identity, Kernel(source, "cpp"), Evaluation(Status.INCORRECT))
    time = Interval(ms, ms, ms)
    return Specimen(identity, Kernel(source, "cpp"), Evaluation(Status.OK, time_ms=time))


def settled(value: Specimen | None) -> asyncio.Future[Specimen | None]:
    """What ``deliver`` returns, with the verdict there already."""
    future: asyncio.Future[Specimen | None] = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future


def vary(name: str, toolbox: Any, given: Order, ms: Any = None) -> list[Child]:
    """The children; ``ms`` gives the time of each by its source, None where it fails."""
    children: list[Child] = []

    def deliver(child: Child) -> asyncio.Future[Specimen | None]:
        children.append(child)
        time = ms(child.kernel.source) if ms else None
        identity = f"c{child.seat}"
        return settled(None if time is None else judged(time, child.kernel.source, identity))

    asyncio.run(operator(name).vary(toolbox, given, deliver))
    return children


def written(text: str, idea: Idea = IDEAS[0]) -> Written:
    return Written(Kernel(text, "cpp"), idea, "me")


def answering(*drafts: Written) -> Any:
    """The draft of the branch that is asked for; without branches the first."""

    async def answer(_: Order, branch: Branch = ALONE) -> Written | None:
        return drafts[branch.number] if branch.number < len(drafts) else None

    return answer


def mutating(source: Any, ideas: list[Idea] = IDEAS) -> SimpleNamespace:
    """A toolbox that implements by ``source(idea, branch)``, and tunes."""

    async def ideate(_: Order) -> list[Idea]:
        return ideas

    async def implement(_: Order, place: int, idea: Idea, branch: Branch) -> Written | None:
        text = source(idea, branch)
        return None if text is None else written(text, idea)

    return SimpleNamespace(ideate=ideate, implement=implement, tune=retune)


def test_operators_are_the_files_and_rates_may_name_some_of_them() -> None:
    assert variation.names() == ["crossover", "mutation", "port", "repair", "tuning"]
    assert variation.by_rate() == ["crossover", "mutation", "tuning"]
    with pytest.raises(UnknownName, match="unknown operator 'mutaton'; did you mean mutation"):
        operator("mutaton")


def test_mutation_implements_all_ideas_in_all_branches_on_seats_of_their_own() -> None:
    toolbox = mutating(lambda idea, branch: f"{idea.text} {branch.number}")
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


@pytest.mark.parametrize("slow", [(0, 0), (0, 1), (1, 0)])
def test_a_branch_is_delivered_while_a_slower_one_is_written(slow: tuple[int, int]) -> None:
    arrived: list[str] = []
    others = asyncio.Event()

    async def ideate(_: Order) -> list[Idea]:
        return IDEAS[:2]

    async def implement(_: Order, place: int, idea: Idea, branch: Branch) -> Written:
        if (place, branch.number) == slow:
            await others.wait()
        return written(f"{place} {branch.number}", idea)

    def deliver(child: Child) -> asyncio.Future[Specimen | None]:
        arrived.append(child.kernel.source)
        if len(arrived) == 3:
            others.set()
        return settled(None)

    toolbox = SimpleNamespace(ideate=ideate, implement=implement)
    asyncio.run(operator("mutation").vary(toolbox, order(specimen()), deliver))
    assert arrived[-1] == "{} {}".format(*slow)


TUNED = Counts(ideas=3, branches=2, ports=4, tunings=2)


def tiled(idea: Idea, branch: Branch) -> str:
    return f"{SOURCE}// {idea.text} {branch.number}\n"


def times(source: str) -> float | None:
    """Idea a: the second branch is faster; b: only the first works; c: far too slow."""
    found = {"a 0": 5.0, "a 1": 4.0, "b 0": 8.0, "c 0": 50.0, "c 1": 40.0}
    return next((ms for key, ms in found.items() if f"// idea {key}" in source), None)


def test_the_best_branch_of_each_idea_is_tuned_before_the_idea_is_judged() -> None:
    given = order(judged(10.0), counts=TUNED)
    children = {one.seat: one for one in vary("mutation", mutating(tiled), given, times)}
    assert operator("mutation").seats(TUNED) == 12
    assert sorted(children) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]  # 10 and 11: idea c is hopeless
    of_a, of_b = [children[6], children[7]], [children[8], children[9]]
    assert {one.tuned for one in of_a} == {"c1"}
    assert {one.tuned for one in of_b} == {"c2"}
    for one in of_a + of_b:
        assert one.author == "tuning"
        assert one.idea
        assert one.note
        assert one.kernel.source not in {children[seat].kernel.source for seat in range(6)}


def test_an_idea_whose_branches_all_fail_is_not_tuned() -> None:
    given = order(judged(10.0), counts=TUNED)
    assert len(vary("mutation", mutating(tiled), given, lambda _: None)) == 6


def test_tunings_do_not_depend_on_which_idea_is_ready_first() -> None:
    async def notes(slow: int) -> dict[int, str]:
        children: list[Child] = []

        async def ideate(_: Order) -> list[Idea]:
            return IDEAS

        async def implement(_: Order, place: int, idea: Idea, branch: Branch) -> Written:
            await asyncio.sleep(0.01 * (place == slow))
            return written(tiled(idea, branch), idea)

        def deliver(child: Child) -> asyncio.Future[Specimen | None]:
            children.append(child)
            return settled(judged(5.0, child.kernel.source, f"c{child.seat}"))

        toolbox = SimpleNamespace(ideate=ideate, implement=implement, tune=retune)
        await operator("mutation").vary(toolbox, order(judged(10.0), counts=TUNED), deliver)
        return {child.seat: child.note for child in children}

    assert asyncio.run(notes(0)) == asyncio.run(notes(2))


def test_ports_and_crossings_are_what_the_author_answers() -> None:
    toolbox = SimpleNamespace(port=answering(written("a"), written("b")), mate=answering())
    assert [child.kernel.source for child in vary("port", toolbox, order())] == ["a", "b"]
    assert vary("crossover", toolbox, order(specimen(), specimen("0-0-1"))) == []


def test_a_repair_is_what_the_author_answers() -> None:
    toolbox = SimpleNamespace(repair=answering(written("a")))
    (child,) = vary("repair", toolbox, order(specimen()))
    assert child.kernel.source == "a"
    assert vary("repair", SimpleNamespace(repair=answering()), order(specimen())) == []


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
        found += vary("tuning", toolbox, given)
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
