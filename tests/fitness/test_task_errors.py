"""A broken or unsupported task file gets one clear message: file, line, what to do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from cuda_sandbox.children import import_path
from evo.cli.header import command
from fitness.describe import describe_here
from fitness.description import to_json
from fitness.errors import TaskError
from fitness.task import describe
from tests.fitness.task_files import HEAD, described, loaded, simple, write

GOOD_INPUTS = "\n\ndef get_inputs():\n    return [torch.randn(4)]\n"
BROKEN = {
    "syntax error": (
        "class Model(nn.Module:\n    pass\n",
        r"task\.py:\d+: importing it failed: SyntaxError",
    ),
    "no Model": ("x = 1" + GOOD_INPUTS, r"task\.py: has no class `Model\(nn\.Module\)`"),
    "Model is a function": (
        "def Model():\n    pass" + GOOD_INPUTS,
        r"has no class `Model\(nn\.Module\)`",
    ),
    "no get_inputs": (
        "class Model(nn.Module):\n    pass\n",
        r"task\.py: has no function `get_inputs\(\)`",
    ),
    "failing get_inputs": (
        simple("x: x", "torch.randn(4, 4) @ torch.randn(3, 3)"),
        r"task\.py:\d+: get_inputs\(\) failed: RuntimeError: .*shapes",
    ),
    "get_inputs gives no list": (
        simple("x: x", "1").replace("return [1]", "return 3"),
        r"get_inputs\(\) returns int; it must return a list",
    ),
    "failing constructor": (
        simple("x: x", "torch.randn(2)", init="raise ValueError('width must be even')"),
        r"task\.py:\d+: the constructor of Model failed: ValueError: width must be even",
    ),
    "failing forward": (
        simple("x: x @ x", "torch.randn(2, 3)"),
        r"task\.py:\d+: forward failed: RuntimeError",
    ),
    "output is no tensor": (
        simple("x: {'y': x}", "torch.randn(2)"),
        r"task\.py: forward returns dict; it must return a tensor",
    ),
    "output is a number": (simple("x: 3", "torch.randn(2)"), r"forward returns int"),
    "missing module": (
        "import einopps_of_old" + GOOD_INPUTS,
        r"task\.py:\d+: importing it needs the module 'einopps_of_old', .*pip install",
    ),
    "exits": ("raise SystemExit(3)" + GOOD_INPUTS, r"importing it failed: SystemExit: 3"),
    "too many inputs": (
        simple("x: x", "torch.randn(2), torch.randn(2)"),
        r"gives 2 values, but forward takes 1: x",
    ),
    "text among inputs": (simple("x, s: x", "torch.randn(2), 'sum'"), r"gives str for 's'"),
    "complex": (
        simple("x: x", "torch.randn(2, dtype=torch.complex64)"),
        r"'x' has type complex64; a kernel can take float64",
    ),
    "complex output": (simple("x: torch.fft.fft(x)", "torch.randn(8)"), r"'out' has type complex"),
    "empty": (simple("x: x", "torch.randn(0, 3)"), r"'x' is empty \(shape \(0, 3\)\)"),
    "number varies": (
        "import random\n" + simple("x, s: x * s", "torch.randn(2), random.random()"),
        r"the number 's' varies from call to call",
    ),
    "shape varies": (
        "import random\n" + simple("x: x", "torch.randn(random.randint(1, 10**6))"),
        r"shapes vary from call to call",
    ),
    "dropout": (
        simple("x: self.drop(x)", "torch.randn(8)", init="self.drop = nn.Dropout(0.1)"),
        r"task\.py: forward is random \(aten\.dropout\).*set p to 0",
    ),
    "functional dropout": (
        simple("x: F.dropout(x, 0.5)", "torch.randn(8)"),
        r"forward is random \(aten\.dropout\)",
    ),
    "noise": (
        simple("x: x + torch.randn_like(x)", "torch.randn(8)"),
        r"forward is random \(aten\.randn_like\)",
    ),
}


@pytest.mark.parametrize(("body", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_file_says_what_is_wrong_and_where(tmp_path, body, message, monkeypatch):
    monkeypatch.setattr("fitness.describe._limit_memory", lambda: None)  # it would bind pytest
    with pytest.raises(TaskError, match=message) as caught:
        described(tmp_path, body)
    assert str(tmp_path) in str(caught.value)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize(
    "drop",
    ["nn.Dropout(0.0)", "nn.Dropout(0.3).eval()", "nn.Dropout2d(0.0)"],
)
def test_dropout_that_does_nothing_is_nothing(tmp_path, drop):
    body = simple("x: self.drop(x) * 2", "torch.randn(2, 3, 4, 4)", init=f"self.drop = {drop}")
    if "eval" in drop:
        body = body.replace("self.drop = nn.Dropout(0.3).eval()", "self.drop = nn.Dropout(0.3)")
        body = body.replace("return self.drop(x)", "return F.dropout(x, 0.3, training=False)")
    ops = [node.op for node in described(tmp_path, body).graph]
    assert ops == ["input", "aten.mul.Tensor", "output"]


def test_message_names_the_line(tmp_path, monkeypatch):
    monkeypatch.setattr("fitness.describe._limit_memory", lambda: None)
    body = simple("x: x @ x", "torch.randn(2, 3)")
    line = (HEAD + body).splitlines().index("        return x @ x") + 1
    with pytest.raises(TaskError, match=f"task.py:{line}: forward failed"):
        described(tmp_path, body)


def test_an_import_that_hangs_ends_at_the_deadline_and_names_the_line(tmp_path):
    path = write(tmp_path, "import time\ntime.sleep(1000)\n")
    line = HEAD.count("\n") + 2
    with pytest.raises(TaskError, match=rf"task\.py:{line}: still running after 1 s"):
        describe(path, deadline_s=1)


def test_a_hanging_description_ends_with_a_caller_that_is_killed(tmp_path):
    said = tmp_path / "pid"
    body = f"import os, time\nopen({str(said)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n"
    path = str(write(tmp_path, body))
    ask = f"from pathlib import Path; from fitness.task import describe; describe(Path({path!r}))"
    environment = {**os.environ, "PYTHONPATH": import_path()}
    caller = subprocess.Popen([sys.executable, "-c", ask], env=environment)
    wait_until(lambda: said.exists() and said.read_text())
    caller.kill()
    caller.wait()
    wait_until(lambda: not running(int(said.read_text())))


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(happened):
    for _ in range(400):
        if happened():
            return
        time.sleep(0.1)
    pytest.fail("it did not happen in 40 s")


def test_a_crash_is_told_apart(tmp_path):
    path = write(tmp_path, "import os\nos.abort()\n")
    with pytest.raises(TaskError, match=r"task\.py.*killed by signal 6"):
        describe(path)


def test_a_missing_file_is_one_message(tmp_path):
    with pytest.raises(TaskError, match=r"nowhere\.py: cannot be read: No such file"):
        describe(tmp_path / "nowhere.py")


def test_a_reference_that_is_nan_on_its_own_inputs_is_refused(tmp_path):
    from fitness.inputs import Inputs
    from fitness.truth import find_content

    task = loaded(tmp_path, simple("x: torch.log(-x * x - 1)", "torch.rand(8)"))
    with pytest.raises(TaskError, match="out is NaN on the task's own inputs"):
        find_content(Inputs(task, 1), "own")


def test_header_command_prints_the_header(tmp_path, monkeypatch):
    path = write(tmp_path, simple("x, n: x * n", "torch.randn(4, 6), 3"))
    monkeypatch.setattr("fitness.task._ask_child", lambda path, _: to_json(describe_here(path)))
    done = CliRunner().invoke(command, [str(path), "--language", "cpp"])
    assert done.exit_code == 0, done.output
    assert "#define X_D1 6" in done.output
    assert "#define N 3" in done.output
    assert 'extern "C" int launch(const float* x' in done.output
