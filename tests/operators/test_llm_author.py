"""The authors who ask: who is asked what, and what becomes of the answers."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import pytest

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from fitness.evaluation import Demand, Evaluation
from operators.author import Branch, Brief, Credit, Draft, Specimen, Tried
from operators.authors import ask, llm
from operators.idea import Category, Idea
from operators.llm import Model, Prompt
from operators.writing.author import TextAuthor
from tests.operators.cases import CASES
from tests.operators.desks import ScriptedDesk

T = TypeVar("T")
TASK = next(case for case in CASES if case.name == "softmax of whole vectors").task
BRIEF = Brief(TASK, "cpp", Demand(), TASK.signature.header("cpp"))
SOURCE = 'extern "C" int launch(const float* x, float* out, void* workspace) { return 0; }\n'
FREE = {
    "provider": "openai",
    "base_url": "http://localhost:1/v1",
    "price": {"input": 0, "output": 0},
}
TWO = [{"name": "small", "weight": 1, **FREE}, {"name": "large", "weight": 3, **FREE}]
IDEA = Idea("Vector loads: read x as float4", Category.MEMORY, "llm", "small")


def run(answer: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(answer)


def author(**options: Any) -> TextAuthor:
    return llm.make(**{"models": TWO, **options})


def specimen(source: str = SOURCE, *ancestry: Idea, status: Status = Status.OK) -> Specimen:
    return Specimen("0-1-2", Kernel(source, "cpp"), Evaluation(status), ancestry)


def saying(text: str | None) -> ScriptedDesk:
    return ScriptedDesk(answer=lambda *_: text)


def told(*titles: str) -> str:
    items = [{"title": title, "detail": "", "category": "memory access"} for title in titles]
    return json.dumps({"analysis": "", "ideas": items})


def fenced(source: str) -> str:
    return f"```cpp\n{source}```"


def implement(desk: ScriptedDesk, number: int = 0, of: int = 1, **options: Any) -> Draft | None:
    return run(author(**options).implement(BRIEF, specimen(), IDEA, Branch(number, of), desk))


# ---------------------------------------------------------------- ideas


def test_ideas_are_those_of_the_answer_with_the_model_that_had_them() -> None:
    desk = saying(told("Use two accumulators", "Prefetch the next row"))
    found = run(author().ideate(BRIEF, specimen(), [], 3, desk))
    ((place, prompt, model),) = desk.asked
    assert (place, prompt.purpose) == ("ideas", "ideas")
    assert prompt.schema is not None
    assert found == [
        Idea("Use two accumulators", Category.MEMORY, "llm", model.name),
        Idea("Prefetch the next row", Category.MEMORY, "llm", model.name),
    ]


def test_no_more_ideas_than_asked_for() -> None:
    desk = saying(told("Use two accumulators", "Prefetch the next row", "Unroll by four"))
    assert len(run(author().ideate(BRIEF, specimen(), [], 2, desk))) == 2


def test_repeated_ideas_are_dropped_told_and_others_asked_for() -> None:
    answers = iter([told(IDEA.text, "Prefetch the next row"), told("Unroll the loop by four")])
    desk = ScriptedDesk(answer=lambda *_: next(answers))
    tried = [Tried(IDEA, "ok", 0.9)]
    found = run(author().ideate(BRIEF, specimen(), tried, 2, desk))
    assert [idea.text for idea in found] == ["Prefetch the next row", "Unroll the loop by four"]
    (first, prompt, model), (again, more, same) = desk.asked
    assert (first, again, same) == ("ideas", "ideas again", model)
    assert more.parts[: len(prompt.parts)] == prompt.parts
    assert "Vector loads" in more.parts[-1].split("These are taken")[0]
    assert "Prefetch the next row" in more.parts[-1].split("These are taken")[1]
    assert "Give 1 other," in more.parts[-1]


def test_who_has_fewer_ideas_is_not_asked_again() -> None:
    desk = saying(told("Prefetch the next row"))
    run(author().ideate(BRIEF, specimen(), [], 3, desk))
    assert len(desk.asked) == 1


def test_without_an_answer_or_with_nonsense_there_are_no_ideas() -> None:
    for text in (None, "I would rather not"):
        assert run(author().ideate(BRIEF, specimen(), [], 3, saying(text))) == []


def test_a_second_answer_that_never_comes_leaves_the_first() -> None:
    answers = iter([told(IDEA.text, "Prefetch the next row"), None])
    desk = ScriptedDesk(answer=lambda *_: next(answers))
    found = run(author().ideate(BRIEF, specimen(SOURCE, IDEA), [], 2, desk))
    assert [idea.text for idea in found] == ["Prefetch the next row"]


# ---------------------------------------------------------------- kernels


def test_a_branch_is_the_kernel_of_the_answer_with_its_idea_and_model() -> None:
    better = SOURCE.replace("return 0", "return 1")
    desk = saying(fenced(better))
    draft = implement(desk)
    ((place, prompt, model),) = desk.asked
    assert (place, prompt.purpose, prompt.schema) == ("kernel", "kernel", None)
    assert IDEA.text in prompt.parts[-1]
    assert draft == Draft(Kernel(better, "cpp"), IDEA, model.name)


def test_edits_apply_to_the_parent() -> None:
    edit = "<<<<<<< SEARCH\n" + SOURCE + "=======\n// new\n" + SOURCE + ">>>>>>> REPLACE"
    draft = implement(saying(edit))
    assert draft
    assert draft.kernel.source == f"// new\n{SOURCE}"


def test_edits_that_do_not_fit_are_a_kernel_to_be_mended() -> None:
    draft = implement(saying("<<<<<<< SEARCH\nnowhere\n=======\nx\n>>>>>>> REPLACE"))
    assert draft
    assert draft.kernel.source.startswith('#error "SEARCH block 1 is not in the kernel: nowhere"')


@pytest.mark.parametrize("text", [None, "No.", SOURCE])
def test_no_kernel_or_the_parent_over_again_is_none(text: str | None) -> None:
    assert implement(saying(text)) is None


def test_branches_differ_in_their_prompts() -> None:
    prompts = []
    for number in range(3):
        desk = saying(fenced(SOURCE))
        implement(desk, number, 3)
        prompts.append(desk.asked[0][1])
    assert len({prompt.text for prompt in prompts}) == 3
    assert len({prompt.parts[:-1] for prompt in prompts}) == 1


def test_a_crossing_says_what_it_joins() -> None:
    mother = specimen(SOURCE, IDEA)
    father = specimen(f"// other\n{SOURCE}", Idea("unroll", Category.CONTROL, "llm"))

    def crossed(text: str) -> Idea:
        desk = saying(text)
        draft = run(author().cross(BRIEF, (mother, father), Branch(0, 1), desk))
        assert draft
        prompt = desk.asked[0][1]
        assert prompt.purpose == "crossover"
        assert mother.kernel.source.strip() in prompt.text
        assert father.kernel.source.strip() in prompt.text
        return draft.idea

    child = fenced(f"// child\n{SOURCE}")
    assert crossed(f"**Idea:** prefetch both rows\n\n{child}").text == "prefetch both rows"
    assert crossed(child).text == f"join both parents: {IDEA.text}; unroll"


def test_a_repair_tells_what_failed_and_keeps_the_idea() -> None:
    evaluation = Evaluation(Status.INCORRECT, "wrong: error 3 of rms: out[2, 5] on shifted")
    failed = Specimen("0-1-3", Kernel(SOURCE, "cpp"), evaluation, (IDEA,))
    desk = saying(fenced(f"// mended\n{SOURCE}"))
    draft = run(author().repair(BRIEF, failed, desk))
    assert draft
    assert draft.idea == IDEA
    request = desk.asked[0][1].parts[-1]
    assert "Reason: wrong: error 3 of rms: out[2, 5] on shifted" in request
    assert IDEA.text in request


def test_the_first_port_is_plain_and_the_next_aims_higher() -> None:
    ideas, prompts = [], []
    for number in range(4):
        desk = saying(f"Idea: one pass, rows in registers\n{fenced(SOURCE)}")
        draft = run(author(ports=2).port(BRIEF, Branch(number, 4), desk))
        ideas.append(draft.idea.text if draft else None)
        prompts += [prompt.parts[-1] for _, prompt, _ in desk.asked]
    assert ideas == [
        "replace the operation with a plain C++ kernel",
        "one pass, rows in registers",
        None,
        None,
    ]
    assert len(prompts) == 2
    assert "replace the operation with a plain C++ kernel" in prompts[0]
    assert "number 2 of 2" in prompts[1]


# ---------------------------------------------------------------- models


def asked_models(made: TextAuthor, of: int, seeds: Sequence[int], **desk: Any) -> list[list[str]]:
    """The models of the branches, for each seed."""
    lines = []
    for seed in seeds:
        line = []
        for number in range(of):
            one = ScriptedDesk(seed, **desk)
            run(made.implement(BRIEF, specimen(), IDEA, Branch(number, of), one))
            line.append(one.asked[0][2].name)
        lines.append(line)
    return lines


def test_branches_have_different_models_as_far_as_there_are_any() -> None:
    for line in asked_models(author(), 4, range(20)):
        assert set(line[:2]) == set(line[2:]) == {"small", "large"}


def test_models_are_drawn_by_weight() -> None:
    drawn = Counter(line[0] for line in asked_models(author(), 1, range(300)))
    assert 2.0 < drawn["large"] / drawn["small"] < 4.5


def test_a_bandit_prefers_what_brought_gains() -> None:
    credits = {
        "small": Credit(calls=40, dollars=1.0, children=40, gains=(1.5,) * 20),
        "large": Credit(calls=40, dollars=1.0, children=40, gains=()),
    }
    lines = asked_models(author(choice="bandit"), 1, range(60), credits=credits)
    assert Counter(line[0] for line in lines)["small"] > 50


def test_temperatures_are_gone_through_by_the_branches() -> None:
    def temperature(number: int, **options: Any) -> object:
        desk = saying(None)
        implement(desk, number, 3, **options)
        return desk.asked[0][2].options.get("temperature")

    assert [temperature(n, temperatures=[0.2, 1.0]) for n in range(3)] == [0.2, 1.0, 0.2]
    assert temperature(0) is None


# ---------------------------------------------------------------- making


def test_people_are_asked_the_same_as_models() -> None:
    answer: Callable[[str, Prompt, Model], str] = lambda *_: told("Prefetch the next row")  # noqa: E731
    people, models = ScriptedDesk(answer=answer), ScriptedDesk(answer=answer)
    (idea,) = run(ask.make().ideate(BRIEF, specimen(), [], 1, people))
    run(author().ideate(BRIEF, specimen(), [], 1, models))
    assert people.asked[0][:2] == models.asked[0][:2]
    assert people.asked[0][2].provider == "ask"
    assert (idea.author, idea.model) == ("ask", "ask")


def test_authors_show_their_models() -> None:
    assert [model.name for model in author().models] == ["small", "large"]
    assert [model.provider for model in ask.make().models] == ["ask"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": []}, "models: a list of models is needed"),
        ({"choice": "bandits"}, "unknown choice 'bandits'; did you mean bandit"),
        ({"temperatures": 0.5}, r"temperatures must be a list of numbers from 0 to 2.*0.5"),
        ({"temperatures": [3]}, "temperatures must be"),
        ({"ports": 0}, "ports must be a whole number of at least 1, not 0"),
        ({"ports": True}, "ports must be"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        author(**options)


def test_the_ask_author_checks_its_ports() -> None:
    with pytest.raises(ValueError, match="ports must be"):
        ask.make(ports=0)
