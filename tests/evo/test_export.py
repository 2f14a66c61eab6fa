"""An exported kernel in a fresh process that cannot import this repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cuda_sandbox.errors import UserError
from cuda_sandbox.report import Status
from cuda_sandbox.signature import Role, Signature, TensorSpec
from evo.export.bundle import Bundle
from evo.export.interface import number, returns_tensor
from evo.individual import Birth
from evo.report.view import RunView
from fitness.description import TaskDescription
from fitness.evaluation import Precision, Tier
from tests.evo.synthetic_run import failure, individual, info, verdict

ROOT = Path(__file__).parents[2]
TASK = '''
import torch
from torch import nn


class Model(nn.Module):
    """Scales rows, shifts them, and keeps a counter that forward changes."""

    def __init__(self, width, eps):
        super().__init__()
        self.eps = eps
        self.layer = nn.Linear(width, 1, bias=True)
        self.register_buffer("offset", torch.rand(width))
        self.hidden = torch.rand(width)
        self.calls = 0

    def forward(self, x, pair, gain=1.0, mask=None):
        self.calls += 1
        y = gain * x * self.layer.weight + self.layer.bias + self.eps
        z = pair[0] + pair[1] * self.offset + self.hidden
        self.hidden = self.hidden + 1
        return y, [z], None


def get_inputs():
    return [torch.rand(4, 8), [torch.rand(4, 8), torch.rand(4, 8)], 2.0]


def get_init_inputs():
    return [[8], {"eps": 0.5}]
'''
KERNEL = """
extern "C" size_t workspace_bytes(void) { return 64; }
extern "C" int launch(const float* x, const float* pair_0, const float* pair_1,
                      const float* layer_weight, const float* layer_bias, const float* offset,
                      const float* hidden, float* out0, float* out1, void* workspace) {
  float* scratch = static_cast<float*>(workspace);
  for (int row = 0; row < X_D0; ++row)
    for (int i = 0; i < X_D1; ++i) {
      int at = row * X_D1 + i;
      scratch[0] = GAIN * x[at] * layer_weight[i];
      out0[at] = scratch[0] + layer_bias[0] + 0.5f;
      out1[at] = pair_0[at] + pair_1[at] * offset[i] + hidden[i];
    }
  return 0;
}
"""


def spec(name: str, role: Role, *shape: int) -> TensorSpec:
    return TensorSpec(name, "float32", shape, role)


SIGNATURE = Signature(
    "scale_and_shift",
    (
        spec("x", Role.INPUT, 4, 8),
        spec("pair_0", Role.INPUT, 4, 8),
        spec("pair_1", Role.INPUT, 4, 8),
        spec("layer_weight", Role.PARAMETER, 1, 8),
        spec("layer_bias", Role.PARAMETER, 1),
        spec("offset", Role.BUFFER, 8),
        spec("hidden", Role.STATE, 8),
    ),
    (spec("out0", Role.OUTPUT, 4, 8), spec("out1", Role.OUTPUT, 4, 8)),
    (("GAIN", "2.0f"),),
)


def bundle(source: str = KERNEL, status: Status = Status.OK, **changes: object) -> Bundle:
    task = TaskDescription("scale_and_shift", TASK, SIGNATURE, (), remarks=("states are inputs",))
    header = SIGNATURE.header("cpp")
    precise = Precision(Tier.FP32, 1e-7, 1e-7, 1e-7, 1e-7)
    evaluation = verdict(2.0, precision=precise, device="CPU", resources=())
    if status is not Status.OK:
        evaluation = failure(status, "wrong on constant rows")
    birth = Birth(0, 0, "port", "catalogue", (), None)
    one = individual("0-0-0", birth, source, evaluation, "cpp")
    changed = replace(info(), task=task, header=header, language="cpp", **changes)  # type: ignore[arg-type]
    return Bundle(RunView(changed, (one,)), one)


def python(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter beside the folder, without the repository."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [sys.executable, "-P", *arguments],
        cwd=folder,
        env={**clean, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


PRELUDE = """
import sys, warnings, torch
for name in ("evo", "fitness", "operators", "cuda_sandbox"):
    sys.path[:] = [path for path in sys.path if path != ROOT]
    sys.modules[name] = None  # importing it is an error
from scale import Model, fallbacks, module
from scale.reference import Model as Reference
torch.manual_seed(3)
original = Reference(8, eps=0.5)
torch.manual_seed(3)
model = Model(8, eps=0.5)
assert list(model.state_dict()) == list(original.state_dict())
model.load_state_dict(original.state_dict())
x, a, b = (torch.rand(4, 8) for _ in range(3))

def same(got, wanted):
    assert type(got) is tuple and type(got[1]) is list and got[2] is None
    assert torch.allclose(got[0], wanted[0], atol=1e-6)
    assert torch.allclose(got[1][0], wanted[1][0], atol=1e-6)
"""
BEHAVIOUR = """
warnings.simplefilter("error")
try:
    model(x, [a, b], 2.0)
    raise SystemExit("autograd was not refused")
except RuntimeError as error:
    assert "torch.no_grad()" in str(error), error
