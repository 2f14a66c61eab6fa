"""Python modules on a GPU: captured or called anew, built by nvcc or Triton; what ran is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_sandbox.compiler import Compiler
from cuda_sandbox.report import Status
from fitness import selftest
from fitness.corpus import Specimen
from fitness.evaluation import Evaluation
from fitness.judge import Judge

DEVICE = "cuda:0"
SPECIMENS = {one.name: one for one in selftest.chosen(DEVICE) if one.kernel.language == "module"}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Judges a specimen of the corpus; each task has one judge."""
    judges: dict[Path, Judge] = {}
    with Compiler(tmp_path_factory.mktemp("objects")) as compiler:

        def verdict(name: str) -> Evaluation:
            one: Specimen = SPECIMENS[name]
            if why := selftest.missing(one):
                pytest.skip(why)
            if one.task not in judges:
                judges[one.task] = Judge(one.task, one.demand, DEVICE, compiler=compiler)
            judge = judges[one.task]
            return judge.evaluate(one.kernel, judge.compile(one.kernel))

        yield verdict
        for judge in judges.values():
            judge.close()


def test_plain_pytorch_is_captured_and_its_kernels_are_told(judged) -> None:
    found = judged("returns_a_strided_tensor")

    assert found.status is Status.OK, found.reason
    assert found.execution.mode == "graph"
    assert found.execution.foreign
    assert not found.execution.unseen


def test_a_default_stream_cannot_be_captured_and_is_accepted_all_the_same(judged) -> None:
    found = judged("launches_on_the_default_stream")

    assert found.status is Status.OK, found.reason
    assert found.execution.mode == "calls"
    assert found.execution.uncaptured
    assert any("relu_kernel" in name for name in found.execution.ran)
    assert not found.execution.foreign


def test_the_current_stream_can_be_captured(judged) -> None:
    found = judged("launches_on_the_current_stream")

    assert found.status is Status.OK, found.reason
    assert found.execution.mode == "graph"


def test_triton_finds_everything_compiled_in_a_worker_that_starts_no_programs(judged) -> None:
    found = judged("is_written_in_triton")

    assert found.status is Status.OK, found.reason
    assert any("softmax_kernel" in name for name in found.execution.ran)
    assert not found.execution.foreign


@pytest.mark.parametrize(
    "name",
    [
        *("changes_its_input", "does_not_even_fork", "does_not_join"),
        *("prepares_weights_at_first", "works_only_when_not_captured"),
    ],
)
def test_cheats_that_only_a_gpu_can_tell_are_told(judged, name: str) -> None:
    found = judged(name)

    assert not SPECIMENS[name].complaint(found.status, found.reason)
