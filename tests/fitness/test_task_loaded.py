"""The reference as the judge runs it: nothing outlives a call, float64 where it can be."""

from __future__ import annotations

import pytest
import torch

from fitness.errors import TaskError
from tests.fitness.task_files import described, loaded, simple

RNN = """
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cell = nn.Linear(2 * width, width)
        self.hidden = torch.randn(3, width)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.hidden = torch.tanh(self.cell(torch.cat([x, self.hidden], dim=1)))
        return self.hidden

def get_inputs():
    return [torch.randn(3, 4)]

def get_init_inputs():
    return [4]
"""


def test_hidden_state_is_a_leaf_and_restored(tmp_path):
    task = loaded(tmp_path, RNN)
    leaves = task.own(1)
    first = task.run(leaves)[0]
    assert task.run(leaves)[0].equal(first)
    assert task.model.calls == 0
    other = dict(leaves, hidden=leaves["hidden"] + 1)
    assert not task.run(other)[0].equal(first)
    joined = torch.cat([leaves["x"], leaves["hidden"]], dim=1)
    expected = torch.tanh(joined @ leaves["cell_weight"].t() + leaves["cell_bias"])
    assert first.allclose(expected, atol=1e-6)


def test_batch_norm_in_train_mode_leaves_its_buffers_alone(tmp_path):
    body = simple("x: self.bn(x)", "torch.randn(8, 4) * 3 + 5", init="self.bn = nn.BatchNorm1d(4)")
    assert any("updates buffers" in remark for remark in described(tmp_path, body).remarks)
    task = loaded(tmp_path, body)
    leaves = task.own(1)
    before = {name: tensor.clone() for name, tensor in leaves.items()}
    (out,) = task.run(leaves)
    assert out.mean(0).abs().max() < 1e-5  # batch statistics: the file left it in train mode
    assert all(leaves[name].equal(tensor) for name, tensor in before.items())
    assert task.model.bn.running_mean.equal(torch.zeros(4))
    assert set(before) == {"x", "bn_weight", "bn_bias"} | {
        "bn_running_mean",
        "bn_running_var",
        "bn_num_batches_tracked",
    }


def test_inputs_that_forward_overwrites_are_protected(tmp_path):
    task = loaded(tmp_path, simple("x: x.relu_()", "torch.randn(64)"))
    leaves = task.own(1)
    before = leaves["x"].clone()
    for _ in range(3):
        assert task.run(leaves)[0].equal(before.relu())
        assert leaves["x"].equal(before)


def test_float64_reaches_explicit_casts_and_new_tensors(tmp_path):
    task = loaded(
        tmp_path,
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.LSTM(4, 4, batch_first=True)

            def forward(self, x):
                start = torch.zeros(1, x.shape[0], 4, device=x.device)
                y, _ = self.rnn(x.float(), (start, start))
                return torch.softmax(y, -1, dtype=torch.float32)

        def get_inputs():
            return [torch.randn(2, 3, 4)]
        """,
    )
    leaves = task.own(1)
    narrow, wide = task.run(leaves)[0], task.run64(leaves)[0]
    assert wide.dtype is torch.float64
    assert 0 < (narrow - wide).abs().max() < 1e-6
    assert torch.get_default_dtype() is torch.float32


def test_recurrent_layers_have_the_same_shapes_described_as_run(tmp_path):
    task = loaded(
        tmp_path,
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.gru = nn.GRU(4, 5, 2, bidirectional=True)
                self.lstm = nn.LSTM(10, 6, 3, proj_size=2, bias=False)
                self.rnn = nn.RNN(2, 7, batch_first=True)

            def forward(self, x):
                x, first = self.gru(x)
                x, (second, third) = self.lstm(x)
                x, fourth = self.rnn(x)
                return x, first, second, third, fourth

        def get_inputs():
            return [torch.randn(2000, 3, 4)]
        """,
    )
    ops = [node.op for node in task.description.graph if node.op.startswith("aten")]
    assert [op for op in ops if "zeros" not in op] == [
        "aten.gru.input",
        "aten.lstm.input",
        "aten.rnn_tanh.input",
    ]
    found = [tuple(output.shape) for output in task.run(task.own(1))]
    assert [spec.shape for spec in task.signature.outputs] == found
    # 12 weight matrices of the GRU's two layers and directions, and so on, 2 x 3 x 2000 each
    sizes = sum(leaf.tensor.numel() for leaf in task.reference.leaves if leaf.tensor.ndim == 2)
    assert task.description.flops > 0.8 * 2 * 3 * 2000 * sizes


