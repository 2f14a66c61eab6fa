"""Certification on a CPU: what is checked, what fails, what the document says."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal

import pytest
import torch

from cuda_sandbox.compiler import Compiler
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from evo.report.certificate import certificate_lines
from evo.report.plain import finite
from fitness import baselines, sitting
from fitness.baseline_process import started
from fitness.baselines import Baselines
from fitness.certificate import SCHEMA, Terms
from fitness.certify import certify, command, repeatability
from fitness.evaluation import Baseline, Demand, Interval
from fitness.judge import Judge
from fitness.modes import MODES
from fitness.sitting import Sitting, quietest, seated
from fitness.timing import Effort

TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)

def get_inputs():
    return [torch.randn(64, 400)]

def get_init_inputs():
    return []
"""
SOURCE = """
#include <cmath>
OUTSIDE
extern "C" int launch(const float* x, float* out, void* workspace) {
    for (int r = 0; r < X_D0; ++r) {
        const float* row = x + r * X_D1;
        float top = row[0];
        for (int c = 1; c < X_D1; ++c) top = std::fmax(top, row[c]);
        double sum = 0;
        for (int c = 0; c < X_D1; ++c) sum += std::exp((double)row[c] - top);
        for (int c = 0; c < X_D1; ++c)
            out[r * X_D1 + c] = std::exp((double)row[c] - top) / sum;
    }
    AFTER
    return 0;
}
"""


DEFAULTS = Terms()


def softmax(outside="", after=""):
    return Kernel(SOURCE.replace("OUTSIDE", outside).replace("AFTER", after), "cpp")


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    path = tmp_path_factory.mktemp("task") / "rows.py"
    path.write_text(TASK)
    with Compiler(tmp_path_factory.mktemp("cache")) as compiler:
        judge = Judge(path, Demand(), "cpu", compiler=compiler)
        yield judge
        judge.close()


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """PyTorch in its first mode only, and a short sitting."""
    monkeypatch.setattr(Baselines, "modes", ("eager",))
    monkeypatch.setattr(sitting, "_EFFORT", Effort(least=6, most=6, seconds=1.0))


def certified(judge, kernel, terms=DEFAULTS, **rivals):
    def built(one):
        return one, judge.compiler.submit(one, judge.signature, judge.arch).result()

    pairs = {name: built(rival) for name, rival in rivals.items()}
    return certify(judge, built(kernel), pairs, terms)


@pytest.fixture(scope="module")
def sound(judge):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Baselines, "modes", ("eager",))
        terms = Terms(command="kernelevo certify rows.py my.cpp", made_by="kernelevo 9")
        yield certified(judge, softmax(), terms, parent=softmax("static int other;"))


def test_a_sound_kernel_gets_a_certificate_with_every_check_and_figure(sound):
    document = sound.certificate

    assert document["schema"] == SCHEMA
    assert document["verdict"] == "certified"
    assert all(said.startswith("passed") for said in document["checks"].values())
    assert {"hidden inputs", "repeatability", "timing", "address"} <= document["checks"].keys()
    assert {"kernel", "kernel again", "parent"} <= document["figures"]["time_ms"].keys()
    assert document["baselines"]["eager"]["tier"] == "fp32"
    assert document["clocks"]["summary"] == "not run: a CPU's clocks are not read"
    assert document["environment"]["compiler"]
    assert document["command"] == "kernelevo certify rows.py my.cpp"
    assert sound.time_ms.median == document["figures"]["time_ms"]["kernel"]["median"]
    assert json.loads(json.dumps(finite(document), allow_nan=False))


def test_a_certificate_is_told_in_lines_that_hold_the_command_to_repeat_it(sound):
    text = "\n".join(certificate_lines(sound.certificate))

    assert text.startswith("certified\n")
    assert "hidden inputs           passed on" in text
    assert "repeat with             kernelevo certify rows.py my.cpp" in text
    assert "profile                 roofline: " in text


def test_a_certificate_without_a_command_tells_one_that_repeats_it(judge):
    found = command(judge, Kernel("", "cpp", ("-Ofast",)))

    assert found == "kernelevo certify rows.py KERNEL.cpp --device cpu --tier fp32 --flag=-Ofast"


def test_a_kernel_that_a_sanitizer_objects_to_fails_with_all_that_was_found(judge):
    reads_past = softmax("static float table[4];", "if (table[4 + (int)(x[0] * 0)] > 1) return 1;")

    found = certified(judge, reads_past)

    assert found.status is Status.INCORRECT
    assert "overflow" in found.reason
    assert found.certificate["verdict"] == "not certified"
    assert found.certificate["checks"]["address"].startswith("failed: READ of size 4")
    assert found.certificate["checks"]["hidden inputs"].startswith("passed")


