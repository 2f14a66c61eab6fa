"""The prompts: what is asked of whoever has ideas or writes kernels.

The parts that stay the same come first, the same text in every prompt of a run or about a parent:
vendors charge less for a beginning that they have seen, and the store keeps it once.
"""

from __future__ import annotations

from collections.abc import Sequence

from operators.author import Branch, Brief, Specimen, Tried
from operators.idea import Category, Idea
from operators.llm import Prompt
from operators.prompts import knowledge, render
from operators.writing import wording
from operators.writing.ideas import SCHEMA

ELSEWHERE = 24  # ideas tried on other kernels that are told of: the best and the latest
LOW_SHARE, HIGH_SHARE = 0.4, 0.75  # of the roofline: what kind of idea is worth having

FENCES = {"cuda": "cuda", "cpp": "cpp"}


def port(brief: Brief, branch: Branch) -> Prompt:
    """Ask for a first kernel: the first branch a plain one."""
    return _prompt(brief, "port", _request(brief, "port", branch=branch))


def ideas(brief: Brief, parent: Specimen, tried: Sequence[Tried], count: int) -> Prompt:
    """Ask for ``count`` ideas."""
    here = [one for one in tried if one.here]
    parts = (
        _parent(brief, parent),
        render(
            "tried",
            ancestry=_behind(parent, tried),
            here=[wording.attempt(one) for one in here],
            elsewhere=[wording.attempt(one) for one in _telling(parent, tried)],
        ),
        _request(
            brief,
            "ideas",
            count=count,
            categories=[str(category) for category in Category],
            neglected=[str(category) for category in wording.neglected(parent, tried)],
            share=parent.evaluation.roofline_share,
            low=LOW_SHARE,
            high=HIGH_SHARE,
        ),
    )
    return _prompt(brief, "ideas", *parts, schema=True)


def ideas_again(
    asked: Prompt, kept: Sequence[Idea], dropped: Sequence[tuple[Idea, Idea]], count: int
) -> Prompt:
    """Ask for ``count`` more, telling which repeated what."""
    more = render(
        "ideas_again",
        count=count,
        kept=[wording.idea(one) for one in kept],
        dropped=[(wording.idea(one), wording.idea(earlier)) for one, earlier in dropped],
    )
    return Prompt(asked.system, (*asked.parts, more), asked.purpose, asked.schema)


def kernel(brief: Brief, parent: Specimen, idea: Idea, branch: Branch) -> Prompt:
    """Ask for an implementation of ``idea`` on top of ``parent``."""
    request = _request(
        brief,
        "kernel",
        idea=idea.text,
        category=str(idea.category),
        ancestry=wording.ideas(parent.ancestry),
        branch=branch,
    )
    return _prompt(brief, "kernel", _parent(brief, parent), request)


def crossover(brief: Brief, parents: tuple[Specimen, Specimen], branch: Branch) -> Prompt:
    """Ask for a kernel that joins what is good in both."""
    mother, father = parents
    request = _request(
        brief,
        "crossover",
        branch=branch,
        mother=wording.ideas(mother.ancestry),
        father=wording.ideas(father.ancestry),
    )
    parts = (_parent(brief, mother), _parent(brief, father, "The other kernel"), request)
    return _prompt(brief, "crossover", *parts)


def repair(brief: Brief, failed: Specimen) -> Prompt:
    """Ask for a kernel that mends ``failed``."""
    idea = failed.ancestry[-1] if failed.ancestry else None
    request = _request(
        brief,
        "repair",
        idea=wording.whole(idea) if idea else "",
        changes=wording.changes(failed),
        **wording.failure(failed),
    )
    source = render(
        "source",
        title="The kernel that failed",
        source=failed.kernel.source,
        flags=" ".join(failed.kernel.flags),
        fence=_fence(brief),
        figures=[],
    )
    return _prompt(brief, "repair", source, request)


def _behind(parent: Specimen, tried: Sequence[Tried]) -> list[str]:
    """The ideas in a kernel, oldest first, with what each gained where that is known."""
    known = {one.idea.text: one for one in tried if not one.here and one.gain is not None}
    return [
        wording.attempt(known[text]) if text in known else wording.idea(one)
        for text, one in {one.text: one for one in parent.ancestry}.items()
    ]


def _telling(parent: Specimen, tried: Sequence[Tried]) -> list[Tried]:
    """Of what was tried elsewhere: the greatest gains, then the latest others."""
    mine = {one.text for one in parent.ancestry}
    elsewhere = [one for one in tried if not one.here and one.idea.text not in mine]
    ranked = sorted(elsewhere, key=lambda one: -(one.gain or 0.0))
    best = [one for one in ranked if one.gain and one.gain >= 1.02][: ELSEWHERE // 2]
    others = [one for one in elsewhere if one not in best]
    return best + others[: ELSEWHERE - len(best)]


def _prompt(brief: Brief, purpose: str, *parts: str, schema: bool = False) -> Prompt:
    system = render("system", language=brief.language)
    return Prompt(system, (*_standing(brief), *parts), purpose, SCHEMA if schema else None)


def _standing(brief: Brief) -> tuple[str, str]:
    """The parts that all prompts of a run begin with: the task, and what is known to matter."""
    kinds = wording.kinds(brief.task)
    task = render(
        "task",
        language=brief.language,
        arch=brief.arch,
        source=brief.task.source.strip(),
        header=brief.header.strip(),
        demand=wording.demand(brief.demand, brief.task),
        remarks=brief.task.remarks,
        facts=brief.facts,
        rates=wording.rates(brief.peak),
        floors=wording.floors(brief),
    )
    simd = next((fact for fact in brief.facts if fact.startswith("vector extensions")), "")
    known = knowledge(
        brief.language,
        brief.arch,
        {
            **kinds,
            "in_flight": wording.in_flight(brief),
            "simd": simd.partition(": ")[2] or "the machine's vector extensions",
        },
    )
    return task, known


def _parent(brief: Brief, parent: Specimen, title: str = "The kernel") -> str:
    return render(
        "source",
        title=title,
        source=parent.kernel.source,
        flags=" ".join(parent.kernel.flags),
        fence=_fence(brief),
        figures=wording.figures(parent.evaluation) + wording.tunings(parent, brief.demand.baseline),
    )


def _request(brief: Brief, name: str, **values: object) -> str:
    return render(name, fence=_fence(brief), language=brief.language, **values)


def _fence(brief: Brief) -> str:
    return FENCES.get(brief.language, "")
