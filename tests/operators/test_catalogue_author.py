"""The catalogue author: ports, ideas, branches, crossings, repairs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import pytest

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from fitness.evaluation import Demand, Evaluation
from operators.author import Branch, Brief, Draft, NoFamily, Specimen, Tried
from operators.authors.catalogue import make
from operators.catalogue.render import Recipe, read, render
from operators.catalogue.shelf import match
from operators.idea import Category, Idea
from tests.operators.cases import CASES, one, softmax
from tests.operators.desks import ScriptedDesk

T = TypeVar("T")
CASE = next(case for case in CASES if case.name == "softmax of whole vectors")
BRIEF = Brief(CASE.task, "cpp", Demand(), CASE.task.signature.header("cpp"))
BOOK = match(CASE.task, "cpp")
AUTHOR = make()


def run(answer: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(answer)


def specimen(keys: tuple[str, ...] = (), **values: str) -> Specimen:
    kernel = render(BOOK, CASE.task.signature, Recipe(keys, values))
    return Specimen("0-0-0", kernel, Evaluation(Status.OK))


def keys_of(kernel: Kernel) -> tuple[str, ...]:
    recipe = read(BOOK, kernel)
    assert recipe is not None
    return recipe.keys


def ideas(
    parent: Specimen, count: int = 99, tried: Sequence[Tried] = (), seed: int = 1
) -> list[Idea]:
    return run(AUTHOR.ideate(BRIEF, parent, tried, count, ScriptedDesk(seed)))


def implemented(parent: Specimen, idea: Idea, branches: int = 1) -> list[Draft]:
    found = [
        run(AUTHOR.implement(BRIEF, parent, idea, Branch(number, branches), ScriptedDesk()))
        for number in range(branches)
    ]
    return [draft for draft in found if draft]


def crossed(parents: tuple[Specimen, Specimen], seed: int = 1) -> list[Draft]:
    draft = run(AUTHOR.cross(BRIEF, parents, Branch(0, 2), ScriptedDesk(seed)))
    return [draft] if draft else []


def text(key: str) -> str:
    return BOOK.book.by_key[key].text


def test_the_first_kernel_is_the_plain_port() -> None:
    draft = run(AUTHOR.port(BRIEF, Branch(0, 1), ScriptedDesk()))
    assert draft
    assert draft.idea.text == "replace the operation with a plain C++ kernel"
    assert keys_of(draft.kernel) == ()


def test_ideas_are_those_that_the_parent_lacks_and_to_take_out_what_it_has() -> None:
    texts = {idea.text for idea in ideas(specimen(("simd", "unroll")))}
    assert text("threads") in texts
    assert text("simd") not in texts
    assert f"take it out again, it may cost more than it gives: {text('unroll')}" in texts
    assert len(texts) == len(BOOK.applicable())


def test_ideas_that_were_tried_here_do_not_come_again_and_those_from_elsewhere_do() -> None:
    parent = specimen()
    first = ideas(parent, 3)
    here = [Tried(idea, "ok", 1.0, True) for idea in first]
    assert not {idea.text for idea in ideas(parent, tried=here)} & {idea.text for idea in first}
    elsewhere = [Tried(idea, "ok", 1.0, False) for idea in first]
    assert {idea.text for idea in first} <= {idea.text for idea in ideas(parent, tried=elsewhere)}


def test_what_did_well_elsewhere_is_proposed_more_often() -> None:
    def share(gain: float | None) -> int:
        both = f"{text('simd')}; {text('prefetch')}"
        idea = Idea(both, Category.ASYNCHRONY, "catalogue")
        told = [Tried(idea, "ok", gain, False)]
        draws = [ideas(specimen(), 1, told, seed)[0].text for seed in range(300)]
        return draws.count(idea.text)

    assert share(3.0) > 1.5 * share(0.7)


def test_neglected_categories_come_first() -> None:
    parent = specimen(("keep_exp",))  # a memory idea is there already
    drawn = [ideas(parent, 1, seed=seed)[0].category for seed in range(400)]
    adding = [key for key in BOOK.applicable() if key != "keep_exp"]
    per_memory_idea = drawn.count(Category.MEMORY) / sum(
        BOOK.book.by_key[key].category is Category.MEMORY for key in adding
    )
    assert per_memory_idea < 0.75 * drawn.count(Category.ASYNCHRONY)


def test_the_same_draws_give_the_same_ideas() -> None:
    assert ideas(specimen(), 4, seed=5) == ideas(specimen(), 4, seed=5)
    assert ideas(specimen(), 4, seed=5) != ideas(specimen(), 4, seed=6)


def test_an_idea_brings_along_what_it_needs() -> None:
    both = f"{text('simd')}; {text('online')}"
    idea = next(i for i in ideas(specimen()) if i.text == both)
    (draft,) = implemented(specimen(), idea)
    assert keys_of(draft.kernel) == ("simd", "online")
    assert draft.idea == idea


def test_an_idea_says_what_it_displaces() -> None:
    parent = specimen(("simd", "keep_exp"))
    idea = next(i for i in ideas(parent) if i.text.startswith(text("online")))
    assert idea.text == f"{text('online')} (in place of: keep exp)"
    (draft,) = implemented(parent, idea)
    assert keys_of(draft.kernel) == ("simd", "online")


def test_branches_are_different_kernels_and_keep_the_parents_values() -> None:
    parent = specimen(("simd", "unroll"), UNROLL="8")
    both = f"{text('threads')}; {text('dynamic')}"
    idea = next(i for i in ideas(parent) if i.text == both)
    drafts = implemented(parent, idea, 3)
    assert len({draft.kernel.digest(BRIEF.header) for draft in drafts}) == 3
    for draft in drafts:
        values = {t.name: t.value for t in draft.kernel.tunables()}
        assert values["UNROLL"] == "8"
        assert keys_of(draft.kernel) == ("simd", "unroll", "threads", "dynamic")


def test_taking_an_idea_out_takes_out_what_rests_on_it() -> None:
    parent = specimen(("threads", "simd", "unroll"))
    out = next(i for i in ideas(parent) if i.text.endswith(f"{text('simd')}; {text('unroll')}"))
    (draft,) = implemented(parent, out)
    assert keys_of(draft.kernel) == ("threads",)


def test_an_idea_from_elsewhere_is_not_implemented() -> None:
    assert implemented(specimen(), Idea("use a quantum computer", Category.COMPUTE, "llm")) == []


def test_a_foreign_parent_is_taken_for_the_plain_port() -> None:
    foreign = Specimen("0-0-1", Kernel("int launch;", "cpp"), Evaluation(Status.OK))
    idea = next(i for i in ideas(foreign) if i.text == text("simd"))
    (draft,) = implemented(foreign, idea)
    assert keys_of(draft.kernel) == ("simd",)


def test_a_crossing_joins_the_ideas_of_both_parents() -> None:
    parents = specimen(("threads", "simd")), specimen(("reciprocal",))
    (draft,) = crossed(parents)
    assert set(keys_of(draft.kernel)) == {"threads", "simd", "reciprocal"}
    assert draft.idea.text.startswith("join the ideas of both parents: ")
    assert "reciprocal" in draft.idea.text


def test_a_crossing_takes_each_value_from_one_of_the_parents() -> None:
    keys = ("threads", "dynamic", "simd", "unroll")
    parents = specimen(keys, UNROLL="2", CHUNK="1"), specimen(keys, UNROLL="8", CHUNK="64")
    (draft,) = crossed(parents)
    values = {t.name: t.value for t in draft.kernel.tunables()}
    assert (values["UNROLL"], values["CHUNK"]) in {("2", "64"), ("8", "1")}


def test_equal_parents_have_no_child() -> None:
    assert crossed((specimen(("simd",)), specimen(("simd",)))) == []


def test_ideas_that_exclude_each_other_never_meet_in_a_child() -> None:
    parents = specimen(("simd", "online")), specimen(("keep_exp",))
    for seed in range(10):
        for draft in crossed(parents, seed):
            assert not {"online", "keep_exp"} <= set(keys_of(draft.kernel))


def test_a_repair_goes_back_to_usual_values_and_else_drops_the_last_idea() -> None:
    keys = ("simd", "unroll", "prefetch")
    draft = run(AUTHOR.repair(BRIEF, specimen(keys, UNROLL="8"), ScriptedDesk()))
    assert draft
    assert keys_of(draft.kernel) == keys
    draft = run(AUTHOR.repair(BRIEF, specimen(keys), ScriptedDesk()))
    assert draft
    assert keys_of(draft.kernel) == keys[:2]
    foreign = Specimen("0-0-1", Kernel("int launch;", "cpp"), Evaluation(Status.COMPILE_ERROR))
    assert run(AUTHOR.repair(BRIEF, foreign, ScriptedDesk())) is None


def test_a_task_without_a_family_is_refused() -> None:
    task = one("fft", "", "aten.fft_rfft.default", {"x": (4, 8)}, (4, 8), softmax).task
    with pytest.raises(NoFamily, match="fft_rfft"):
        run(AUTHOR.port(Brief(task, "cpp", Demand(), ""), Branch(0, 1), ScriptedDesk()))


def test_the_author_takes_no_options() -> None:
    with pytest.raises(ValueError, match="no options, not speed"):
        make(speed=1)
