"""`kernelevo eval` as a caller sees it: exit codes, the one JSON object, messages."""

import contextlib
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from evo.cli.main import main

TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2

def get_inputs():
    return [torch.randn(64, 100)]

def get_init_inputs():
    return []
"""
RIGHT = """
extern "C" int launch(const float* x, float* out, void*) {
    for (int i = 0; i < X_SIZE; ++i) out[i] = x[i] > 0 ? 2 * x[i] : 0;
    return 0;
}
"""
KEYS = {
    "status",
    "correct",
    "reason",
    "precision",
    "time_ms",
    "baselines",
    "speedup",
    "roofline_share",
    "device",
    "seconds",
}


@pytest.fixture
def task(tmp_path):
    path = tmp_path / "task.py"
    path.write_text(TASK)
    return path


def kernel(tmp_path, source, name="kernel.cpp"):
    path = tmp_path / name
    path.write_text(source)
    return path


def evaluate(*arguments):
    return CliRunner().invoke(main, ["eval", *map(str, arguments)])


def test_an_accepted_kernel_exits_with_0_and_prints_one_object(tmp_path, task):
    result = evaluate(task, kernel(tmp_path, RIGHT), "--json")

    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert found.keys() >= KEYS
    assert found["status"] == "ok"
    assert found["correct"] is True
    assert found["precision"]["tier"] == "fp32"
    assert found["time_ms"]["low"] <= found["time_ms"]["median"] <= found["time_ms"]["high"]
    assert found["speedup"]["eager"] > 0
    assert found["speedup"]["compile"] is None
    assert found["speedup"]["graph"] is None
    assert found["baselines"]["eager"]["median"] > 0


def test_a_wrong_kernel_exits_with_1_and_absent_figures_are_null(tmp_path, task):
    result = evaluate(task, kernel(tmp_path, RIGHT.replace(": 0", ": 1")), "--json")

    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert found["status"] == "incorrect"
    assert found["time_ms"] == {"median": None, "low": None, "high": None}
    assert found["roofline_share"] is None


MODULE = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x).mul_(2)
"""


def test_a_python_module_is_judged_like_any_kernel_and_what_ran_is_listed(tmp_path, task):
    result = evaluate(task, kernel(tmp_path, MODULE, "kernel.py"), "--device", "cpu", "--json")

    found = json.loads(result.stdout)
    assert result.exit_code == 0, found
    assert found.keys() >= KEYS
    assert found["execution"]["mode"] == "calls"
    assert found["execution"]["foreign"] == ["aten::relu", "aten::mul_.Tensor"]


def test_a_module_that_lets_pytorch_compute_is_turned_away_on_demand(tmp_path, task):
    module = kernel(tmp_path, MODULE, "kernel.py")

    result = evaluate(task, module, "--device", "cpu", "--own-kernels")

    assert result.exit_code == 1
    assert result.stdout.startswith("rejected: own kernels are demanded")
    assert "aten::relu (PyTorch's or a library's)" in result.stdout


def test_a_person_reads_the_verdict_in_lines(tmp_path, task):
    result = evaluate(task, kernel(tmp_path, RIGHT))

    assert result.exit_code == 0
    assert result.stdout.startswith("ok\n")
    assert "over eager" in result.stdout


def test_a_broken_task_is_a_rejected_kernel(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("import nowhere_to_be_found\n")

    result = evaluate(broken, kernel(tmp_path, RIGHT), "--json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["status"] == "rejected"
    assert "nowhere_to_be_found" in json.loads(result.stdout)["reason"]


@pytest.mark.parametrize(
    ("name", "options", "word"),
    [
        ("kernel.txt", [], ".cpp"),
        ("kernel.cpp", ["--device", "cuda"], "cpu"),
        ("kernel.cpp", ["--device", "tpu"], "cpu"),
        ("kernel.cpp", ["--tier", "fp32", "--tolerance", "0.01"], "not both"),
        ("kernel.cpp", ["--tolerance", "7"], "between 0 and 1"),
        ("kernel.cpp", ["--arch", "no such chip"], "architecture"),
        ("kernel.cpp", ["--device", "cpu:3"], "cpu"),
        ("kernel.py", ["--device", "tpu"], "cuda or cpu"),
        ("kernel.py", ["--arch", "sm_89"], "on the machine that it runs on"),
    ],
)
def test_a_wrong_call_exits_with_2_and_says_so_in_json(tmp_path, task, name, options, word):
    result = evaluate(task, kernel(tmp_path, RIGHT, name), *options, "--json")

    found = json.loads(result.stdout)
    assert result.exit_code == 2
    assert found["status"] is None
    assert word in found["error"]


def test_a_missing_file_is_a_wrong_call(tmp_path, task):
    assert evaluate(tmp_path / "none.py", kernel(tmp_path, RIGHT)).exit_code == 2
    assert evaluate(task, tmp_path / "none.cpp").exit_code == 2


def test_a_kernel_can_be_compiled_for_a_chip_that_is_not_here(tmp_path):
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    task = Path(__file__).parents[2] / "configs" / "tasks" / "softmax.py"
    source = """
    __global__ void k(const float* x, float* out) { out[threadIdx.x] = x[threadIdx.x]; }
    extern "C" int launch(const float* x, float* out, void*, cudaStream_t stream) {
        k<<<1, 32, 0, stream>>>(x, out);
        return cudaGetLastError();
    }"""

    result = evaluate(task, kernel(tmp_path, source, "k.cu"), "--arch", "sm_89", "--json")

    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert "compiled for sm_89; not run" in found["reason"]
    assert found["time_ms"]["median"] is None
    assert found["resources"][0]["registers"] > 0


def test_a_fault_of_ours_is_not_blamed_on_the_call(task, tmp_path, monkeypatch):
    class Broken:
        signature = arch = None

        def __init__(self, *_args, **_options):
            pass

        def evaluate(self, *_args):
            raise ValueError("our own mistake")

        def close(self):
            pass

    monkeypatch.setattr("fitness.judge.Judge", Broken)
    monkeypatch.setattr("evo.cli.eval.ready", lambda *_: None)
    result = evaluate(task, kernel(tmp_path, RIGHT), "--json")
    assert result.exit_code == 70
    assert result.stdout == ""
    assert "our own mistake" in result.stderr


@pytest.mark.parametrize(("word", "modes"), [("compile", ["compile"]), ("eager", [])])
def test_a_baseline_that_is_asked_for_is_measured_beside_eager(
    task, tmp_path, monkeypatch, word, modes
):
    from fitness.evaluation import Interval

    asked = []

    class Quick:
        """Stands for the process of a mode that compiles."""

        def get_ready(self):
            return

        def settled(self):
            return Interval(1.0, 1.0, 1.0)

    @contextlib.contextmanager
    def quick(request, *_):
        asked.append(request.mode)
        yield Quick()

    monkeypatch.setenv("KERNELEVO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("fitness.baselines.started", quick)
    found = evaluate(task, kernel(tmp_path, RIGHT), "--baseline", word, "--json")

    assert asked == modes
    speedup = json.loads(found.stdout)["speedup"]
    assert (speedup["compile"] is not None) == bool(modes)
    assert speedup["eager"] > 0
