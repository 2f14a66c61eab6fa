"""PyTorch's own times: which modes apply, how slow ones are bounded, what a kernel must beat."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import textwrap

import pytest
import torch

from cuda_sandbox.cache import write_json
from cuda_sandbox.signature import Role, Signature, TensorSpec
from fitness import baselines as under_test
from fitness.baseline_process import NoFigure, Request, started
from fitness.baselines import Baselines, speedups, strongest
from fitness.description import Node, TaskDescription
from fitness.evaluation import Baseline, Interval, Precision, Tier
from fitness.hardware import Ceilings
from fitness.modes import MODES, Facts
from fitness.task import load

CEILINGS = Ceilings(1e15, 1 << 20, 1e15)
GPU, CPU = torch.device("cuda:0"), torch.device("cpu")
CONV = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.conv(x)

def get_inputs():
    return [torch.randn(2, 3, 16, 16)]

def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    path = tmp_path_factory.mktemp("task") / "conv.py"
    path.write_text(CONV)
    return load(path)


@pytest.fixture(autouse=True)
def fresh_and_hasty(tmp_path, monkeypatch):
    """Nothing is known yet, and PyTorch need not show its best."""
    monkeypatch.setenv("KERNELEVO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(under_test, "_SETTLE_S", 0.0)


def description(op, dtype="float32"):
    x, out = (TensorSpec(n, dtype, (4, 4), r) for n, r in (("x", Role.INPUT), ("out", Role.OUTPUT)))
    return TaskDescription("t", "", Signature("t", (x,), (out,)), (Node("n", f"aten.{op}"),))


def applying(op, device, tier=Tier.FP32, dtype="float32"):
    facts = Facts.of(description(op, dtype), device, tier)
    return {name for name, mode in MODES.items() if mode.applies(facts)}


def test_a_product_on_a_gpu_is_held_against_every_mode_of_pytorch():
    assert applying("conv2d.default", GPU, Tier.TF32) == set(MODES)


def test_modes_that_would_change_nothing_do_not_apply():
    softmax = applying("softmax.int", GPU)
    assert softmax == {
        "eager",
        "graph",
        "compile",
        "compile_reduce_overhead",
        "compile_max_autotune",
    }
    assert "channels_last" not in applying("matmul.default", GPU)
    assert "eager_tf32" in applying("matmul.default", GPU)
    assert not {"half", "eager_tf32"} & applying("matmul.default", GPU, dtype="float16")
    assert applying("softmax.int", CPU) == {"eager", "compile"}
    assert "channels_last" in applying("conv2d.default", CPU)


def baseline(ms, tier):
    return Baseline(Interval(ms, ms, ms), tier)


def test_the_best_is_the_strongest_baseline_of_the_kernels_own_precision():
    found = {
        "eager": baseline(10, Tier.FP32),
        "eager_tf32": baseline(4, Tier.TF32),
        "half": baseline(2, Tier.HALF),
        "compile": baseline(8, Tier.FP32),
    }
    time_ms = Interval(1, 1, 1)

    def best(tier):
        return speedups(found, time_ms, Precision(tier, 0, 0, 0, 0))["best"]

    assert [best(tier) for tier in Tier] == [8, 4, 2]
    assert strongest(found, None) is found["half"]


def test_channels_last_is_measured_and_leaves_the_task_as_it_was(task):
    found = Baselines(task, Tier.FP32, 1, CEILINGS).get("eager", "channels_last")

    assert set(found) == {"eager", "channels_last"}
    assert found["channels_last"].tier is Tier.FP32
    assert task.model.conv.weight.is_contiguous()


def test_what_was_measured_is_kept_for_the_next_judge_but_not_under_other_flags(task, monkeypatch):
    first = Baselines(task, Tier.FP32, 1, CEILINGS).eager()

    assert Baselines(task, Tier.FP32, 1, CEILINGS).known() == {"eager": first}
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    assert Baselines(task, Tier.FP32, 1, CEILINGS).known() == {}


def test_what_a_busy_moment_gave_does_not_stand(task):
    first = Baselines(task, Tier.FP32, 1, CEILINGS)
    honest = first.eager()
    slow = Interval(*(10_000 * value for value in dataclasses.astuple(honest.time_ms)))
    write_json(first._path("eager"), dataclasses.asdict(Baseline(slow, honest.tier)))

    later = Baselines(task, Tier.FP32, 1, CEILINGS)

    assert later.eager().time_ms.median < slow.median / 10
    assert later.known()["eager"].time_ms.median < slow.median / 10


def test_a_compiler_that_takes_too_long_is_killed_and_not_asked_again(task):
    hurried = Baselines(task, Tier.FP32, 1, CEILINGS, deadline_s=0.5)

    assert hurried.get("compile") == {}
    assert hurried.failed == {"compile": "NoFigure: not ready within 0.5 s"}
    assert Baselines(task, Tier.FP32, 1, CEILINGS).failed["compile"].endswith("within 0.5 s")


def test_a_mode_whose_process_dies_is_one_mode_less(task, tmp_path, monkeypatch):
    dies = "import os, sys; print('a compiler gave up', file=sys.stderr, flush=True); os.abort()"
    (tmp_path / "sitecustomize.py").write_text(dies)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = Baselines(task, Tier.FP32, 1, CEILINGS)

    assert set(found.get("eager", "compile")) == {"eager"}
    assert found.failed["compile"] == "NoFigure: its process ended with -6: a compiler gave up"


def test_a_slow_mode_takes_its_turns_in_a_process_of_its_own(task, monkeypatch):
    """PyTorch as it is stands for torch.compile, which takes a minute."""
    monkeypatch.setitem(MODES, "eager", dataclasses.replace(MODES["eager"], slow=True))

    with Baselines(task, Tier.FP32, 1, CEILINGS).ready("eager") as timed:
        assert [timed() > 0 for _ in range(3)] == [True] * 3
        assert timed.settled().low > 0
        os.killpg(timed._child.pid, signal.SIGKILL)
        with pytest.raises(NoFigure, match="its process ended with -9"):
            timed()


@pytest.fixture
def two_slow_modes(monkeypatch):
    """Quick ones stand for two of torch.compile's."""
    for mode in ("eager", "channels_last"):
        monkeypatch.setitem(MODES, mode, dataclasses.replace(MODES[mode], slow=True))
    return ("eager", "channels_last")


