"""Audits on a GPU: tasks of full size, forks that each use the device, a device that asserts."""

from __future__ import annotations

from pathlib import Path

from fitness.audit import Job, Outcome, audits
from fitness.evaluation import Demand
from tests.fitness.task_files import simple, write

TASKS = Path(__file__).parents[2] / "configs/tasks"


def audited(*paths):
    return list(audits([Job(path, Demand(), "cuda") for path in paths]))


def test_a_task_of_a_gigabyte_is_audited_at_its_full_size_or_near_it():
    (softmax,) = audited(TASKS / "softmax.py")
    assert softmax.outcome is Outcome.STRENGTHENED, softmax
    assert softmax.device == "cuda"
    assert len(softmax.distributions) == 7
    assert all("4096" in size for size in softmax.sizes)


def test_outcomes_are_those_of_a_cpu():
    suite = [TASKS / "suite" / f"{name}.py" for name in ("scatter_add", "top_k", "gru_cell")]
    weak = Path(__file__).parents[1] / "fitness/weak_tasks"
    found = audited(*suite, weak / "constant_output.py", weak / "relu_of_uniform.py")
    assert [audit.outcome.usable for audit in found] == [True, True, True, False, True], found


def test_an_index_out_of_range_ends_one_audit_and_not_the_next(tmp_path):
    body = simple("x, i: x[i]", "torch.randn(64, 8), torch.randint(5000, 9000, (32,))")
    bad = write(tmp_path, body, "bad")
    good = write(tmp_path, simple("x: torch.tanh(x)", "torch.randn(64, 8)"), "good")
    first, second = audited(bad, good)
    assert not first.outcome.usable
    assert second.outcome is Outcome.SOUND, second
