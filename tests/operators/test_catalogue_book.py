"""Families, books and recipes: what can be combined renders, and can be read back."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_sandbox.kernel import Kernel
from operators.author import NoFamily
from operators.catalogue.family import Book, Entry
from operators.catalogue.render import Recipe, read, render
from operators.catalogue.shelf import family_names, languages, load_book, load_family, match
from operators.idea import Category
from tests.operators.cases import CASES, Case, one, softmax
from tests.operators.workbench import covering_sets

BY_FAMILY = {case.family: case for case in reversed(CASES)}
BOTH = pytest.mark.parametrize(
    ("case", "language"),
    [pytest.param(c, lang, id=f"{c.name}, {lang}") for c in CASES for lang in ("cpp", "cuda")],
)


def entry(key: str, requires: tuple[str, ...] = (), excludes: tuple[str, ...] = ()) -> Entry:
    return Entry(key, f"do {key}", Category.MEMORY, requires, excludes)


def test_every_family_has_both_languages_and_six_ideas_in_each() -> None:
    for name in family_names():
        assert load_family(name).serves
        assert set(languages(name)) == {"cpp", "cuda"}
        for language in languages(name):
            assert len(load_book(name, language).entries) >= 6


@pytest.mark.parametrize("language", ["cpp", "cuda"])
def test_all_six_categories_are_used(language: str) -> None:
    books = [load_book(name, language) for name in family_names()]
    assert {e.category for book in books for e in book.entries} == set(Category)


@BOTH
def test_every_set_of_ideas_renders_and_reads_back(case: Case, language: str) -> None:
    found = match(case.task, language)
    rng = random.Random(case.name)
    singles = [found.book.with_key((), key) for key in found.applicable()]
    for keys in [*singles, *covering_sets(found, rng)]:
        kernel = render(found, case.task.signature, Recipe(keys))
        recipe = read(found, kernel)
        assert recipe is not None
        assert recipe.keys == keys
        assert "{%" not in kernel.source


@BOTH
def test_every_idea_changes_the_code(case: Case, language: str) -> None:
    found = match(case.task, language)
    header = case.task.signature.header(language)
    for key in found.applicable():
        keys = found.book.with_key((), key)
        with_it = render(found, case.task.signature, Recipe(keys))
        without = render(found, case.task.signature, Recipe(found.book.without(keys, key)))
        assert with_it.digest(header) != without.digest(header), key


@pytest.mark.parametrize("language", ["cpp", "cuda"])
def test_tunables_are_understood_and_tuning_leaves_a_kernel_ours(language: str) -> None:
    for case in BY_FAMILY.values():
        found = match(case.task, language)
        keys = found.book.joined(found.applicable())
        kernel = render(found, case.task.signature, Recipe(keys))
        tunables = kernel.tunables()
        assert tunables, case.family
        assert all(tunable.value in tunable.choices for tunable in tunables)
        last = {tunable.name: tunable.choices[-1] for tunable in tunables}
        recipe = read(found, kernel.tuned(last))
        assert recipe is not None
        assert recipe.keys == keys
        assert recipe.values.items() >= last.items()


def test_a_kernel_that_another_hand_changed_is_foreign() -> None:
    case = BY_FAMILY["softmax"]
    found = match(case.task, "cpp")
    kernel = render(found, case.task.signature, Recipe(found.book.with_key((), "simd")))
    changed = replace(kernel, source=kernel.source.replace("return 0;", "return 1;"))
    assert read(found, changed) is None
    assert read(found, Kernel("int x;", "cpp")) is None
    assert read(found, replace(kernel, language="cuda")) is None


def test_a_value_that_is_no_choice_gives_way_to_the_default() -> None:
    case = BY_FAMILY["softmax"]
    found = match(case.task, "cpp")
    keys = found.book.with_key((), "unroll")
    kernel = render(found, case.task.signature, Recipe(keys, {"UNROLL": "3"}))
    assert {t.name: t.value for t in kernel.tunables()}["UNROLL"] == "4"


def test_a_key_brings_what_it_requires_and_drops_what_it_excludes() -> None:
    book = Book((entry("a"), entry("b", requires=("a",)), entry("c", excludes=("a",))))
    assert book.with_key((), "b") == ("a", "b")
    assert book.with_key(("a", "b"), "c") == ("c",)
    assert book.with_key(("c",), "b") == ("a", "b")
    assert book.without(("a", "b"), "a") == ()
    assert book.joined(("b", "c", "a")) == ("a", "b")
    assert book.joined(("c", "b")) == ("c",)


def test_a_book_refuses_keys_that_clash_or_do_not_exist() -> None:
    with pytest.raises(ValueError, match="share a key"):
        Book((entry("a"), entry("a")))
    with pytest.raises(ValueError, match="do not exist"):
        Book((entry("a", requires=("b",)),))


@given(st.data())
def test_any_walk_over_a_book_keeps_its_rules(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(family_names()))
    found = match(BY_FAMILY[name].task, data.draw(st.sampled_from(["cpp", "cuda"])))
    book, keys = found.book, ()
    for key in data.draw(st.lists(st.sampled_from(found.applicable()), max_size=8)):
        keys = book.without(keys, key) if key in keys else book.with_key(keys, key)
        assert len(set(keys)) == len(keys)
        assert all(set(book.by_key[k].requires) <= set(keys) for k in keys)
        assert not any(book.clash(one, other) for one in keys for other in keys)


def test_where_no_family_fits_the_message_names_operations_families_and_a_way_out() -> None:
    case = one("fft", "", "aten.fft_rfft.default", {"x": (4, 8)}, (4, 8), softmax)
    with pytest.raises(NoFamily) as caught:
        match(case.task, "cpp")
    message = str(caught.value)
    assert "'fft', which computes fft_rfft" in message
    for part in (*family_names(), "`authors:`", "operators/catalogue/"):
        assert part in message


def test_a_softmax_over_an_outer_dimension_is_not_taken_for_a_row_softmax() -> None:
    case = one("outer", "", "aten.softmax.int", {"x": (4, 8)}, (4, 8), softmax, 0)
    with pytest.raises(NoFamily):
        match(case.task, "cpp")
