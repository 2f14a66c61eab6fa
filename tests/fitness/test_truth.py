"""How far from the float64 truth a kernel of each tier may be."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fitness.evaluation import Tier
from fitness.inputs import Inputs
from fitness.measure import errors_of, size_of, unravel, worst_element
from fitness.operands import to_half, to_tf32
from fitness.truth import NotFinite, find_content, find_truth
from tests.fitness.task_files import described, loaded, simple


@given(st.floats(width=32, allow_nan=False))
def test_tf32_has_ten_mantissa_bits_and_rounds_to_nearest(value):
    tensor = torch.tensor([value], dtype=torch.float32)
    rounded = to_tf32(tensor)
    if math.isinf(value):
        assert rounded.equal(tensor)
        return
    assert int(rounded.view(torch.int32)) & 0x1FFF == 0
    normal = abs(value) >= 2.0**-126
    if normal and torch.isfinite(rounded).all():
        assert abs(float(rounded.double() - tensor.double())) <= abs(value) * 2.0**-11


def test_half_rounding_is_that_of_float16():
    tensor = torch.tensor([1 + 2.0**-11 * 1.01, 1e-8, 7e4])
    assert to_half(tensor).tolist() == [1 + 2.0**-10, 0.0, math.inf]


def test_bounds_grow_from_tier_to_tier_and_never_let_zeros_pass(tmp_path):
    task = loaded(tmp_path, simple("x: torch.softmax(x, 1)", "torch.randn(16, 512)"))
    for name in ("own", "large", "tiny", "shifted"):
        _, truth = find_content(Inputs(task, 3), name)
        (out,) = truth.outputs
        fp32, tf32, half = (out.bounds[tier] for tier in Tier)
        assert fp32.within(tf32)
        assert tf32.within(half)
        assert fp32.l2 >= 4 * 2.0**-23 * out.size.norm
        assert half.l2 <= out.size.norm / 2
        assert half.max <= out.size.largest / 2


def test_an_honest_mean_passes_where_positive_and_negative_cancel_and_a_coarse_one_does_not(
    tmp_path,
):
    task = loaded(tmp_path, simple("x: x.mean()", "torch.randn(64, 1024)"))
    coarse_ones = 0
    for seed in range(10):
        for name in ("own", "rows"):
            leaves, truth = find_content(Inputs(task, seed), name)
            (out,) = truth.outputs
            x = leaves["x"].flatten()
            stretches = np.add.accumulate(x.numpy().reshape(256, 256), axis=1)[:, -1]
            honest = torch.tensor(np.add.accumulate(stretches)[-1]) / x.numel()
            coarse = to_tf32(x).double().mean().float()
            assert errors_of(honest, out.values).within(out.bounds[Tier.FP32]), (seed, name)
            coarse_ones += not errors_of(coarse, out.values).within(out.bounds[Tier.FP32])
    assert coarse_ones >= 10  # by luck its errors may cancel too, but not on all contents


def test_truth_is_float64_and_closer_than_the_reference(tmp_path):
    task = loaded(tmp_path, simple("a, b: a @ b", "torch.randn(8, 4096), torch.randn(4096, 8)"))
    leaves = task.own(5)
    truth = find_truth(task, leaves, "own")
    exact = leaves["a"].double() @ leaves["b"].double()
    assert truth.wide
    assert truth.outputs[0].values.equal(exact)
    assert truth.outputs[0].reference == errors_of(leaves["a"] @ leaves["b"], exact)


def test_a_reference_without_float64_says_so_and_is_its_own_truth(tmp_path):
    body = simple("x: NoDouble.apply(x)", "torch.randn(64)")
    body = (
        """
class NoDouble(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if x.dtype is torch.float64:
            raise RuntimeError("no float64 here")
        return x * 2
"""
        + body
    )
    assert any("no float64 truth" in remark for remark in described(tmp_path, body).remarks)
    task = loaded(tmp_path, body)
    truth = find_truth(task, task.own(1), "own")
    assert not truth.wide
    assert truth.outputs[0].values.equal(task.run(task.own(1))[0].double())


def test_not_finite_inputs_are_told_apart_from_a_broken_reference(tmp_path):
    task = loaded(tmp_path, simple("x: 1 / x", "torch.rand(8) + 1"))
    leaves = dict(task.own(1), x=torch.zeros(8))
    with pytest.raises(NotFinite, match="out is not finite on normal"):
        find_truth(task, leaves, "normal")


def test_ill_conditioned_inputs_are_not_what_errors_are_reported_from(tmp_path):
    task = loaded(tmp_path, simple("x: F.layer_norm(x, (64,), eps=1e-30)", "torch.randn(16, 64)"))
    inputs = Inputs(task, 3)
    assert find_content(inputs, "own")[1].outputs[0].informative
    assert not find_content(inputs, "rows")[1].outputs[0].informative


def test_measures_agree_with_the_formulas_across_slices(monkeypatch):
    monkeypatch.setattr("fitness.measure._SLICE", 7)
    truth = torch.randn(5, 9, dtype=torch.float64)
    output = truth.float() + 1e-3 * torch.randn(5, 9)
    gap = output.double() - truth
    found = errors_of(output, truth)
    assert found.max == pytest.approx(float(gap.abs().max()))
    assert found.l2 == pytest.approx(float(gap.norm()))
    size = size_of(truth)
    assert size.rms == pytest.approx(float(truth.square().mean().sqrt()))
    assert size.largest == float(truth.abs().max())
    where = unravel(int(gap.abs().argmax()), (5, 9))
    assert worst_element(output, truth) == where
    output[4, 8] = float("nan")
    assert math.isinf(errors_of(output, truth).max)
    assert worst_element(output, truth) == (4, 8)