def test_a_file_that_names_a_cuda_device_works_where_there_is_none(tmp_path):
    task = loaded(
        tmp_path,
        """
        SHIFT = torch.ones(4, device="cuda")

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(4).cuda() * 3)

            def forward(self, x):
                return x * self.scale + torch.zeros(4, device=torch.device("cuda:0")) + SHIFT

        def get_inputs():
            return [torch.randn(2, 4, device="cuda", dtype=torch.float16).to("cuda")]
        """,
    )
    (out,) = task.run(task.own(1))
    assert out.device.type == "cpu"
    with task.prepared() as call:
        assert call().shape == (2, 4)


def test_lstm_weights_are_the_leaves_given(tmp_path):
    task = loaded(
        tmp_path,
        simple("x: self.rnn(x)[0]", "torch.randn(2, 3, 4)", init="self.rnn = nn.LSTM(4, 4)"),
    )
    leaves = task.own(1)
    changed = dict(leaves, rnn_weight_ih_l0=leaves["rnn_weight_ih_l0"] * 0)
    assert not task.run(changed)[0].equal(task.run(leaves)[0])


def test_tied_weights_are_one_leaf(tmp_path):
    body = simple(
        "x: self.b(self.a(x))",
        "torch.randn(2, 4)",
        init="self.a = nn.Linear(4, 4, bias=False); self.b = nn.Linear(4, 4, bias=False); "
        "self.b.weight = self.a.weight",
    )
    task = loaded(tmp_path, body)
    assert [spec.name for spec in task.signature.arguments] == ["x", "a_weight"]
    leaves = dict(task.own(1), a_weight=torch.eye(4) * 2)
    assert task.run(leaves)[0].equal(leaves["x"] * 4)


def test_prepared_calls_the_model_itself_and_cleans_up(tmp_path):
    task = loaded(tmp_path, RNN)
    with task.prepared() as call:
        first, second = call().clone(), call().clone()
        assert not first.equal(second)  # within, the state runs on, as it does in training code
    assert task.model.calls == 0
    assert task.run(task.own(42))[0].equal(first)
    with task.prepared(lambda model: lambda x: model(x) * 0) as call:
        assert call().equal(torch.zeros(3, 4))


def test_own_inputs_follow_the_seed_and_spare_the_global_generator(tmp_path):
    task = loaded(tmp_path, simple("x: x + 1", "torch.randn(16)"))
    torch.manual_seed(7)
    expected = torch.randn(1)
    torch.manual_seed(7)
    first, again, other = (task.own(seed)["x"] for seed in (1, 1, 2))
    assert torch.randn(1).equal(expected)
    assert first.equal(again)
    assert not first.equal(other)


def test_a_file_whose_shapes_depend_on_chance_is_refused_when_loaded(tmp_path):
    body = simple("x: x", "torch.randn(3)", init="self.w = nn.Parameter(torch.ones(WIDTH))")
    task_file = "WIDTH = 3\n" + body
    task = loaded(tmp_path, task_file)
    path = task.reference.file.path
    path.write_text(path.read_text().replace("WIDTH = 3", "WIDTH = 4"))
    with pytest.raises(TaskError, match="differ from run to run"):
        type(task).load(path, task.description, "cpu", 42)
