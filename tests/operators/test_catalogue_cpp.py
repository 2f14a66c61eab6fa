"""The catalogue's C++ kernels compute what they should, in awkward shapes, with every idea."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from operators.catalogue.moves import branches
from operators.catalogue.render import Recipe, render
from operators.catalogue.shelf import match
from tests.operators.cases import CASES, Case
from tests.operators.workbench import build, call, covering_sets

BY_NAME = {case.name: case for case in CASES}
NUMERIC = (1.0, 0.0), (50.0, 0.0), (1e-4, 0.0), (0.1, 1000.0)


def check(case: Case, keys: tuple[str, ...], folder: Path, rng: random.Random) -> None:
    found = match(case.task, "cpp")
    kernel = branches(found, case.task.signature, Recipe(keys), 2, rng)[-1]
    library = build(kernel, case.task.signature, folder)
    inputs = case.inputs()
    (out,) = call(library, case.task.signature, inputs)
    assert case.error(inputs, out) <= case.tolerance, (case.name, keys, kernel.source)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_family_is_recognised(case: Case) -> None:
    assert match(case.task, "cpp").family == case.family


@pytest.mark.parametrize(
    "name",
    [
        "softmax",
        "layer norm",
        "RMS norm of columns",
        "matmul",
        "convolution",
        "convolution, ReLU, pooling",
        "pointwise chain",
        "first smallest",
        "attention",
    ],
)
def test_every_idea_gives_right_results_in_some_company(name: str, tmp_path: Path) -> None:
    case, rng = BY_NAME[name], random.Random(name)
    for keys in covering_sets(match(case.task, "cpp"), rng):
        check(case, keys, tmp_path, rng)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_ideas_that_go_together_give_right_results(case: Case, tmp_path: Path) -> None:
    found, rng = match(case.task, "cpp"), random.Random(case.name)
    check(case, found.book.joined(found.applicable()), tmp_path, rng)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_idea_alone_gives_right_results(case: Case, tmp_path: Path) -> None:
    found, rng = match(case.task, "cpp"), random.Random(case.name)
    for key in ("", *found.applicable()):
        check(case, found.book.with_key((), key) if key else (), tmp_path, rng)


@pytest.mark.parametrize("name", ["softmax", "layer norm", "variance", "sum of rows"])
@pytest.mark.parametrize("all_ideas", [False, True])
def test_results_hold_where_numbers_are_large_tiny_or_far_from_zero(
    name: str, all_ideas: bool, tmp_path: Path
) -> None:
    case = BY_NAME[name]
    found = match(case.task, "cpp")
    keys = found.book.joined(found.applicable()) if all_ideas else ()
    library = build(render(found, case.task.signature, Recipe(keys)), case.task.signature, tmp_path)
    for scale, shift in NUMERIC:
        inputs = case.inputs(scale, shift)
        (out,) = call(library, case.task.signature, inputs)
        # a float32 cannot tell 1000.1 from its neighbour by less than 6e-5: of 0.1 that is 6e-4
        limit = 1e-3 if shift else case.tolerance
        assert case.error(inputs, out) <= limit, (scale, shift)