def with_constructor(tmp_path, name, lines):
    """The task with these lines where its model is made in a process of a baseline's."""
    path = tmp_path / f"{name}.py"
    made = textwrap.indent(
        f"if 'BASELINES' in os.environ:\n{textwrap.indent(lines, '    ')}", " " * 8
    )
    path.write_text(
        "import fcntl, os, time\n"
        + CONV.replace("        self.conv", made + "\n        self.conv", 1)
    )
    return load(path)


def test_slow_modes_get_ready_beside_each_other(tmp_path, two_slow_modes, monkeypatch):
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    waits = f"""
os.mkdir(f"{meeting}/{{os.getpid()}}")
until = time.monotonic() + 30
while len(os.listdir("{meeting}")) < 2:
    assert time.monotonic() < until, "nobody came"
    time.sleep(0.01)
"""
    meets = with_constructor(tmp_path, "meets", waits)
    monkeypatch.setenv("BASELINES", "1")

    found = Baselines(meets, Tier.FP32, 1, CEILINGS)

    assert set(found.get(*two_slow_modes)) == set(two_slow_modes), found.failed


def test_one_that_found_too_little_room_beside_others_is_tried_alone(
    tmp_path, two_slow_modes, monkeypatch
):
    room = tmp_path / "room"
    takes = f"""
Model.room = open("{room}", "w")
fcntl.flock(Model.room, fcntl.LOCK_EX | fcntl.LOCK_NB)
"""
    greedy = with_constructor(tmp_path, "greedy", takes)
    monkeypatch.setenv("BASELINES", "1")

    found = Baselines(greedy, Tier.FP32, 1, CEILINGS)

    assert set(found.get(*two_slow_modes)) == set(two_slow_modes)
    assert not found.failed
    assert not Baselines(greedy, Tier.FP32, 1, CEILINGS).failed


def test_what_pytorch_throws_in_that_process_is_told(task):
    asked = Request(str(task.reference.file.path), "cpu", 1, "graph", None)

    with started(asked, CEILINGS, 60.0) as timed, pytest.raises(NoFigure, match="CUDA"):
        timed()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_torch_compile_is_measured_on_a_cpu_too_and_can_take_its_turn_with_others(task):
    baselines = Baselines(task, Tier.FP32, 1, CEILINGS)

    found = baselines.get("compile")

    assert not baselines.failed
    assert found["compile"].time_ms.median > 0
    with baselines.ready("compile") as timed, baselines.ready("eager") as eager:
        assert timed() > 0
        assert eager() > 0
