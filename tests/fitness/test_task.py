"""Which tensors a task file gives the kernel, in which order, and what is said of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cuda_sandbox.signature import Role
from fitness.description import from_json, to_json
from fitness.errors import TaskError
from fitness.task import describe
from tests.fitness.task_files import described, loaded, simple, write

TASKS = Path(__file__).parents[2] / "configs" / "tasks"


def names(description):
    return [spec.name for spec in description.signature.arguments]


def test_order_is_inputs_parameters_buffers_states_outputs(tmp_path):
    found = described(
        tmp_path,
        """
        class Model(nn.Module):
            def __init__(self, features, momentum):
                super().__init__()
                self.hidden = torch.randn(4, features)
                self.register_buffer("table", torch.ones(features))
                self.lin = nn.Linear(features, features)

            def forward(self, x, y):
                self.hidden = torch.tanh(self.lin(x) + y + self.hidden * self.table)
                return self.hidden, x

        def get_inputs():
            return [torch.randn(4, 8), torch.randn(4, 8)]

        def get_init_inputs():
            return [8, 0.5]
        """,
    )
    assert [(spec.name, spec.role) for spec in found.signature.arguments] == [
        ("x", Role.INPUT),
        ("y", Role.INPUT),
        ("lin_weight", Role.PARAMETER),
        ("lin_bias", Role.PARAMETER),
        ("table", Role.BUFFER),
        ("hidden", Role.STATE),
    ]
    assert [spec.name for spec in found.signature.outputs] == ["out0", "out1"]
    assert "Model(features=8, momentum=0.5)" in found.signature.notes
    assert any("restored before each call" in remark for remark in found.remarks)


def test_a_single_output_is_called_out(tmp_path):
    found = described(tmp_path, simple("x: x + 1", "torch.randn(3)"))
    assert [spec.name for spec in found.signature.outputs] == ["out"]


def test_nested_lists_none_numbers_and_strides(tmp_path):
    body = simple(
        "xs, mask, scale, y: xs[0] + xs[1][0] * scale + y",
        "[torch.randn(2, 3), [torch.randn(2, 3)]], None, 0.5, torch.randn(3, 2).t()",
    )
    found = described(tmp_path, body)
    assert names(found) == ["xs_0", "xs_1_0", "y"]
    assert found.signature.defines == (("SCALE", "0.5f"),)
    assert any("mask" in remark and "None" in remark for remark in found.remarks)
    assert any("y" in remark and "contiguous" in remark for remark in found.remarks)
    task = loaded(tmp_path, body)
    leaves = task.own(1)
    assert all(tensor.is_contiguous() for tensor in leaves.values())
    (out,) = task.run(leaves)
    assert out.equal(leaves["xs_0"] + leaves["xs_1_0"] * 0.5 + leaves["y"])


def test_types_and_scalars_keep_their_spelling(tmp_path):
    found = described(
        tmp_path,
        simple(
            "h, i, m, n, flag, big: (h * i * m, )",
            "torch.randn(4).half(), torch.randint(9, (4,)), torch.rand(4) > 0.5, 3, True, 2**40",
        ),
    )
    assert [spec.dtype for spec in found.signature.arguments] == ["float16", "int64", "bool"]
    assert found.signature.defines == (
        ("N", "3"),
        ("FLAG", "true"),
        ("BIG", "1099511627776LL"),
    )


def test_keywords_and_collisions_get_an_underscore(tmp_path):
    found = described(
        tmp_path,
        simple(
            "register, lin_weight, out: self.lin(register) + lin_weight + out",
            "torch.randn(2, 3), torch.randn(3), torch.randn(3)",
            init="self.lin = nn.Linear(3, 3)",
        ),
    )
    assert names(found) == ["register_", "lin_weight", "out", "lin_weight_", "lin_bias"]
    assert found.signature.outputs[0].name == "out_"


def test_keyword_arguments_for_the_constructor_as_in_kernelbook(tmp_path):
    found = described(
        tmp_path,
        """
        class Model(nn.Module):
            def __init__(self, width, *, dim):
                super().__init__()
                self.dim = dim
                self.weight = nn.Parameter(torch.ones(width))

            def forward(self, x):
                return torch.softmax(x * self.weight, self.dim)

        def get_inputs():
            return [torch.rand([2, 5])]

        def get_init_inputs():
            return [[5], {"dim": 1}]
        """,
    )
    assert "Model(width=5, dim=1)" in found.signature.notes
    assert "self: Model(dim=1)" in found.signature.notes


def test_module_settings_stand_in_the_notes(tmp_path):
    found = described(
        tmp_path,
        simple(
            "x: self.net(x)",
            "torch.randn(2, 4, 8, 8)",
            init="self.net = nn.Sequential(nn.Conv2d(4, 8, 3, stride=2, groups=2), "
            "nn.GroupNorm(2, 8, eps=1e-3))",
        ),
    )
    notes = "\n".join(found.signature.notes)
    assert "net.0: Conv2d(" in notes
    assert "stride=(2, 2)" in notes
    assert "groups=2" in notes
    assert "eps=0.001" in notes
    assert names(found)[1] == "net_0_weight"


def test_graph_keeps_semantic_operators_and_the_signatures_names(tmp_path):
    found = described(
        tmp_path,
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(3, 4, 3)
                self.ln = nn.LayerNorm(4)
                self.lin = nn.Linear(4, 4)
                self.relu = nn.ReLU(inplace=True)
                self.drop = nn.Dropout(0.0)

            def forward(self, x):
                y = self.relu(self.conv(x)).mean((2, 3))
                y = self.drop(self.lin(self.ln(y)))
                return torch.softmax(y @ y.t(), -1)

        def get_inputs():
            return [torch.randn(2, 3, 8, 8)]
        """,
    )
    ops = [node.op for node in found.graph]
    assert ops[:7] == ["input"] + ["parameter"] * 6
    assert [op for op in ops if op.startswith("aten")] == [
        "aten.conv2d.default",
        "aten.relu.default",
        "aten.mean.dim",
        "aten.layer_norm.default",
        "aten.linear.default",
        "aten.t.default",
        "aten.matmul.default",
        "aten.softmax.int",
    ]
    conv = next(node for node in found.graph if node.op == "aten.conv2d.default")
    assert conv.args[:3] == ({"node": "x"}, {"node": "conv_weight"}, {"node": "conv_bias"})
    assert (conv.shape, conv.dtype) == ((2, 4, 6, 6), "float32")
    assert found.graph[-1].args == ({"node": found.graph[-2].name},)
    assert any("p = 0" in remark for remark in found.remarks)