def test_a_sanitizer_sees_what_a_kernel_does_with_rare_numbers(judge):
    """The table is read out of bounds for large numbers only; what is read there is not used."""
    rare = "if (top > 50 && table[4 + (int)(top * 0)] > 1) return 1;"
    reads_past = softmax("static float table[4];").source.replace(
        "double sum = 0;", f"{rare} double sum = 0;"
    )

    found = certified(judge, Kernel(reads_past, "cpp"))

    assert found.certificate["checks"]["hidden inputs"].startswith("passed")
    assert found.certificate["checks"]["address"].startswith("failed: READ of size 4")


def test_a_wrong_kernel_is_told_by_the_first_check_and_the_others_are_not_run(judge):
    found = certified(judge, softmax(after="out[3] += 1;"))

    checks = found.certificate["checks"]
    assert found.status is Status.INCORRECT
    assert checks["verdict"].startswith("failed: ")
    assert {checks[name] for name in ("timing", "address")} == {"not run: verdict failed"}


def test_runs_that_differ_are_declared_with_their_spread():
    ones = torch.ones(3)

    assert repeatability([(ones,), (ones.clone(),)]) == "passed: 2 runs equal to the bit"
    assert repeatability([(ones,), (ones,), (ones + 0.25,)]).endswith("spread 0.25")


def test_a_rival_that_fails_is_absent_and_a_sanitizer_without_end_is_not_run(judge):
    terms = Terms(sanitizer_s=0.01)
    found = certified(judge, softmax(), terms, parent=softmax(after="return 7;"))

    assert found.correct, found.reason
    assert found.certificate["figures"]["absent"]["parent"].startswith("not run: ")
    assert "parent" not in found.certificate["figures"]["time_ms"]
    assert found.certificate["checks"]["address"].startswith("not run: ")


def test_a_baseline_whose_process_dies_is_absent_from_then_on(judge, monkeypatch):
    """PyTorch as it is stands for torch.compile: what compilers make may crash at any call."""
    kernel = softmax()
    compiled = judge.compiler.submit(kernel, judge.signature, judge.arch).result()
    judge.baselines.eager()
    monkeypatch.setitem(MODES, "eager", dataclasses.replace(MODES["eager"], slow=True))
    begun = []

    @contextlib.contextmanager
    def noted(*asked):
        with started(*asked) as process:
            begun.append(process)
            yield process

    monkeypatch.setattr(baselines, "started", noted)
    with judge.trial(kernel, compiled, judge.arena) as trial:
        judge.examine(trial, judge.bank)
        with seated(judge, trial, judge.bank, {}) as sit:
            first = sit()
            os.killpg(begun[0]._child.pid, signal.SIGKILL)
            second = sit()

    assert first.speedup["eager"].low > 0
    assert not first.absent
    assert set(second.time_ms) == {"kernel", "kernel again"}
    assert second.absent["eager"].startswith("not run: NoFigure: its process ended with -9")


def test_a_sitting_in_which_pytorch_was_slow_gives_no_ratio():
    known = Baseline(Interval(1.0, 0.99, 1.01), None)
    slow = Interval(3.0, 2.9, 3.1)
    found = Sitting({"eager": slow}, {"eager": slow}, 6, {}, {}).without_slack({"eager": known})

    assert found.time_ms == {}
    assert found.speedup == {}
    assert found.absent["eager"].endswith("PyTorch has been faster: 3 ms, not 1 ms")


def test_a_microsecond_between_two_processes_calls_is_no_slowness():
    known = Baseline(Interval(0.0104, 0.0104, 0.0104), None)
    after_another = Interval(0.0114, 0.0113, 0.0115)
    found = Sitting({"graph": after_another}, {}, 200, {}, {})

    assert not found.slack({"graph": known})


def test_a_disturbed_sitting_is_held_again_and_the_quietest_counts():
    known = {"eager": Baseline(Interval(1.0, 0.99, 1.01), None)}

    def held(kernel_ms, eager_ms):
        times = {
            name: Interval(ms, ms, ms) for name, ms in (("kernel", kernel_ms), ("eager", eager_ms))
        }
        return Sitting(times, {"eager": Interval(eager_ms / kernel_ms, 0, 9)}, 6, {}, {})

    calm = iter([held(5.0, 4.0), held(0.5, 1.0), held(0.4, 3.0)])
    assert quietest(lambda: next(calm), known).time_ms["kernel"].median == 0.5

    busy = iter([held(5.0, 4.0), held(2.0, 3.0), held(4.0, 3.0)])
    found = quietest(lambda: next(busy), known)
    assert found.time_ms["kernel"].median == 2.0
    assert "eager" in found.absent
