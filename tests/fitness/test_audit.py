"""Tasks by which no kernel can be judged are refused; weak ones are made up for; others pass."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from evo.cli.audit import command
from fitness.audit import Audit, Job, Outcome, _keep, _known, audits, find_tasks, require_sound
from fitness.audit.record import from_json
from fitness.audit.scale import Limits, _candidates, smaller
from fitness.audit.steps import finish, prepare
from fitness.contents import Bank
from fitness.describe import describe_here
from fitness.errors import TaskError
from fitness.evaluation import Demand, Tier
from tests.fitness.task_files import loaded, simple, write

WEAK = Path(__file__).parent / "weak_tasks"
PUBLISHED = Demand(tier=None, tolerance=1e-2)

REFUSED = {
    "attention_to_one": "the output does not depend on query, key",
    "constant_output": "the output is the same whatever the inputs are: zeros, one constant",
    "copy": "x passed through as out would pass on every distribution",
    "counts_its_calls": "the reference is not deterministic: two calls on the same inputs",
    "dropout": "forward is random (aten.dropout)",
    "infinite": "100% of out is infinite",
    "not_a_number": "out is NaN on the task's own inputs",
    "plain_norm_mean": "zeros and the mean as out would pass on every distribution",
    "softmax_of_one": "the output is the same whatever the inputs are",
    "unseeded_noise": "the reference is not deterministic",
    "unused_input": "forward never uses these inputs: weight",
}
STRENGTHENED = {
    "batch_norm": ("x passed through would pass as out under the published check", "unit weights"),
    "group_norm_mean": ("zeros, one constant",),
    "layer_norm": ("x passed through would pass as out under the published check", "unit weights"),
    "mean_of_many": ("one constant would pass as out under the published check",),
    "never_new_inputs": ("the output for other inputs would pass as out under tier fp32",),
    "relu_of_uniform": ("x passed through would pass as out under tier fp32; rejected here on",),
    "wide_clamp": ("further inputs are drawn (huge), on which they fail",),
    "wide_softmax": ("zeros would pass as out under the published check (allclose, 0.01)",),
}


@pytest.fixture(autouse=True)
def _unlimited(monkeypatch):
    monkeypatch.setattr("fitness.describe._limit_memory", lambda: None)  # it would bind pytest


def audited(path: Path, folder: Path, demand: Demand | None = None) -> Audit:
    """In this process: both steps of an audit without their forks."""
    job = Job(path, demand or Demand())
    answer = prepare(job, folder)
    return from_json(answer["audit"] if "audit" in answer else finish(job, answer))


@pytest.mark.parametrize("name", REFUSED)
def test_a_task_that_tells_nothing_is_refused_and_says_why(name, tmp_path):
    audit = audited(WEAK / f"{name}.py", tmp_path)
    assert audit.outcome is Outcome.REFUSED
    assert REFUSED[name] in audit.summary


@pytest.mark.parametrize("name", STRENGTHENED)
def test_a_weak_task_is_strengthened_and_says_by_what(name, tmp_path):
    audit = audited(WEAK / f"{name}.py", tmp_path)
    assert audit.outcome is Outcome.STRENGTHENED
    for text in STRENGTHENED[name]:
        assert text in audit.summary
    assert "rejected here on" in audit.summary


def test_every_weak_task_is_named_here():
    assert {path.stem for path in WEAK.glob("*.py")} == {*REFUSED, *STRENGTHENED, "idle_weights"}


def test_parameters_without_effect_are_noted_and_no_reason_to_refuse(tmp_path):
    audit = audited(WEAK / "idle_weights.py", tmp_path)
    assert audit.outcome is Outcome.SOUND
    assert [finding.text for finding in audit.findings] == [
        "forward never uses these parameters: idle_weight, idle_bias",
        "the effect of conv_bias cancels out: a kernel may leave it out",
    ]


def test_a_tolerance_wider_than_the_outputs_spread_is_refused_where_a_tier_is_not(tmp_path):
    path = write(tmp_path, simple("x: torch.sigmoid(x) * 1e-3 + 1", "torch.randn(8, 256)"))
    assert audited(path, tmp_path).outcome.usable
    audit = audited(path, tmp_path, PUBLISHED)
    assert audit.outcome is Outcome.REFUSED
    assert "one constant, the mean and the output for other inputs as out would pass" in (
        audit.summary
    )


def test_weights_that_make_no_difference_on_their_own_are_work_that_is_skipped(tmp_path):
    init = "self.f, self.g = nn.Linear(16, 4), nn.Linear(16, 4)"
    path = write(tmp_path, simple("x: self.f(x) * 0 + self.g(x)", "torch.randn(8, 16)", init))
    audit = audited(path, tmp_path)
    assert audit.outcome is Outcome.REFUSED
    assert "does not depend on f_weight: the work on it can be left out" in audit.summary


def test_the_judges_bank_refuses_what_the_audit_refuses_and_draws_what_it_draws(tmp_path):
    clamp = loaded(tmp_path, simple("x: torch.clamp(x, -1e6, 1e6)", "torch.randn(4, 64)"))
    assert "huge" in {content.name for content in Bank(clamp, Demand(), 5).checks}
    copy = loaded(tmp_path, simple("x: x.clone()", "torch.randn(4, 64)"))
    with pytest.raises(TaskError, match=r"these would pass: x passed through as out\. Nothing can"):
        _ = Bank(copy, Demand(), 5).checks


def test_labels_and_probabilities_are_left_only_where_nothing_else_tells(tmp_path):
    body = simple("x: torch.relu(x)", "torch.randint(0, 2, (64, 64)).float()")
    bank = Bank(loaded(tmp_path, body), Demand(), 5)
    assert bank.contest[0][-1].name == "free"
    assert bank.checks[-1].leaves["x"].min() < 0


def test_large_tasks_are_audited_small_and_those_that_cannot_say_why(tmp_path, monkeypatch):
    monkeypatch.setattr("fitness.audit.steps._ON_CPU", Limits(tensor_bytes=1 << 20, flops=1e9))
    named = simple("x: torch.softmax(x, 1)", "torch.randn(ROWS, COLUMNS)")
    path = write(tmp_path, named + "\nROWS, COLUMNS = 65536, 65536\n", "named")  # 16 GiB
    folder = tmp_path / "copies"
    folder.mkdir()
    audit = audited(path, folder)
    assert audit.outcome.usable
    assert audit.sizes == ("ROWS = 2 of 65536",)
    literal = simple("x: torch.softmax(x, 1)", "torch.randn(524288, 262144)")
    audit = audited(write(tmp_path, literal, "literal"), folder)
    assert audit.outcome is Outcome.NOT_AUDITED
    assert "GiB of memory" in audit.reason
    assert "no constant that get_inputs() reads makes it smaller" in audit.reason


def test_the_model_stays_as_it_is_while_the_batch_can_be_made_smaller(tmp_path):
    body = simple("x: self.f(x)", "torch.randn(BATCH, WIDTH)", "self.f = nn.Linear(WIDTH, 8)")
    body = body.replace("return []", "return [][:WIDTH]") + "\nWIDTH, BATCH = 64, 4096\n"
    path = write(tmp_path, body)
    (tmp_path / "small").mkdir()
    found = smaller(path, describe_here(path), Limits(64 << 10, 1e9), tmp_path / "small")
    assert found
    assert found.sizes == ("BATCH = 128 of 4096",)
    assert found.description.signature.arguments[1].shape == (8, 64)


@given(st.integers(3, 10**7), st.floats(1.01, 1e6))
def test_smaller_sizes_are_smaller_and_never_one(value, excess):
    sizes = list(_candidates(value, excess))
    assert all(2 <= size < value for size in sizes)
    assert sizes == sorted(sizes, reverse=True)


def folder_of_everything(folder: Path) -> Path:
    """A good task, and one of each kind that does not let itself be audited."""
    write(folder, simple("x: torch.tanh(x)", "torch.randn(8, 8)"), "good")
    write(folder, "class Model(nn.Module:\n", "broken")
    write(folder, "class Model: ...\nimport os\nos.abort()\n", "dies")
    write(folder, "class Model: ...\nimport time\ntime.sleep(600)\n", "hangs")
    (folder / "helper.py").write_text("SIZE = 3\n")
    (folder / "deep").mkdir()
    write(folder / "deep", simple("x: x * 0 + 1", "torch.randn(8, 8)"), "nothing")
    return folder


def test_a_folder_is_audited_whatever_is_in_it(tmp_path):
    run = CliRunner().invoke(
        command, [str(folder_of_everything(tmp_path)), "--json", "--deadline", "12"]
    )
    assert run.exit_code == 1
    said = json.loads(run.stdout)
    found = {Path(one["task"]).stem: one for one in said["tasks"]}
    assert {name: one["outcome"] for name, one in found.items()} == {
        "broken": "broken",
        "dies": "broken",
        "good": "sound",
        "hangs": "not audited",
        "nothing": "refused",
    }
    assert said["counts"] == {"sound": 1, "broken": 2, "refused": 1, "not audited": 1}
    assert "broken.py:6: importing it failed: SyntaxError" in found["broken"]["summary"]
    assert "killed by signal 6" in found["dies"]["summary"]
    assert "still running after 12 s" in found["hangs"]["summary"]
    assert len(found["good"]["distributions"]) == 7


def test_the_table_has_a_row_for_each_task_and_the_counts(tmp_path):
    write(tmp_path, simple("x: torch.relu(x)", "torch.rand(8, 8)"), "weak")
    run = CliRunner().invoke(command, [str(tmp_path / "weak.py")])
    assert run.exit_code == 0
    words = " ".join(run.stdout.split())
    assert "weak strengthened on the task's own inputs x passed through would pass" in words
    assert "1 tasks: 1 strengthened" in words


def test_audits_are_kept_and_made_anew_when_the_task_or_the_demand_changes(tmp_path, monkeypatch):
    path = write(tmp_path, simple("x: torch.tanh(x) * 3", "torch.randn(8, 8)"))
    (first,) = audits([Job(path, Demand())])
    monkeypatch.setattr("fitness.audit._from_worker", lambda jobs: iter(()))
    moved = tmp_path / "elsewhere" / path.name
    moved.parent.mkdir()
    moved.write_bytes(path.read_bytes())
    (again,) = audits([Job(moved, Demand())])
    assert (again.outcome, again.seconds, again.task) == (first.outcome, first.seconds, str(moved))
    (other,) = audits([Job(path, Demand(Tier.HALF))])
    assert other.outcome is Outcome.BROKEN  # no worker to ask


def test_a_task_under_audit_sees_no_key_of_its_user(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    path = tmp_path / "curious.py"
    path.write_text("import os\nraise RuntimeError(os.environ.get('OPENAI_API_KEY', 'no key'))\n")

    (found,) = audits([Job(path, Demand())])

    assert "RuntimeError: no key" in found.reason


def test_a_run_does_not_begin_on_a_refused_task(tmp_path, monkeypatch):
    from evo.cli.main import main

    monkeypatch.chdir(tmp_path)
    write(tmp_path, simple("x: x.clone()", "torch.randn(8, 8)"), "copy")
    Path("copy.yaml").write_text("task: copy.py\ndevices: cpu\n")
    run = CliRunner().invoke(main, ["run", "copy.yaml"])
    assert run.exit_code == 2
    assert "copy.py: the audit refuses this task: x passed through as out would pass" in run.stderr
    assert not Path("populations/copy").exists()


def test_no_run_begins_on_a_task_that_imports_from_beside_it_and_no_audit_of_it_is_kept(
    tmp_path, monkeypatch
):
    from evo.cli.main import main

    monkeypatch.chdir(tmp_path)
    Path("scale_of.py").write_text("SCALE = 2.0\n")
    body = simple("x: torch.tanh(x) * scale_of.SCALE", "torch.randn(8, 8)")
    path = write(tmp_path, "import scale_of\n" + body)
    audit = audited(path, tmp_path)
    assert (audit.outcome, audit.beside) == (Outcome.SOUND, ("scale_of.py",))
    _keep(Job(path, Demand()), audit)
    assert _known(Job(path, Demand())) is None

    del sys.modules["scale_of"]
    monkeypatch.setattr("fitness.task.describe", lambda name: describe_here(Path(name)))
    monkeypatch.setattr("fitness.audit.require_sound", lambda *_: audit)
    Path("run.yaml").write_text("task: task.py\ndevices: cpu\n")
    run = CliRunner().invoke(main, ["run", "run.yaml"])
    assert run.exit_code == 2
    assert "task.py imports scale_of.py from beside it" in run.stderr


def test_a_task_that_is_not_audited_may_be_run_all_the_same(tmp_path, monkeypatch):
    path = write(tmp_path, simple("x: x", "torch.randn(8)"))
    late = Audit(str(path), Outcome.NOT_AUDITED, "still running after 300 s")
    monkeypatch.setattr("fitness.audit.audits", lambda jobs: iter([late]))
    assert require_sound(path, Demand(), "cpu") is late


def test_only_files_that_look_like_tasks_are_found_in_a_folder(tmp_path):
    folder_of_everything(tmp_path)
    hidden = tmp_path / ".hidden"
    hidden.mkdir()
    write(hidden, simple("x: x", "torch.randn(8)"), "hidden")
    assert [path.stem for path in find_tasks([tmp_path, tmp_path / "good.py"])] == [
        "broken",
        "nothing",
        "dies",
        "good",
        "hangs",
    ]
    with pytest.raises(TaskError, match="there is no such file or folder"):
        find_tasks([tmp_path / "none"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(TaskError, match="no task file"):
        find_tasks([tmp_path / "empty"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tier", "fp32", "--tolerance", "0.1"], "not both"),
        (["--tolerance", "2"], "between 0 and 1"),
        (["--deadline", "0"], "more than 0"),
        (["--device", "tpu"], "there is no device 'tpu'"),
    ],
)
def test_a_wrong_call_is_one_message_and_exit_code_2(tmp_path, arguments, message):
    path = write(tmp_path, simple("x: x", "torch.randn(8)"))
    run = CliRunner().invoke(command, [str(path), *arguments, "--json"])
    assert run.exit_code == 2
    assert message in json.loads(run.stdout)["error"]


def test_eval_prints_the_tasks_remarks_and_rejects_what_an_audit_would_refuse(tmp_path):
    from evo.cli.main import main

    body = simple("x, y: x.clone()", "torch.randn(8, 8), None")
    kernel = tmp_path / "copy.cpp"
    kernel.write_text('extern "C" int launch(const float* x, float* out, void*) { return 0; }')
    run = CliRunner().invoke(main, ["eval", str(write(tmp_path, body)), str(kernel), "--json"])
    assert run.exit_code == 1
    assert "note: inputs that are None (y) are no arguments of the kernel" in run.stderr
    found = json.loads(run.stdout)
    assert found["status"] == "rejected"
    assert "these would pass: x passed through as out. Nothing can be judged" in found["reason"]