with torch.no_grad():
    calls, hidden = model.calls, model.hidden.clone()
    same(model(x, [a, b], 2.0), original(x, [a, b], 2.0))
    assert model.calls == calls and torch.equal(model.hidden, hidden) and not fallbacks
    model.layer.weight.mul_(3), model.offset.add_(1)  # current values count
    model.hidden = model.hidden + 5
    other = Reference(8, eps=0.5)
    other.load_state_dict(model.state_dict())
    other.hidden = model.hidden
    same(model(x=x, pair=(a, b), gain=2.0), other(x, [a, b], 2.0))
    other.hidden = model.hidden
    same(model(x, [x, x], 2.0), other(x, [x, x], 2.0))
    odd = torch.empty(33)[1:].view(4, 8).copy_(x)  # memory that starts on 4 bytes
    other.hidden = model.hidden
    same(model(odd, [a, b], 2.0), other(odd, [a, b], 2.0))
    assert not fallbacks
"""
FALLBACKS = """
def falls_back(word, call):
    before = sum(fallbacks.values())
    call()
    assert sum(fallbacks.values()) == before + 1, (word, fallbacks)
    assert any(word in reason for reason in fallbacks), (word, fallbacks)

with torch.no_grad(), warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    got = model(torch.ones(2, 8), [torch.ones(2, 8)] * 2, 2.0)
    assert got[0].shape == (2, 8)
    falls_back("shape", lambda: model(x[:2], [a[:2], b[:2]], 2.0))
    falls_back("contiguous", lambda: model(x, [torch.rand(8, 4).T, b], 2.0))
    falls_back("type float64", lambda: model(x.double(), [a, b], 2.0))
    falls_back("gain", lambda: model(x, [a, b], 3.0))
    falls_back("gain", lambda: model(x, [a, b]))
    falls_back("mask", lambda: model(x, [a, b], 2.0, mask="yes"))
    falls_back("x, pair_0, pair_1, mask", lambda: model(x, [a, b], 2.0, mask=x))
    falls_back("eps", lambda: Model(8, eps=0.25)(x, [a, b], 2.0))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        falls_back("autocast", lambda: model(x, [a, b], 2.0))
    ours = [str(each.message) for each in said if "runs instead" in str(each.message)]
    assert len(ours) == 1 and "shape" in ours[0], ours
    try:
        model(x)
        raise SystemExit("a missing argument went through")
    except TypeError:
        pass
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    bundle().write(folder / "scale")
    return folder


def script(*parts: str) -> str:
    return "\n".join([f"ROOT = {str(ROOT)!r}", PRELUDE, *parts])


def test_the_module_computes_what_the_original_does_and_falls_back_saying_so_once(
    exported: Path,
) -> None:
    done = python(exported, "-c", script(BEHAVIOUR, FALLBACKS))
    assert done.returncode == 0, done.stderr
    assert list((exported / "scale" / "build").glob("kernel-native-*.so"))


def test_the_self_check_passes_by_module_and_by_folder(exported: Path) -> None:
    for arguments in (["-m", "scale"], ["scale"]):
        done = python(exported, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "agrees" in done.stdout
        assert "kernel" in done.stdout


def test_the_self_check_finds_a_wrong_kernel(tmp_path: Path) -> None:
    bundle(KERNEL.replace("+ 0.5f", "+ 0.6f")).write(tmp_path / "my-kernel")
    done = python(tmp_path, "my-kernel")
    assert done.returncode == 1, done.stderr
    assert "DIFFERS" in done.stdout


def test_the_build_script_needs_no_torch_and_shows_the_compiler_error(tmp_path: Path) -> None:
    bundle("this is no C++").write(tmp_path / "broken")
    done = python(tmp_path, "broken/build.py")
    assert done.returncode == 1
    assert "error:" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_compiler_is_named(exported: Path) -> None:
    done = python(exported, "scale/build.py", PATH="/nowhere", CXX="")
    assert "install g++ or clang++" in done.stderr


def test_the_folder_carries_its_certificate_without_paths(exported: Path) -> None:
    certificate = json.loads((exported / "scale" / "certificate.json").read_text())
    assert certificate["certified"] is False
    assert certificate["search"]["time_ms"]["median"] > 0
    texts = [path.read_text() for path in (exported / "scale").iterdir() if path.is_file()]
    assert not any(str(ROOT) in text or "/tmp" in text for text in texts)
    assert "states are inputs" in (exported / "scale" / "README.md").read_text()


def test_only_accepted_kernels_are_exported() -> None:
    with pytest.raises(UserError, match=r"0-0-0 .*not accepted \(incorrect: wrong on constant"):
        bundle(status=Status.INCORRECT)


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(UserError, match="not empty"):
        bundle().write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("body", "bare"),
    [("return x.relu()", True), ("return x, None", False), ("return [x]", False)],
)
def test_a_bare_tensor_is_told_from_a_packed_one(body: str, bare: bool) -> None:
    source = (
        f"class Model:\n  def forward(self, x):\n    {body}\n\ndef get_inputs():\n  return [1]\n"
    )
    signature = Signature("t", (spec("x", Role.INPUT, 4),), (spec("out", Role.OUTPUT, 4),))
    assert returns_tensor(TaskDescription("t", source, signature, ())) is bare


@pytest.mark.parametrize(
    ("literal", "value"),
    [("2.0f", 2.0), ("1e-05f", 1e-5), ("3", 3), ("5000000000LL", 5000000000), ("-7", -7),
     ("true", True), ("0.1", 0.1), ("(-__builtin_inff())", float("-inf"))],
)  # fmt: skip
def test_numbers_of_the_header_become_python_numbers(literal: str, value: float) -> None:
    assert number(literal) == value
    assert type(number(literal)) is type(value)
