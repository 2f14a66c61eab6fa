"""Real C++ kernels before the real judge: honest ones pass, the others get the status they earn."""

import dataclasses
import types

import pytest

from cuda_sandbox.compiler import Compiler
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from fitness.arena import Arena
from fitness.baselines import Baselines
from fitness.errors import TaskError
from fitness.evaluation import Demand, Tier
from fitness.judge import Judge
from fitness.pulse import DeviceShared

TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(256)

    def forward(self, x):
        return self.norm(x)

def get_inputs():
    return [torch.randn(192, 256)]

def get_init_inputs():
    return []
"""

LAYER_NORM = """
#include <cmath>
static float normalised(const float* row, int c, double mean, double scale,
                        const float* weight, const float* bias) {
    return (float)((row[c] - mean) * scale) * weight[c] + bias[c];
}
extern "C" int launch(const float* x, const float* norm_weight, const float* norm_bias,
                      float* out, void* workspace) {
    BEFORE
    for (int r = FIRST_ROW; r < X_D0; ++r) {
        const float* row = x + r * X_D1;
        double mean = 0, square = 0;
        for (int c = 0; c < X_D1; ++c) mean += row[c];
        mean /= X_D1;
        for (int c = 0; c < X_D1; ++c) square += (row[c] - mean) * (row[c] - mean);
        const double scale = 1 / std::sqrt(square / X_D1 + 1e-5);
        for (int c = 0; c < X_D1; ++c)
            out[r * X_D1 + c] = normalised(row, c, mean, scale, norm_weight, norm_bias);
    }
    AFTER
    return 0;
}
"""


def layer_norm(before="", after="", first_row="0", outside=""):
    source = LAYER_NORM.replace("BEFORE", before).replace("AFTER", after)
    return outside + source.replace("FIRST_ROW", first_row)


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    with Compiler(tmp_path_factory.mktemp("cache")) as compiler:
        yield compiler


@pytest.fixture(scope="module")
def judge(tmp_path_factory, compiler):
    path = tmp_path_factory.mktemp("task") / "norm.py"
    path.write_text(TASK)
    judge = Judge(path, Demand(), "cpu", compiler=compiler)
    yield judge
    judge.close()


def judged(judge, source):
    kernel = Kernel(source, "cpp")
    return judge.evaluate(
        kernel, judge.compiler.submit(kernel, judge.signature, judge.arch).result()
    )


def test_an_honest_kernel_is_accepted_with_times_precision_and_speedups(judge):
    found = judged(judge, layer_norm())

    assert found.status is Status.OK, found.reason
    assert found.precision.tier is Tier.FP32
    assert found.precision.error <= 4 * found.precision.reference_error + 1e-6
    assert 0 < found.time_ms.low <= found.time_ms.median <= found.time_ms.high
    assert found.speedup["eager"] == pytest.approx(
        found.baselines["eager"].time_ms.median / found.time_ms.median
    )
    assert found.speedup["best"] > 0
    assert found.roofline_share > 0
    assert "compile" not in found.speedup, "not measured, so not invented"
    assert found.seconds.compile > 0
    assert "thread" in found.device


def test_a_wrong_kernel_is_incorrect_and_the_reason_names_an_element(judge):
    found = judged(judge, layer_norm(after="out[5] += 1;"))

    assert found.status is Status.INCORRECT
    assert "out[0, 5]" in found.reason
    assert found.time_ms is None
    assert found.speedup == {}


def test_a_layer_norm_by_mean_of_squares_fails_on_data_with_a_mean(judge):
    naive = layer_norm(
        after="""
    for (int r = 0; r < X_D0; ++r) {
        float s = 0, q = 0;
        for (int c = 0; c < X_D1; ++c) { float v = x[r*X_D1+c]; s += v; q += v * v; }
        float m = s / X_D1, k = 1 / std::sqrt(std::fmax(q / X_D1 - m * m, 0.f) + 1e-5f);
        for (int c = 0; c < X_D1; ++c)
            out[r*X_D1+c] = (x[r*X_D1+c] - m) * k * norm_weight[c] + norm_bias[c];
    }"""
    )

    found = judged(judge, naive)

    assert found.status is Status.INCORRECT
    assert "shifted" in found.reason or "rows" in found.reason


def test_weights_left_out_because_they_are_ones_at_first_are_missed(judge):
    found = judged(judge, layer_norm(outside="#define norm_weight[c] 1\n"))

    assert found.status in (Status.COMPILE_ERROR, Status.INCORRECT)
    identity = layer_norm(
        after="""
    for (int i = 0; i < X_SIZE; ++i) {
        int c = i % X_D1; out[i] = (out[i] - norm_bias[c]) / norm_weight[c];
    }"""
    )
    assert judged(judge, identity).status is Status.INCORRECT


def test_rows_left_unwritten_are_seen(judge):
    found = judged(judge, layer_norm(first_row="1"))

    assert found.status is Status.INCORRECT
    assert "left 256 of 49152 elements of out unwritten, the first at [0, 0]" in found.reason


def test_a_result_remembered_from_an_earlier_call_is_seen(judge):
    remembers = layer_norm(
        outside="#include <string.h>\nstatic float kept[OUT_SIZE]; static int calls;\n",
        before="if (calls) { memcpy(out, kept, sizeof kept); return 0; }",
        after="memcpy(kept, out, sizeof kept); ++calls;",
    )

    found = judged(judge, remembers)

    assert found.status is Status.HACK
    assert "earlier call" in found.reason


def test_work_that_stops_after_the_checks_is_a_hack(judge):
    lazy = layer_norm(outside="static int calls;\n", before="if (++calls > 12) return 0;")

    found = judged(judge, lazy)

    assert found.status is Status.HACK
    assert "timed call" in found.reason


def test_a_write_past_the_end_of_the_output_is_not_accepted(judge):
    found = judged(judge, layer_norm(after="((volatile float*)out)[-3] = 1;"))

    assert found.status is Status.HACK
    assert "out of bounds of out" in found.reason


def test_a_write_to_an_input_is_not_accepted(judge):
    found = judged(judge, layer_norm(after="((float*)x)[7] = 1;"))

    assert found.status in (Status.CRASHED, Status.HACK)
    assert "x" in found.reason


def test_the_workspace_holds_nothing_from_earlier_calls(judge):
    counts = layer_norm(
        outside='extern "C" size_t workspace_bytes(void) { return 4096; }\n',
        after="""
        int* seen = (int*)workspace;
        if (*seen == 42) out[0] = 1e9f;
        *seen = 42;""",
    )

    assert judged(judge, counts).status is Status.OK


def test_a_kernel_that_reports_an_error_has_failed_to_launch(judge):
    assert judged(judge, layer_norm(before="return 3;")).status is Status.LAUNCH_ERROR


def test_a_kernel_that_does_not_compile_says_why(judge):
    found = judged(judge, "int launch(")

    assert found.status is Status.COMPILE_ERROR
    assert found.reason
    assert found.time_ms is None


def test_a_kernel_that_kills_its_process_costs_one_candidate_only(judge):
    dead = judged(judge, layer_norm(before="__builtin_trap();"))
    alive = judged(judge, layer_norm())

    assert dead.status is Status.CRASHED
    assert alive.status is Status.OK


def test_half_operands_reach_only_the_half_tier_and_do_not_pass_as_fp32(judge, compiler, tmp_path):
    path = tmp_path / "product.py"
    path.write_text(
        TASK.replace("self.norm = nn.LayerNorm(256)", "pass").replace(
            "self.norm(x)", "x @ x.transpose(0, 1)"
        )
    )
    source = """
    extern "C" int launch(const float* x, float* out, void*) {
        for (int i = 0; i < X_D0; ++i) for (int j = 0; j < X_D0; ++j) {
            double s = 0;
            for (int k = 0; k < X_D1; ++k)
                s += (double)(TYPE)x[i * X_D1 + k] * (double)(TYPE)x[j * X_D1 + k];
            out[i * X_D0 + j] = (float)s;
        }
        return 0;
    }"""
    product = Judge(path, Demand(), "cpu", compiler=compiler)
    try:
        exact = judged(product, source.replace("TYPE", "float"))
        half = judged(product, source.replace("TYPE", "_Float16"))
    finally:
        product.close()

    assert exact.status is Status.OK, exact.reason
    assert half.status is Status.INCORRECT
    assert half.precision is None or half.precision.tier is not Tier.FP32


def test_inputs_differ_from_judge_to_judge(judge, compiler, tmp_path):
    path = tmp_path / "norm.py"
    path.write_text(TASK)
    other = Judge(path, Demand(), "cpu", compiler=compiler)
    try:
        same = [
            (ours.leaves["x"] == theirs.leaves["x"]).all()
            for ours, theirs in zip(judge.bank.timed, other.bank.timed, strict=True)
        ]
    finally:
        other.close()

    assert not any(same)


def test_an_evaluation_is_a_plain_record(judge):
    found = judged(judge, layer_norm())

    assert dataclasses.asdict(found)["status"] == "ok"


def test_a_judge_that_does_not_come_to_be_leaves_no_memory_behind(judge, tmp_path, monkeypatch):
    path = tmp_path / "norm.py"
    path.write_text(TASK)

    def fails(baselines):
        raise TaskError("PyTorch itself fails")

    closed = []
    monkeypatch.setattr(Baselines, "eager", fails)
    monkeypatch.setattr(Arena, "close", lambda arena: closed.append(arena))
    with pytest.raises(TaskError, match="PyTorch itself fails"):
        Judge(path, Demand(), "cpu", compiler=judge.compiler)

    assert len(closed) == 1


@pytest.mark.parametrize("shared", [1, 3, 9])
def test_a_verdict_waits_for_a_moment_in_which_others_leave_the_device_alone(monkeypatch, shared):
    rests, looks = [], []

    def evaluate(kernel, compiled):
        looks.append(judge.pulse)
        if len(looks) <= shared:
            raise DeviceShared("cuda:0 is too busy")
        return "a verdict"

    monkeypatch.setattr("fitness.judge.time.sleep", rests.append)
    judge = types.SimpleNamespace(pulse="usual", _evaluate=evaluate)
    if shared < 4:
        assert Judge.evaluate(judge, "kernel", "compiled") == "a verdict"
    else:
        with pytest.raises(DeviceShared, match="too busy"):
            Judge.evaluate(judge, "kernel", "compiled")

    assert looks == ["usual", *[None] * min(shared, 3)]
    assert judge.pulse == "usual"
    assert len(rests) == min(shared, 3)
