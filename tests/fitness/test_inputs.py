"""Inputs no kernel can know: several distributions, inside the operator's domain."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_sandbox.signature import Role, TensorSpec
from fitness.domains import Domain, Kind
from fitness.inputs import DISTRIBUTIONS, REINFORCEMENTS, Inputs, _leaf, _Order, poison
from fitness.truth import find_content
from tests.fitness.task_files import loaded, simple

NORM = simple("x: self.ln(x)", "torch.randn(16, 32)", init="self.ln = nn.LayerNorm(32, eps=1e-5)")


@pytest.fixture
def norm(tmp_path):
    return Inputs(loaded(tmp_path, NORM), 1234)


def test_there_are_at_least_six_and_all_serve_a_plain_task(norm):
    assert len(DISTRIBUTIONS) >= 6
    assert all(find_content(norm, name) for name in DISTRIBUTIONS)


def test_draws_depend_on_secret_distribution_and_index_only(norm, tmp_path):
    again = Inputs(norm.task, 1234)
    for name in DISTRIBUTIONS:
        x = norm.draw(name, 3)["x"]
        assert x.equal(again.draw(name, 3)["x"])
        assert not x.equal(norm.draw(name, 4)["x"])
        assert not x.equal(Inputs(norm.task, 1235).draw(name, 3)["x"])


def test_each_distribution_is_what_its_name_says(norm):
    x = {name: norm.draw(name)["x"] for name in DISTRIBUTIONS}
    assert x["normal"].min() < -1
    assert abs(x["shifted"].mean() - 1000) < 0.1
    assert x["shifted"].std() < 0.2
    assert x["large"].abs().max() > 1e4
    assert x["tiny"].abs().max() < 1e-5
    assert (x["rows"] == x["rows"][:, :1]).all()
    assert x["rows"][0, 0] != x["rows"][1, 0]
    assert x["outliers"].abs().max() > 20 * x["outliers"].abs().median()


def test_parameters_are_drawn_so_that_no_multiply_can_be_left_out(norm):
    own, drawn = norm.draw("own"), norm.draw("normal")
    assert own["ln_weight"].equal(torch.ones(32))
    assert 0.2 < drawn["ln_weight"].std() < 0.8
    assert 0.2 < drawn["ln_bias"].std() < 0.8


def test_running_variances_stay_positive(tmp_path):
    init = "self.bn = nn.BatchNorm1d(64); self.bn.eval()"
    inputs = Inputs(loaded(tmp_path, simple("x: self.bn(x)", "torch.randn(8, 64)", init)), 1)
    leaves = inputs.draw("large")
    assert leaves["bn_running_var"].min() > 0
    assert leaves["bn_running_mean"].std() > 0.2
    assert leaves["bn_num_batches_tracked"] == 0


def test_integers_stay_in_range_and_bools_are_drawn(tmp_path):
    task = loaded(
        tmp_path,
        simple(
            "i, m, x: self.emb(i) * m[:, None] + x",
            "torch.randint(2, 7, (500,)), torch.rand(500) < 0.3, torch.randn(4)",
            init="self.emb = nn.Embedding(7, 4)",
        ),
    )
    leaves = Inputs(task, 5).draw("normal")
    assert (int(leaves["i"].min()), int(leaves["i"].max())) == (2, 6)
    assert 0.1 < leaves["m"].float().mean() < 0.5


def test_integers_and_bools_have_extremes_and_constant_rows_too(tmp_path):
    body = simple(
        "i, m: torch.where(m, i, -i)", "torch.randint(0, 100, (20, 50)), torch.rand(20, 50) < 0.5"
    )
    inputs = Inputs(loaded(tmp_path, body), 5)
    drawn = {name: inputs.draw(name) for name in DISTRIBUTIONS}
    assert drawn["tiny"]["i"].max() < 30
    assert drawn["large"]["i"].min() > 70
    assert (drawn["rows"]["i"] == drawn["rows"]["i"][:, :1]).all()
    assert drawn["tiny"]["m"].float().mean() < 0.2 < 0.8 < drawn["large"]["m"].float().mean()
    again = inputs.draw("tiny", rung=1)  # milder: as the task has them
    assert again["i"].max() > 90
    assert 0.3 < again["m"].float().mean() < 0.7


@settings(deadline=None, max_examples=40)
@given(
    st.integers(-5, 50),
    st.integers(0, 40),
    st.sampled_from([(7,), (3, 5), (2, 3, 4), ()]),
    st.sampled_from([*DISTRIBUTIONS[1:], *REINFORCEMENTS[1:], ""]),
)
def test_integers_never_leave_their_range(low, width, shape, distribution):
    spec = TensorSpec("i", "int64", shape, Role.INPUT)
    domain = Domain(Kind.INTEGER, low=low, high=low + width)
    rng = torch.Generator().manual_seed(1)
    drawn = _leaf(_Order(spec, domain, torch.rand, rng, distribution), positive=False)
    assert tuple(drawn.shape) == shape
    assert low <= int(drawn.min()) <= int(drawn.max()) <= low + width


def test_further_distributions_go_where_the_others_do_not(norm, tmp_path):
    assert norm.draw("huge")["x"].abs().max() > 1e7
    spread = norm.draw("spread")["x"].abs()
    assert spread.max() / spread.min() > 1e5
    redrawn = norm.draw("redrawn")
    assert redrawn["x"].abs().max() < 6
    assert redrawn["ln_weight"].std() > 0.2
    labels = simple("x: x * 2", "torch.randint(0, 2, (200,)).float()")
    inputs = Inputs(loaded(tmp_path, labels), 1)
    assert set(inputs.draw("large")["x"].tolist()) == {0.0, 1.0}
    assert len(set(inputs.draw("free")["x"].tolist())) > 100


def test_orders_permutations_categories_and_structure_are_kept(tmp_path):
    task = loaded(
        tmp_path,
        simple(
            "perm, bags, labels, low, sym, prob, mask: "
            "low @ sym + prob + labels[:16] + perm[:16] + bags[:16] * mask",
            "torch.randperm(100), torch.randint(50, (100,)).sort().values, "
            "torch.randint(0, 2, (200,)).float() * 2 - 1, torch.tril(torch.randn(16, 16)), "
            "(lambda a: a + a.t())(torch.randn(16, 16)), torch.softmax(torch.randn(16, 16), -1), "
            "torch.ones(16, 16, dtype=torch.bool).tril()",
        ),
    )
    leaves = Inputs(task, 5).draw("normal")
    assert leaves["perm"].sort().values.equal(torch.arange(100))
    assert (leaves["bags"].diff() >= 0).all()
    assert set(leaves["labels"].tolist()) == {-1.0, 1.0}
    assert leaves["low"].triu(1).abs().max() == 0
    assert leaves["low"].abs().max() > 0
    assert leaves["sym"].equal(leaves["sym"].t())
    assert leaves["prob"].sum(-1).allclose(torch.ones(16))
    assert leaves["mask"].equal(torch.ones(16, 16, dtype=torch.bool).tril())


def test_probabilities_of_a_binary_loss_stay_between_0_and_1(tmp_path):
    task = loaded(
        tmp_path, simple("p, t: F.binary_cross_entropy(p, t)", "torch.rand(64), torch.rand(64)")
    )
    inputs = Inputs(task, 5)
    for name in DISTRIBUTIONS:
        leaves = inputs.draw(name)
        assert all(0 <= leaves[leaf].min() <= leaves[leaf].max() <= 1 for leaf in "pt")
        assert find_content(inputs, name)  # also where operands are nudged and rounded


def test_a_distribution_that_the_reference_itself_refuses_is_left_out(tmp_path):
    body = """
