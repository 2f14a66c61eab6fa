"""From one recipe to others: ideas added or taken out, two recipes joined, tunables redrawn."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.signature import Signature
from operators.catalogue.family import Book
from operators.catalogue.render import TUNABLE, Recipe, render
from operators.catalogue.shelf import Match
from operators.idea import Category

REMOVE = "take it out again, it may cost more than it gives: "

# Draws of tunables before the search for yet another different kernel is given up.
DRAWS = 8


@dataclass(frozen=True, slots=True)
class Move:
    """One step from a recipe: the idea as people read it, and the recipe it leads to."""

    text: str
    category: Category
    recipe: Recipe
    removal: bool = False


def moves(match: Match, recipe: Recipe) -> list[Move]:
    """Every idea that can be added to a recipe, and every one that can be taken out."""
    book = match.book
    found = []
    for key in match.applicable():
        category, active = book.by_key[key].category, key in recipe.keys
        keys = book.without(recipe.keys, key) if active else book.with_key(recipe.keys, key)
        text = (_removal if active else _addition)(book, recipe.keys, keys)
        found.append(Move(text, category, Recipe(keys, recipe.values), active))
    return found


def _addition(book: Book, before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """What is done, in words: what an idea brings along first, what it displaces last."""
    text = "; ".join(book.by_key[key].text for key in after if key not in before)
    gone = [key.replace("_", " ") for key in before if key not in after]
    return f"{text} (in place of: {', '.join(gone)})" if gone else text


def _removal(book: Book, before: tuple[str, ...], after: tuple[str, ...]) -> str:
    return REMOVE + "; ".join(book.by_key[key].text for key in before if key not in after)


def joined(match: Match, one: Recipe, other: Recipe, rng: random.Random) -> Recipe:
    """As many ideas of both as go together; each tunable's value from one of them at random."""
    union = list(dict.fromkeys((*one.keys, *other.keys)))
    rng.shuffle(union)
    chosen = match.book.joined(tuple(union))
    values = {
        name: rng.choice([r.values[name] for r in (one, other) if name in r.values])
        for name in sorted({*one.values, *other.values})
    }
    return Recipe(chosen, values)


def branches(
    match: Match, signature: Signature, recipe: Recipe, count: int, rng: random.Random
) -> list[Kernel]:
    """Up to ``count`` different kernels of one recipe.

    The first has the recipe's values and the book's for tunables that are new; the others draw
    the new ones at random, or, where none is new, change any.
    """
    first = render(match, signature, recipe)
    found = {first.source: first}
    choices = _choices(first)
    free = sorted(choices.keys() - recipe.values.keys()) or sorted(choices)
    for _ in range(DRAWS * count if free else 0):
        if len(found) >= count:
            break
        drawn = {name: rng.choice(choices[name]) for name in free}
        kernel = render(match, signature, Recipe(recipe.keys, {**recipe.values, **drawn}))
        found.setdefault(kernel.source, kernel)
    return list(found.values())[:count]


def mends(match: Match, recipe: Recipe) -> Iterator[Move]:
    """Steps back from a recipe that failed: the book's own values, else without the last idea."""
    yield Move("go back to the usual tile sizes and counts", Category.CONTROL, Recipe(recipe.keys))
    if recipe.keys:
        last = match.book.by_key[recipe.keys[-1]]
        keys = match.book.without(recipe.keys, last.key)
        text = _removal(match.book, recipe.keys, keys)
        yield Move(text, last.category, Recipe(keys, recipe.values), True)


def _choices(kernel: Kernel) -> dict[str, list[str]]:
    lines = TUNABLE.findall(kernel.source)
    return {name: tail.split("tune:")[1].split() for _, name, _, tail in lines}
