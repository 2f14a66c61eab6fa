"""The author that needs no key: ideas and implementations from the built-in book."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from operators.author import Branch, Brief, Desk, Draft, Specimen, Tried
from operators.catalogue import moves as step
from operators.catalogue.render import Recipe, read, render
from operators.catalogue.shelf import match
from operators.idea import Category, Idea

PORT = "replace the operation with a plain {} kernel"
LANGUAGE_NAMES = {"cpp": "C++", "cuda": "CUDA"}

# How often taking an idea out is proposed, against putting one in.
REMOVAL_WEIGHT = 0.25


def make(**options: object) -> Catalogue:
    """The catalogue author; it has no options. Raises ValueError if any is given."""
    if options:
        raise ValueError(f"the catalogue author takes no options, not {', '.join(options)}")
    return Catalogue()


class Catalogue:
    """Chooses among a family's ideas and renders its templates; see `operators.author.Author`.

    A kernel of another hand counts as the plain port: its ideas cannot be read from its source.
    Every method raises NoFamily if the task is not served.
    """

    name = "catalogue"

    async def port(self, brief: Brief, branch: Branch, desk: Desk) -> Draft | None:
        """The plain port; as a later branch the same with other values of its tunables, if any."""
        book = match(brief.task, brief.language)
        text = PORT.format(LANGUAGE_NAMES.get(brief.language, brief.language))
        kernels = step.branches(book, brief.task.signature, Recipe(), branch.of, desk.rng)
        return _pick([Draft(one, self._idea(text, Category.COMPUTE)) for one in kernels], branch)

    async def ideate(
        self, brief: Brief, parent: Specimen, tried: Sequence[Tried], count: int, desk: Desk
    ) -> list[Idea]:
        """Ideas to add to ``parent`` or to take out of it.

        Neglected categories and what did well elsewhere come first, by chance.
        """
        book = match(brief.task, brief.language)
        recipe = read(book, parent.kernel) or Recipe()
        here = {attempt.idea.text for attempt in tried if attempt.here}
        left = [move for move in step.moves(book, recipe) if move.text not in here]
        used = Counter(attempt.idea.category for attempt in tried if attempt.here)
        used.update(book.book.by_key[key].category for key in recipe.keys)
        promise = {attempt.idea.text: _promise(attempt) for attempt in tried}
        chosen: list[Idea] = []
        while left and len(chosen) < count:
            odds = [
                (REMOVAL_WEIGHT if move.removal else promise.get(move.text, 1.0))
                / (1 + used[move.category])
                for move in left
            ]
            move = left.pop(desk.rng.choices(range(len(left)), odds)[0])
            used[move.category] += 1
            chosen.append(self._idea(move.text, move.category))
        return chosen

    async def implement(
        self, brief: Brief, parent: Specimen, idea: Idea, branch: Branch, desk: Desk
    ) -> Draft | None:
        """A rendering; branches differ in their tunables. None for an idea from elsewhere."""
        book = match(brief.task, brief.language)
        recipe = read(book, parent.kernel) or Recipe()
        for move in step.moves(book, recipe):
            if move.text == idea.text:
                kernels = step.branches(
                    book, brief.task.signature, move.recipe, branch.of, desk.rng
                )
                new = [Draft(k, idea) for k in kernels if k.source != parent.kernel.source]
                return _pick(new, branch)
        return None

    async def cross(
        self, brief: Brief, parents: tuple[Specimen, Specimen], branch: Branch, desk: Desk
    ) -> Draft | None:
        """One child with the ideas of both, unless it could only equal one of the parents."""
        if branch.number:
            return None
        book = match(brief.task, brief.language)
        one, other = (read(book, parent.kernel) or Recipe() for parent in parents)
        for _ in range(step.DRAWS):
            recipe = step.joined(book, one, other, desk.rng)
            kernel = render(book, brief.task.signature, recipe)
            if kernel.source not in {parent.kernel.source for parent in parents}:
                names = ", ".join(key.replace("_", " ") for key in recipe.keys) or "none"
                text = f"join the ideas of both parents: {names}"
                return Draft(kernel, self._idea(text, Category.COMPUTE))
        return None

    async def repair(
        self,
        brief: Brief,
        failed: Specimen,
        desk: Desk,  # noqa: ARG002  # the protocol's; what failed is mended without chance
    ) -> Draft | None:
        """The same ideas with the book's own values of the tunables, else without the last idea."""
        book = match(brief.task, brief.language)
        recipe = read(book, failed.kernel)
        for move in step.mends(book, recipe) if recipe else ():
            kernel = render(book, brief.task.signature, move.recipe)
            if kernel.source != failed.kernel.source:
                return Draft(kernel, self._idea(move.text, move.category))
        return None

    def _idea(self, text: str, category: Category) -> Idea:
        return Idea(text, category, self.name)


def _pick(drafts: Sequence[Draft], branch: Branch) -> Draft | None:
    """The draft that belongs to a branch, if there are so many."""
    return drafts[branch.number] if branch.number < len(drafts) else None


def _promise(attempt: Tried) -> float:
    """How much likelier an idea is to be proposed for what it gained on another parent."""
    return min(max(attempt.gain or 0.0, 0.5), 2.0)