class Model(nn.Module):
    def forward(self, x):
        if x.requires_grad or x.abs().max() > 1:
            raise ValueError("angles only")
        return torch.asin(x)

def get_inputs():
    return [torch.rand(16)]
"""
    inputs = Inputs(loaded(tmp_path, body), 5)
    assert find_content(inputs, "own")
    assert find_content(inputs, "large") is None


def test_where_signed_numbers_give_nan_positive_ones_are_used(tmp_path):
    task = loaded(tmp_path, simple("x: torch.log(x)", "torch.rand(64) + 0.1"))
    leaves, truth = find_content(Inputs(task, 5), "normal")
    assert leaves["x"].min() > 0
    assert truth.outputs[0].size.finite


def test_milder_forms_where_the_reference_overflows_and_none_at_all(tmp_path):
    task = loaded(tmp_path, simple("x: torch.exp(x)", "torch.randn(64)"))
    leaves, _ = find_content(Inputs(task, 5), "shifted")
    assert leaves["x"].mean() < 20
    task = loaded(tmp_path, simple("x: torch.exp(x * x * 1e9)", "torch.zeros(64)"))
    assert find_content(Inputs(task, 5), "normal") is None


def test_half_precision_tasks_draw_half(tmp_path):
    task = loaded(tmp_path, simple("a, b: a @ b", ", ".join(["torch.randn(32, 32).half()"] * 2)))
    inputs = Inputs(task, 5)
    for name in DISTRIBUTIONS:
        found = find_content(inputs, name)
        assert found is None or found[0]["a"].dtype is torch.float16


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_poison_is_nan_for_floats(dtype):
    tensor = torch.zeros(5, dtype=getattr(torch, dtype))
    poison(tensor)
    assert tensor.isnan().all()


def test_poison_is_a_sentinel_for_other_types_and_nan_to_whoever_reads_a_workspace():
    count, flag = torch.zeros((), dtype=torch.int64), torch.zeros(3, dtype=torch.bool)
    workspace = torch.zeros(8, dtype=torch.uint8)
    for tensor in (count, flag, workspace):
        poison(tensor)
    assert count == -0x5A5A5A5A5A5A5A5B
    assert flag.view(torch.uint8).tolist() == [0xA5] * 3
    assert workspace.view(torch.float32).isnan().all()
