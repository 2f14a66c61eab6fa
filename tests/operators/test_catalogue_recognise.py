"""Families are recognised by what the reference computes, however it is spelled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cuda_sandbox.signature import Role, TensorSpec
from fitness.description import Node, TaskDescription
from operators.author import NoFamily
from operators.catalogue.shelf import match
from tests.operators.workbench import ref, task

TASKS = Path(__file__).parents[2] / "configs" / "tasks"


def graph(shapes: Mapping[str, tuple[int, ...]], *nodes: Node) -> TaskDescription:
    return task([TensorSpec(n, "float32", s, Role.INPUT) for n, s in shapes.items()], nodes)


def node(
    name: str, op: str, args: tuple[Any, ...], shape: tuple[int, ...], dtype: str = "float32"
) -> Node:
    return Node(name, op, args, (), shape, dtype)


def problem(description: TaskDescription, family: str) -> Mapping[str, Any]:
    found = match(description, "cpp")
    assert found.family == family
    return found.problem


def refused(description: TaskDescription) -> bool:
    try:
        match(description, "cpp")
    except NoFamily:
        return True
    return False


@pytest.mark.parametrize("path", sorted(TASKS.glob("*.py")), ids=lambda path: path.stem)
def test_every_task_that_comes_along_is_served_in_both_languages(path: Path) -> None:
    from fitness.describe import describe_here

    description = describe_here(path)
    for language in ("cpp", "cuda"):
        assert match(description, language).applicable()


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("aten.t.default", ()),
        ("aten.transpose.int", (0, 1)),
        ("aten.transpose.int", (-1, -2)),
        ("aten.permute.default", ([1, 0],)),
        ("aten.numpy_T.default", ()),
    ],
)
def test_a_transposed_factor_is_seen_in_every_spelling(op: str, args: tuple[Any, ...]) -> None:
    turned = node("bt", op, (ref("b"), *args), (8, 5))
    product = node("y", "aten.matmul.default", (ref("a"), ref("bt")), (4, 5))
    found = problem(graph({"a": (4, 8), "b": (5, 8)}, turned, product), "matmul")
    assert (found["m"], found["n"], found["k"]) == (4, 5, 8)
    assert (found["trans_a"], found["trans_b"]) == (False, True)


def test_a_bias_is_seen_in_addmm_and_a_scaled_one_is_refused() -> None:
    shapes = {"c": (5,), "a": (4, 8), "b": (8, 5)}
    args = (ref("c"), ref("a"), ref("b"))
    assert problem(graph(shapes, node("y", "aten.addmm.default", args, (4, 5))), "matmul")["bias"]
    scaled = Node("y", "aten.addmm.default", args, (("beta", 2),), (4, 5), "float32")
    assert refused(graph(shapes, scaled))


def test_a_batch_on_the_left_counts_as_rows_and_on_both_sides_as_a_batch() -> None:
    def sizes(b: tuple[int, ...]) -> tuple[int, ...]:
        y = node("y", "aten.matmul.default", (ref("a"), ref("b")), (3, 4, 5))
        found = problem(graph({"a": (3, 4, 8), "b": b}, y), "matmul")
        return found["batch"], found["m"]

    assert sizes((8, 5)) == (1, 12)
    assert sizes((3, 8, 5)) == (3, 4)


def test_pooling_with_indices_that_nobody_uses_is_pooling() -> None:
    given = (ref("x"), ref("w"), None, [2, 2], [1, 1])
    block = [
        node("c", "aten.conv2d.default", given, (1, 4, 8, 8)),
        node("r", "aten.relu_.default", (ref("c"),), (1, 4, 8, 8)),
        node("p", "aten.max_pool2d_with_indices.default", (ref("r"), [2, 2]), (1, 4, 4, 4)),
        node("y", "getitem", (ref("p"), 0), (1, 4, 4, 4)),
    ]
    shapes = {"x": (1, 3, 16, 16), "w": (4, 3, 3, 3)}
    found = problem(graph(shapes, *block), "conv_block")
    assert (found["pool_h"], found["pool_stride_w"]) == (2, 2)
    assert (found["stride_h"], found["pad_w"]) == (2, 1)


@pytest.mark.parametrize(
    "extra", [(None, [1, 1], [0, 0], [2, 2]), (None, [1, 1], [0, 0], [1, 1], 3)]
)
def test_dilated_and_grouped_convolutions_are_refused(extra: tuple[Any, ...]) -> None:
    y = node("y", "aten.conv2d.default", (ref("x"), ref("w"), *extra), (1, 6, 4, 4))
    assert refused(graph({"x": (1, 3, 6, 6), "w": (6, 1, 3, 3)}, y))


def test_attention_by_hand_is_seen_with_its_scale() -> None:
    shape, square = (2, 3, 8, 16), (2, 3, 8, 8)
    steps = [
        node("kt", "aten.transpose.int", (ref("k"), -2, -1), (2, 3, 16, 8)),
        node("s", "aten.matmul.default", (ref("q"), ref("kt")), square),
        node("d", "aten.div.Tensor", (ref("s"), 4.0), square),
        node("p", "aten.softmax.int", (ref("d"), -1), square),
        node("y", "aten.matmul.default", (ref("p"), ref("v")), shape),
    ]
    found = problem(graph(dict.fromkeys("qkv", shape), *steps), "attention")
    assert (found["heads"], found["head"], found["scale"]) == (6, 16, "0.25f")


def rms(divide: bool, weight: tuple[int, ...] | None) -> TaskDescription:
    shape, small = (2, 6, 6), (2, 1, 6)
    steps = [
        node("s", "aten.mul.Tensor", (ref("x"), ref("x")), shape),
        node("m", "aten.mean.dim", (ref("s"), [1], True), small),
        node("a", "aten.add.Tensor", (ref("m"), 1e-5), small),
        node("r", f"aten.{'sqrt' if divide else 'rsqrt'}.default", (ref("a"),), small),
        node("n", f"aten.{'div' if divide else 'mul'}.Tensor", (ref("x"), ref("r")), shape),
    ]
    shapes = {"x": shape}
    if weight:
        shapes["w"] = weight
        steps.append(node("y", "aten.mul.Tensor", (ref("n"), ref("w")), shape))
    return graph(shapes, *steps)


def test_rms_norm_by_hand_is_seen_along_an_inner_dimension() -> None:
    for divide in (True, False):
        found = problem(rms(divide, (6, 1)), "layer_norm")
        assert (found["rms"], found["outer"], found["cols"], found["inner"]) == (True, 2, 6, 6)
        assert found["weight"] == "w"


def test_a_weight_along_another_dimension_is_no_weight_of_the_norm() -> None:
    assert refused(rms(False, (6,)))


def test_a_condition_used_as_a_number_is_refused() -> None:
    steps = [
        node("c", "aten.gt.Scalar", (ref("x"), 0), (4, 4), "bool"),
        node("y", "aten.mul.Tensor", (ref("x"), ref("c")), (4, 4)),
    ]
    assert refused(graph({"x": (4, 4)}, *steps))


def test_operations_beside_the_familys_own_are_not_overlooked() -> None:
    steps = [
        node("s", "aten.softmax.int", (ref("x"), -1), (4, 4)),
        node("y", "aten.add.Tensor", (ref("s"), 1), (4, 4)),
    ]
    assert refused(graph({"x": (4, 4)}, *steps))
