"""The author who asks somebody and reads the answer: models (llm), people and agents (ask)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cuda_sandbox.kernel import Kernel
from operators.author import Branch, Brief, Desk, Draft, Specimen, Tried
from operators.idea import Idea
from operators.llm import Model, Prompt
from operators.llm.choice import Choice
from operators.writing import code, request
from operators.writing.ideas import category_of
from operators.writing.ideas import read as read_ideas
from operators.writing.novelty import Sifted, sift
from operators.writing.text import shortened

PORT = "replace the operation with a plain {} kernel"
DESIGNED = "replace the operation with a {} kernel whose structure aims at the limits at once"
LANGUAGE_NAMES = {"cpp": "C++", "cuda": "CUDA"}
LONGEST_LINE = 1200  # characters of an idea that a kernel's author names

Finish = Callable[[Kernel, str, Model], Draft]


@dataclass(frozen=True, slots=True)
class Settings:
    """How an author asks. ``ports`` first kernels at most are written, the first a plain one.

    ``temperatures``, if any, are gone through by the branches of an idea in place of the models'.
    """

    ports: int = 2
    temperatures: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a kernel in ``language``; ``base`` is the one that edits may be made to."""

    prompt: Prompt
    language: str
    base: Kernel | None = None


class TextAuthor:
    """See `operators.author.Author`. ``models`` are drawn by ``choice``, branches differ in them.

    An answer without a kernel gives None. Edits that do not fit their kernel give one that fails
    to compile and says why, so that it goes the way of all failures.
    """

    def __init__(
        self, name: str, models: Sequence[Model], choice: Choice, settings: Settings
    ) -> None:
        self.name = name
        self.models = tuple(models)
        self._choice = choice
        self._settings = settings

    async def port(self, brief: Brief, branch: Branch, desk: Desk) -> Draft | None:
        """A plain first kernel, and beside it some that aim higher; see ``Settings.ports``."""
        ports = min(branch.of, self._settings.ports)
        if branch.number >= ports:
            return None
        mine = Branch(branch.number, ports)
        language = LANGUAGE_NAMES.get(brief.language, brief.language)
        text = (DESIGNED if branch.number else PORT).format(language)

        def finish(kernel: Kernel, answer: str, model: Model) -> Draft:
            told = code.idea_line(answer) if branch.number else ""
            return Draft(kernel, self._idea(told or text, model), model.name)

        asked = Asked(request.port(brief, mine), brief.language)
        return await self._draft(desk, asked, mine, finish)

    async def ideate(
        self, brief: Brief, parent: Specimen, tried: Sequence[Tried], count: int, desk: Desk
    ) -> list[Idea]:
        """Ideas that do not repeat one another or what was tried; asked for twice if some did."""
        (model,) = self._line_up(desk, 1)
        prompt = request.ideas(brief, parent, tried, count)
        reply = await desk.ask("ideas", prompt, model)
        if reply is None:
            return []
        sifted = sift(read_ideas(reply.text, self.name, model.name), parent, tried)
        missing = count - len(sifted.fresh)
        if sifted.repeated and missing > 0:
            sifted = await self._more(desk, prompt, model, sifted, missing)
        return list(sifted.fresh[:count])

    async def _more(
        self, desk: Desk, asked: Prompt, model: Model, first: Sifted, missing: int
    ) -> Sifted:
        """The ideas of ``first`` with others for those that were dropped."""
        prompt = request.ideas_again(asked, first.fresh, first.repeated, missing)
        reply = await desk.ask("ideas again", prompt, model)
        return first.and_then(read_ideas(reply.text, self.name, model.name)) if reply else first

    async def implement(
        self, brief: Brief, parent: Specimen, idea: Idea, branch: Branch, desk: Desk
    ) -> Draft | None:
        """An implementation of ``idea``; None too if it is the parent over again."""
        prompt = request.kernel(brief, parent, idea, branch)
        asked = Asked(prompt, brief.language, parent.kernel)
        return await self._draft(desk, asked, branch, _of(idea))

    async def cross(
        self, brief: Brief, parents: tuple[Specimen, Specimen], branch: Branch, desk: Desk
    ) -> Draft | None:
        """A kernel that joins both; the idea is what its author says, else the last of each."""
        mother, father = parents

        def finish(kernel: Kernel, answer: str, model: Model) -> Draft:
            text = code.idea_line(answer) or _joined(mother, father)
            return Draft(kernel, self._idea(text, model), model.name)

        prompt = request.crossover(brief, parents, branch)
        asked = Asked(prompt, brief.language, mother.kernel)
        return await self._draft(desk, asked, branch, finish)

    async def repair(self, brief: Brief, failed: Specimen, desk: Desk) -> Draft | None:
        """The same idea, mended."""

        def finish(kernel: Kernel, answer: str, model: Model) -> Draft:
            del answer
            idea = failed.ancestry[-1] if failed.ancestry else self._idea("mend it", model)
            return Draft(kernel, idea, model.name)

        asked = Asked(request.repair(brief, failed), brief.language, failed.kernel)
        return await self._draft(desk, asked, Branch(0, 1), finish)

    async def _draft(
        self,
        desk: Desk,
        asked: Asked,
        branch: Branch,
        finish: Finish,
    ) -> Draft | None:
        """Ask the branch's model, and read the kernel."""
        model = self._warmed(self._line_up(desk, branch.of)[branch.number], branch)
        reply = await desk.ask("kernel", asked.prompt, model)
        if reply is None:
            return None
        try:
            kernel = code.read(reply.text, asked.language, asked.base)
        except code.NoKernel:
            return None
        if asked.base is not None and kernel.source == asked.base.source:
            return None
        return finish(kernel, reply.text, model)

    def _line_up(self, desk: Desk, count: int) -> list[Model]:
        """A model for each of ``count`` branches, different ones as far as there are any.

        The branches of a question draw the same chances, so that each sees the same line.
        """
        credit, line, left = desk.credit(), list[Model](), list[Model]()
        for _ in range(count):
            left = left or list(self.models)
            model = self._choice(left, credit, desk.rng)
            left.remove(model)
            line.append(model)
        return line

    def _warmed(self, model: Model, branch: Branch) -> Model:
        """The model at the branch's temperature, if temperatures are set."""
        choices = self._settings.temperatures
        if not choices:
            return model
        temperature = choices[branch.number % len(choices)]
        return replace(model, options={**model.options, "temperature": temperature})

    def _idea(self, text: str, model: Model) -> Idea:
        text = shortened(text, LONGEST_LINE)
        return Idea(text, category_of(text), self.name, model.name)


def _of(idea: Idea) -> Finish:
    return lambda kernel, _, model: Draft(kernel, idea, model.name)


def _joined(mother: Specimen, father: Specimen) -> str:
    """What a crossing joins, where its author does not say."""
    last = [one.ancestry[-1].text for one in (mother, father) if one.ancestry]
    return "join both parents: " + "; ".join(shortened(text, 120) for text in dict.fromkeys(last))
