"""Python modules before the real judge on a CPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cuda_sandbox.compiler import Compiler
from cuda_sandbox.isolation import namespaces_missing
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from fitness.evaluation import Demand
from fitness.judge import Judge

TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, channels, eps):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels, eps=eps)
        self.start = torch.randn(channels)

    def forward(self, x, scale):
        out = self.norm(x) * scale + self.start
        return out, out.sum(dim=1)

def get_inputs():
    return [torch.randn(64, 48), 0.5]

def get_init_inputs():
    return [48, 1e-3]
"""
HEAD = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self, channels, eps):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels, eps=eps)
        self.start = torch.randn(channels)
"""
HONEST = (
    HEAD
    + """
    def forward(self, x, scale):
        start = self.start
        out = self.norm(x) * scale + start
        return out, out.sum(dim=1)
"""
)


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    with Compiler(tmp_path_factory.mktemp("objects")) as compiler:
        yield compiler


@pytest.fixture(scope="module")
def judge(tmp_path_factory, compiler):
    path = tmp_path_factory.mktemp("task") / "normed.py"
    path.write_text(TASK)
    judge = Judge(path, Demand(), "cpu", compiler=compiler)
    yield judge
    judge.close()


def judged(judge, source):
    kernel = Kernel(source, "module")
    return judge.evaluate(kernel, judge.compile(kernel))


def test_a_port_with_weights_buffers_states_and_numbers_is_accepted(judge):
    found = judged(judge, HONEST)

    assert found.status is Status.OK, found.reason
    assert found.time_ms.median > 0
    assert found.speedup["eager"] > 0
    assert found.execution.mode == "calls"
    assert found.execution.weights == "by name"
    assert "aten::sum.dim_IntList" in found.execution.ran
    assert any("batch_norm" in name for name in found.execution.foreign)


def test_a_parameter_without_a_place_is_refused_and_both_sides_are_named(judge):
    found = judged(judge, HONEST.replace("BatchNorm1d(channels,", "BatchNorm1d(channels + 1,"))

    assert found.status is Status.REJECTED
    assert "norm.weight float32[48]" in found.reason
    assert "float32[49]" in found.reason


def test_weights_of_its_own_are_not_left_as_they_were_drawn(judge):
    more = HONEST.replace(
        "self.start =", "self.extra = nn.Parameter(torch.ones(3))\n        self.start ="
    )

    found = judged(judge, more)

    assert found.status is Status.REJECTED
    assert "extra float32[3] is no parameter of Model" in found.reason


def test_what_is_made_of_weights_in_the_constructor_is_wrong_and_named(judge):
    kept = "self.early = self.norm.weight.detach() * 1\n        self.start ="
    plain = "nn.functional.batch_norm(x, None, None, training=True, eps=1e-3)"
    early = HONEST.replace("self.start =", kept, 1)

    found = judged(judge, early.replace("self.norm(x)", f"({plain} * self.early + self.norm.bias)"))

    assert found.status in (Status.INCORRECT, Status.HACK)
    assert "early float32[48], made before it was given its weights" in found.reason


def test_a_state_that_the_module_changes_is_put_back_before_each_call(judge):
    forgetful = HONEST.replace("out = self.norm", "self.start = start + 1\n        out = self.norm")

    assert judged(judge, forgetful).status is Status.OK


def test_one_output_too_few_is_incorrect_and_says_what_is_expected(judge):
    found = judged(judge, HONEST.replace(", out.sum(dim=1)", ""))

    assert found.status is Status.INCORRECT
    assert "returns 1 tensors, not 2" in found.reason
    assert "out1 float32[64]" in found.reason


def test_the_line_that_raised_is_named(judge):
    found = judged(judge, HONEST.replace("start = self.start", "raise KeyError('left')"))

    assert found.status is Status.LAUNCH_ERROR
    assert "line 12: forward raised KeyError: 'left'" in found.reason


def test_a_file_that_is_no_python_is_a_compile_error_with_its_line(judge):
    found = judged(judge, "import torch\n\ndef broken(:\n    pass\n")

    assert found.status is Status.COMPILE_ERROR
    assert "line 3: importing it raised SyntaxError" in found.reason


def test_own_kernels_are_demanded_by_the_operators_that_compute(judge, monkeypatch):
    monkeypatch.setattr(judge, "demand", Demand(own_kernels=True))

    found = judged(judge, HONEST)

    assert found.status is Status.REJECTED
    assert "own kernels are demanded; others compute for it: aten::" in found.reason
    assert "aten::mul.Tensor" in found.reason
    assert found.execution.ran


def test_ceilings_of_a_busy_moment_are_measured_again_before_they_are_held_against_it(
    judge, monkeypatch
):
    slow = {"bytes_per_s": 1e3, "cold_bytes_per_s": 1e3, "cache_bytes": 0, "private_bytes": 0}
    monkeypatch.setattr(judge, "ceilings", replace(judge.ceilings, **slow))

    found = judged(judge, HONEST)

    assert found.status is Status.OK, found.reason
    assert judge.ceilings.bytes_per_s > 1e6


def test_a_module_takes_no_compiler_flags(judge):
    report = judge.compile(Kernel(HONEST, "module", ("-O3",)))

    assert report.status is Status.REJECTED
    assert "load_inline" in report.reason


@pytest.mark.skipif(bool(namespaces_missing()), reason="no namespaces here")
def test_nothing_of_this_machine_or_of_the_task_is_seen_from_inside(judge):
    look = """
import os, sys
places = ("/home", "/etc/passwd", "/tmp", "/var", "/proc/self")
seen = [p for p in places if os.path.exists(p) and not sys.prefix.startswith(p)]
raise RuntimeError(f"{seen} {sorted(os.listdir('/kernel.so'))} {os.environ.get('HOME')}")
"""

    reason = judged(judge, look).reason

    assert "RuntimeError: [] ['constructor.pickle', 'kernel.py', 'orders.json'] None" in reason
