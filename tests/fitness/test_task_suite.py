"""The suite of tasks: each loads, describes, accepts PyTorch's own answer and no lazy one."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from cuda_sandbox.report import Status
from fitness.contents import Bank, Content
from fitness.correctness import verdict
from fitness.describe import describe_here
from fitness.description import TaskDescription
from fitness.evaluation import Demand, Tier
from fitness.lazy import Lazy, accepts, given, lazy_answers
from fitness.loaded import LoadedTask

SUITE = sorted(Path(__file__).parents[2].glob("configs/tasks/suite/*.py"))
SAMPLE = {
    "above_threshold",
    "attention_block",
    "conv_transpose2d",
    "cross_entropy",
    "cumulative_sum",
    "gru_cell",
    "instance_norm",
    "max_pool2d_indices",
    "quantise",
    "residual_block",
    "top_k",
    "token_model",
}
KINDS = {  # what KernelBench's levels hold, and the operators that must be there
    "activations": {"aten.relu", "aten.gelu", "aten.softplus", "aten.prelu", "aten.log_softmax"},
    "norms": {"aten.batch_norm", "aten.instance_norm", "aten.group_norm", "aten.layer_norm"},
    "losses": {"aten.cross_entropy_loss", "aten.huber_loss", "aten.kl_div"},
    "pooling": {"aten.max_pool1d", "aten.max_pool3d", "aten.avg_pool2d"},
    "convolutions": {"aten.conv1d", "aten.conv2d", "aten.conv3d"},
    "transposed": {"aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d"},
    "cumulative": {"aten.cumsum", "aten.cumprod", "aten.cummax"},
    "attention": {"aten.scaled_dot_product_attention", "aten.softmax"},
    "recurrent": {"aten.lstm", "aten.gru", "aten.gru_cell"},
    "matrices": {"aten.matmul", "aten.bmm", "aten.mv", "aten.einsum", "aten.linear"},
    "integers": {"aten.argmax", "aten.topk", "aten.index_add", "aten.embedding"},
}


def sampled(path: Path) -> object:
    """All of the suite takes a minute; a sample of every kind goes with each run of the tests."""
    marks = [] if path.stem in SAMPLE else [pytest.mark.slow]
    return pytest.param(path, id=path.stem, marks=marks)


@functools.cache
def described(path: Path) -> TaskDescription:
    return describe_here(path)


def with_operators(path: Path) -> set[str]:
    return {node.op.rpartition(".")[0] for node in described(path).graph}


def test_there_are_enough_and_each_has_a_name_and_shapes_of_its_own():
    assert len(SUITE) >= 40
    texts = [path.read_text() for path in SUITE]
    assert all("Shapes: our own" in text and "def get_init_inputs" in text for text in texts)
    assert len(set(texts)) == len(texts)


@pytest.mark.slow
def test_all_kinds_of_operator_are_covered():
    found = set().union(*map(with_operators, SUITE))
    lacking = {kind: operators - found for kind, operators in KINDS.items() if operators - found}
    assert not lacking


@pytest.mark.parametrize("path", [sampled(path) for path in SUITE])
def test_a_task_of_the_suite_is_judged_right(path):
    description = described(path)
    assert "launch(" in description.signature.header("cpp")
    assert "launch(" in description.signature.header("cuda")
    task = LoadedTask.load(path, description, "cpu", 42)
    bank = Bank(task, Demand(), 11)
    contents = bank.checks
    assert len(contents) >= 6

    own = [one for content in contents for one in content.compare(task.run(content.leaves))]
    assert verdict(Demand(), own)[:2] == (Status.OK, "")
    assert bank.default_tier is Tier.FP32

    for lazy in lazy_answers(task, contents[0].leaves):
        for position, output in enumerate(description.signature.outputs):
            rejected = (rejects(lazy, content, position) for content in contents[::-1])
            assert any(rejected), f"{lazy.name} as {output.name}"


def rejects(lazy: Lazy, content: Content, position: int) -> bool:
    """Also where the lazy answer is none for this output."""
    answer = given(lazy, content.leaves, content.truth)[position]
    return not accepts(answer, content.truth, position, Demand())