def test_writing_to_a_view_stays_in_the_graph(tmp_path):
    found = described(
        tmp_path,
        """
        class Model(nn.Module):
            def forward(self, x):
                y = x.clone()
                y[:, 0] = 0
                return y

        def get_inputs():
            return [torch.randn(3, 4)]
        """,
    )
    assert any(node.op in ("aten.fill_.Tensor", "aten.copy_.default") for node in found.graph)


def test_flops_count_multiply_and_add_apart(tmp_path):
    found = described(tmp_path, simple("a, b: a @ b", "torch.randn(3, 5), torch.randn(5, 7)"))
    assert found.flops == 2 * 3 * 5 * 7


def test_description_survives_json(tmp_path):
    found = described(
        tmp_path,
        simple(
            "x, n: torch.where(x > 0, x, float('-inf')).view(2, 6)[:, :n].sum()",
            "torch.randn(3, 4), 2",
        ),
    )
    assert from_json(json.loads(json.dumps(to_json(found)))) == found


def test_published_tasks_have_the_published_shapes_and_cost_no_memory():
    shapes = {
        "matmul_fp32": [(4096, 4096), (4096, 4096)],
        "matmul_fp16": [(4096, 4096), (4096, 4096)],
        "conv2d": [(100, 3, 224, 224), (96, 3, 11, 11), (96,)],
        "conv_block": [(100, 3, 224, 224), (96, 3, 11, 11), (96,)],
        "softmax": [(4096, 65536)],
        "layer_norm": [(16, 64, 256, 256), (64, 256, 256), (64, 256, 256)],
        "attention_fp16": [(16, 16, 2048, 64)] * 3,
    }
    script = """
import json, resource, sys
from pathlib import Path
from fitness.describe import describe_here
found = {}
describe_here(Path(sys.argv[1]) / "matmul_tiny.py")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for name in sys.argv[2:]:
    signature = describe_here(Path(sys.argv[1]) / f"{name}.py").signature
    found[name] = [spec.shape for spec in signature.arguments]
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps([found, grown]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(TASKS), *shapes],
        cwd=TASKS.parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    found, grown_kb = json.loads(done.stdout)
    assert {name: [tuple(s) for s in sizes] for name, sizes in found.items()} == shapes
    assert grown_kb < 100_000  # the smallest of them holds 32 MB, all together 2.5 GB


@pytest.mark.parametrize("path", sorted(TASKS.glob("*.py")), ids=lambda path: path.stem)
def test_every_task_says_where_its_shapes_come_from(path):
    heading = path.read_text().partition('"""')[2].partition('"""')[0]
    assert "Shapes:" in heading
    assert "published" in heading or "our own" in heading or "ours" in heading


def test_describing_needs_no_torch_here_and_is_cached(tmp_path, monkeypatch):
    path = write(tmp_path, simple("x: x + 1", "torch.randn(3, 5)"))
    script = """
import sys, time
from fitness.errors import TaskError
from fitness.task import describe
first = describe(sys.argv[1])
started = time.perf_counter()
second = describe(sys.argv[1])
assert first == second
assert time.perf_counter() - started < 0.5, "not cached"
assert "torch" not in sys.modules
print([spec.shape for spec in second.signature.arguments])
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        cwd=TASKS.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[(3, 5)]\n"

    def asked(*_args):
        raise TaskError("asked the child")

    monkeypatch.setattr("fitness.task._ask_child", asked)
    assert describe(path).signature.arguments[0].shape == (3, 5)
    write(tmp_path, simple("x: x + 1", "torch.randn(3, 6)"))
    with pytest.raises(TaskError, match="asked the child"):
        describe(path)


def test_files_that_read_values_are_run_for_real_on_small_memory(tmp_path):
    constructor = simple(
        "x: x * self.scale",
        "torch.randn(1 << 40)",  # 4 TB: only the constructor may be real
        init="self.scale = nn.Parameter(torch.ones(1)); assert self.scale.item() == 1.0",
    )
    forward = """
class Model(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum().item() > -1e9 else x

def get_inputs():
    return [torch.randn(SIZE)]
"""
    files = [
        write(tmp_path, constructor, "constructor"),
        write(tmp_path, forward.replace("SIZE", "16"), "forward"),
        write(tmp_path, forward.replace("SIZE", "1 << 34"), "large"),
    ]
    script = """
import sys
from pathlib import Path
from fitness.describe import describe_here
from fitness.errors import TaskError
for path in sys.argv[1:]:
    try:
        print(describe_here(Path(path)).signature.outputs[0].shape)
    except TaskError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, files)],
        cwd=TASKS.parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[:2] == [f"({1 << 40},)", "(16,)"]
    assert "large.py:" in lines[2]
    assert "4 GiB" in lines[2]
