"""What passes, at which tier, and what is said of what does not."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_sandbox.report import Status
from fitness.correctness import compare, quick, quick_check, verdict
from fitness.evaluation import Demand, Tier
from fitness.inputs import DISTRIBUTIONS, Inputs
from fitness.operands import to_half, to_tf32
from fitness.rankings import Ranking
from fitness.truth import find_content
from tests.fitness.task_files import loaded, simple

PUBLISHED = Demand(tier=None, tolerance=1e-2)


class Bench:
    """A task with its contents; judges functions of the leaves."""

    def __init__(self, folder, body):
        self.task = loaded(folder, body)
        inputs = Inputs(self.task, 99)
        found = [find_content(inputs, name) for name in DISTRIBUTIONS]
        self.contents = [content for content in found if content]

    def judge(self, kernel, demand=None, only=None):
        comparisons = []
        for leaves, truth in self.contents:
            if only in (None, truth.content):
                outputs = kernel(**leaves)
                outputs = outputs if isinstance(outputs, tuple) else (outputs,)
                comparisons += compare(outputs, truth)
        return verdict(demand or Demand(), comparisons)

    def tier(self, kernel):
        precision = self.judge(kernel)[2]
        return precision and precision.tier


@pytest.fixture(scope="module")
def matmul(tmp_path_factory):
    body = simple("a, b: a @ b", "torch.randn(48, 256), torch.randn(256, 40)")
    return Bench(tmp_path_factory.mktemp("task"), body)


@pytest.fixture(scope="module")
def norm(tmp_path_factory):
    init = "self.ln = nn.LayerNorm(1024)"
    return Bench(
        tmp_path_factory.mktemp("task"), simple("x: self.ln(x)", "torch.randn(32, 1024)", init)
    )


@pytest.fixture(scope="module")
def softmax(tmp_path_factory):
    return Bench(
        tmp_path_factory.mktemp("task"), simple("x: torch.softmax(x, 1)", "torch.randn(3, 65536)")
    )


def test_tiers_are_told_apart_on_a_cpu(matmul):
    kernels = {
        Tier.FP32: lambda a, b: a @ b,
        Tier.TF32: lambda a, b: to_tf32(a) @ to_tf32(b),
        Tier.HALF: lambda a, b: to_half(a) @ to_half(b),
    }
    # tiny numbers are subnormal in float16: there, and only there, half loses more than tf32
    assert {tier: matmul.tier(kernel) for tier, kernel in kernels.items()} == {
        tier: tier for tier in kernels
    }


def test_another_order_of_summation_is_still_fp32(matmul):
    def blocked(a, b):
        halves = [a[:, i : i + 64] @ b[i : i + 64] for i in range(0, 256, 64)]
        return (halves[0] + halves[1]) + (halves[2] + halves[3])

    assert matmul.tier(blocked) is Tier.FP32


def test_brain_floats_are_of_no_tier(matmul):
    status, reason, precision = matmul.judge(lambda a, b: (a.bfloat16() @ b.bfloat16()).float())
    assert status is Status.INCORRECT
    assert precision.tier is None
    assert reason.startswith(
        "wrong: fp32 is demanded, it reaches no tier (about as precise as bfloat16): error "
    )
    assert "bfloat16" not in matmul.judge(lambda a, b: a @ b * 1.1)[1]


def test_a_coarser_tier_is_incorrect_unless_demanded(matmul):
    def kernel(a, b):
        return to_tf32(a) @ to_tf32(b)

    status, reason, precision = matmul.judge(kernel)
    assert status is Status.INCORRECT
    assert reason.startswith("tier: fp32 is demanded, it reaches tf32: error ")
    assert "out[" in reason
    assert "expected" in reason
    assert precision.tier is Tier.TF32
    assert precision.error > precision.reference_error
    assert matmul.judge(kernel, Demand(tier=Tier.TF32))[0] is Status.OK
    assert matmul.judge(kernel, PUBLISHED)[0] is Status.OK


def test_float16_overflow_where_pytorch_is_finite_is_incorrect(matmul):
    status, reason, precision = matmul.judge(
        lambda a, b: (a.half() @ b.half()).float(), Demand(tier=Tier.HALF), only="large"
    )
    assert status is Status.INCORRECT
    assert "inf" in reason or "nan" in reason
    assert reason.endswith("on large")
    assert precision is None


def test_a_stable_layer_norm_passes(norm):
    def two_passes(x, ln_weight, ln_bias):
        shifted = x - x.mean(1, keepdim=True)
        return shifted * (shifted.square().mean(1, keepdim=True) + 1e-5).rsqrt() * ln_weight + (
            ln_bias
        )

    status, reason, precision = norm.judge(two_passes)
    assert (status, reason) == (Status.OK, "")
    assert precision.tier is Tier.FP32


def test_mean_of_squares_minus_square_of_mean_fails_on_the_shifted_mean(norm):
    def one_pass(x, ln_weight, ln_bias):
        mean = x.mean(1, keepdim=True)
        variance = x.square().mean(1, keepdim=True) - mean.square()
        return (x - mean) * (variance.clamp(min=0) + 1e-5).rsqrt() * ln_weight + ln_bias

    assert norm.judge(one_pass, only="own")[0] is Status.OK
    for demand in (Demand(), Demand(tier=Tier.TF32), PUBLISHED):
        status, reason, _ = norm.judge(one_pass, demand)
        assert status is Status.INCORRECT
        assert reason.endswith("on shifted")


def test_the_identity_is_no_layer_norm(norm):
    for demand in (Demand(tier=Tier.HALF), PUBLISHED):
        assert norm.judge(lambda x, ln_weight, ln_bias: x, demand)[0] is Status.INCORRECT


def test_leaving_out_weight_and_bias_is_found(norm):
    def bare(x, ln_weight, ln_bias):
        return torch.nn.functional.layer_norm(x, (1024,))

    assert norm.judge(bare, only="own")[0] is Status.OK
    assert norm.judge(bare, PUBLISHED)[0] is Status.INCORRECT


def test_zeros_are_no_softmax_of_65536_columns(softmax):
    x = softmax.contents[0][0]["x"]
    assert torch.zeros_like(x).allclose(torch.softmax(x, 1), atol=1e-2)  # the trap
    for demand in (Demand(tier=Tier.HALF), PUBLISHED):
        status, reason, _ = softmax.judge(torch.zeros_like, demand)
        assert status is Status.INCORRECT
        assert "is 0, expected" in reason


def test_a_softmax_by_powers_of_two_is_fp32_also_on_large_numbers(tmp_path):
    softmax = Bench(tmp_path, simple("x: torch.softmax(x, 1)", "torch.randn(64, 4096)"))

    def kernel(x):
        scaled = x * 1.4426950408889634
        powers = torch.exp2(scaled - scaled.amax(1, keepdim=True))
        return powers / powers.sum(1, keepdim=True)

    assert softmax.tier(kernel) is Tier.FP32


def test_a_softmax_that_skips_columns_is_found(softmax):
    def kernel(x):
        powers = torch.exp(x - x.amax(1, keepdim=True))
        return powers / (powers[:, ::8].sum(1, keepdim=True) * 8)

    assert softmax.judge(kernel, PUBLISHED)[0] is Status.INCORRECT


def test_nan_never_passes_and_is_named(matmul):
    def kernel(a, b):
        out = a @ b
        out[3, 5] = float("nan")
        return out

    status, reason, precision = matmul.judge(kernel, PUBLISHED)
    assert status is Status.INCORRECT
    assert reason.startswith("out[3, 5] is nan, expected ")
    assert precision is None


def test_several_outputs_are_each_held_to_the_truth(tmp_path):
    bench = Bench(tmp_path, simple("x: (x * 2, (x + 1, x.sum()))", "torch.randn(4, 4)"))
    assert bench.judge(lambda x: (x * 2, x + 1, x.sum()))[0] is Status.OK
    status, reason, _ = bench.judge(lambda x: (x * 2, x + 1.01, x.sum()))
    assert status is Status.INCORRECT
    assert "out1[" in reason


def test_integers_and_bools_must_be_equal(tmp_path):
    body = simple("x, i: (i * 2, x > 0)", "torch.randn(6, 7), torch.randint(9, (4,))")
    bench = Bench(tmp_path, body)
    assert bench.judge(lambda x, i: (i * 2, x > 0))[0] is Status.OK

    def off_by_one(x, i):
        out = i * 2
        out[2] += 1
        return out, x > 0

    status, reason, _ = bench.judge(off_by_one, PUBLISHED)
    assert status is Status.INCORRECT
    assert "out0[2] is " in reason
    assert "1 of 4 elements are wrong" in reason
    junk = torch.full((6, 7), 2, dtype=torch.uint8).view(torch.bool)
    assert bench.judge(lambda x, i: (i * 2, junk))[0] is Status.INCORRECT


def test_indices_are_equal_up_to_ties(tmp_path):
    body = simple(
        "x: (torch.argmax(x, 1), torch.topk(x, 3, dim=1)[1], x.max(dim=0)[1])",
        "torch.randint(0, 4, (16, 32)).float()",
    )
    bench = Bench(tmp_path, body)

    def last_of_equals(x):
        flipped = x.flip(1)
        return (
            31 - torch.argmax(flipped, 1),
            31 - torch.topk(flipped, 3, dim=1)[1],
            15 - x.flip(0).max(dim=0)[1],
        )

    x = bench.contents[0][0]["x"]
    assert not last_of_equals(x)[0].equal(torch.argmax(x, 1))
    assert bench.judge(last_of_equals)[0] is Status.OK

    def wrong(x):
        good = last_of_equals(x)
        return (torch.argmin(x, 1), *good[1:])

    assert bench.judge(wrong)[0] is Status.INCORRECT

    def same_twice(x):
        good = last_of_equals(x)
        return good[0], good[1][:, :1].expand(-1, 3).contiguous(), good[2]

    status, reason, _ = bench.judge(same_twice)
    assert status is Status.INCORRECT
    assert "twice" in reason
    assert bench.judge(lambda x: (last_of_equals(x)[0] + 99, *last_of_equals(x)[1:]))[0] is (
        Status.INCORRECT
    )


def test_other_kinds_of_index_are_held_to_the_values_they_pick_too(tmp_path):
    body = simple(
        "x: (x.kthvalue(5, dim=1)[1], x.median(dim=0)[1], torch.cummax(x, 1)[1], "
        "torch.argmax(x, 1).to(torch.int32), "
        "F.max_pool2d(x[None, None], 2, return_indices=True)[1])",
        "torch.randint(0, 4, (16, 32)).float()",
    )
    bench = Bench(tmp_path, body)

    def others_of_equals(x):
        """Of equal values the last one, where PyTorch may take another."""
        ranks = torch.arange(32).expand(16, 32)
        fifth = x.kthvalue(5, dim=1, keepdim=True)[0]
        middle = x.median(dim=0, keepdim=True)[0]
        running = torch.cummax(x, 1)[0]
        first = torch.stack([(x == running[:, [i]]).float().argmax(1) for i in range(32)], 1)
        pairs = x.view(8, 2, 16, 2).permute(0, 2, 1, 3).reshape(8, 16, 4)
        last = 3 - pairs.flip(-1).argmax(-1)
        rows, columns = torch.meshgrid(torch.arange(8), torch.arange(16), indexing="ij")
        return (
            (ranks * (x == fifth)).amax(1),
            (torch.arange(16)[:, None] * (x == middle)).amax(0),
            first,
            (ranks * (x == x.amax(1, keepdim=True))).amax(1).int(),
            ((rows * 2 + last // 2) * 32 + columns * 2 + last % 2)[None, None],
        )

    assert bench.judge(others_of_equals)[0] is Status.OK
    for position in range(5):

        def wrong(x, position=position):
            outputs = list(others_of_equals(x))
            outputs[position] = torch.zeros_like(outputs[position])
            return tuple(outputs)

        assert bench.judge(wrong)[0] is Status.INCORRECT, position


def test_indices_of_whole_numbers_are_never_nearly_right(tmp_path):
    body = simple("x: torch.argmax(x, 1)", "torch.randint(10**8, 10**8 + 1000, (8, 64))")
    bench = Bench(tmp_path, body)
    assert bench.judge(lambda x: 63 - torch.argmax(x.flip(1), 1))[0] is Status.OK
    assert bench.judge(lambda x: x.kthvalue(63, dim=1)[1], only="own")[0] is Status.INCORRECT


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=9), st.integers(-1, 9))
def test_an_index_is_right_where_its_value_is_the_largest(values, index):
    row = torch.tensor([values], dtype=torch.float64)
    ranking = Ranking(row, 1, 1, row.argmax(1))
    picked = ranking.picked(torch.tensor([index]))
    if not 0 <= index < len(values):
        assert picked is None
    else:
        assert (picked.item() == max(values)) == (values[index] == max(values))


def test_a_number_halfway_between_two_may_be_rounded_to_either(tmp_path):
    body = simple("x: torch.round(x * 0.7).to(torch.int32)", "torch.arange(0, 4000) / 1.4")
    bench = Bench(tmp_path, body)

    def by_parts(x):
        return torch.round(x * 0.35 + x * 0.35).int()

    def by_division(x):
        return torch.round(x / (1 / 0.7)).int()

    x = bench.contents[0][0]["x"]
    right = torch.round(x.double() * 0.7).int()
    assert not by_division(x).equal(right) or not by_parts(x).equal(right)
    assert bench.judge(by_parts, only="own")[0] is Status.OK
    assert bench.judge(by_division, only="own")[0] is Status.OK
    assert bench.judge(lambda x: torch.floor(x * 0.7 + 0.51).int())[0] is Status.INCORRECT
    assert bench.judge(lambda x: right + 1, only="own")[0] is Status.INCORRECT


def test_where_the_reference_overflows_infinity_is_demanded_and_nothing_else_excused(tmp_path):
    body = simple("x: torch.exp(x)", "torch.linspace(0, 100, 64)")
    bench = Bench(tmp_path, body)
    assert bench.judge(torch.exp)[0] is Status.OK
    for fake in (
        lambda x: torch.exp(x).clamp(max=3e38),
        lambda x: torch.where(x > 88.8, torch.inf, 0.0),
    ):
        assert bench.judge(fake, Demand(tier=Tier.HALF), only="own")[0] is Status.INCORRECT


def test_infinities_of_the_task_itself_must_match(tmp_path):
    body = simple(
        "x: x.masked_fill(torch.ones(8, 8).triu(1).bool(), float('-inf'))", "torch.randn(8, 8)"
    )
    bench = Bench(tmp_path, body)

    def kernel(x, fill=float("-inf")):
        return x.masked_fill(torch.ones(8, 8).triu(1).bool(), fill)

    assert bench.judge(kernel)[0] is Status.OK
    assert bench.judge(lambda x: kernel(x, -1e30))[0] is Status.INCORRECT


def test_half_tasks_are_held_to_their_own_type(tmp_path):
    body = simple(
        "a, b: a @ b", ", ".join(["torch.randn(64, 512).half()", "torch.randn(512, 32).half()"])
    )
    bench = Bench(tmp_path, body)
    assert bench.tier(lambda a, b: (a.float() @ b.float()).half()) is Tier.FP32

    def sums_in_half(a, b):
        total = torch.zeros(64, 32, dtype=torch.float16)
        for k in range(0, 512, 4):
            total += (a[:, k : k + 4].float() @ b[k : k + 4].float()).half()
        return total

    assert bench.tier(sums_in_half) is None


def test_half_attention_with_float32_inside_passes_also_where_two_scores_nearly_tie(tmp_path):
    shape = "torch.randn(4, 2, 256, 32).half()"
    body = simple("q, k, v: F.scaled_dot_product_attention(q, k, v)", ", ".join([shape] * 3))
    bench = Bench(tmp_path, body)

    def by_powers_of_two(q, k, v):
        scores = q.float() @ k.float().mT * (32**-0.5 * 1.4426950408889634)
        weights = torch.exp2(scores - scores.amax(-1, keepdim=True))
        return (weights @ v.float() / weights.sum(-1, keepdim=True)).half()

    assert bench.tier(by_powers_of_two) is Tier.FP32


def test_the_quick_check_sees_what_the_full_one_sees(matmul, softmax):
    for bench, kernel in ((matmul, torch.matmul), (softmax, lambda x: torch.softmax(x, 1))):
        for leaves, truth in bench.contents:
            for demand in (Demand(), PUBLISHED):
                right = kernel(**leaves) if bench is softmax else kernel(*leaves.values())
                expected = quick(truth, demand)
                assert quick_check([right], expected) == ""
                assert "expected" in quick_check([torch.zeros_like(right)], expected)
                right[-1, -1] = float("nan")
                assert "[47, 39] is nan" in quick_check([right], expected) or bench is softmax
                assert quick_check([right], expected)


def test_reference_errors_are_pytorchs_own(matmul):
    precision = matmul.judge(lambda a, b: a @ b)[2]
    assert precision.error == precision.reference_error
    assert 1e-8 < precision.reference_error < 1e-4
    assert precision.worst_on in DISTRIBUTIONS
