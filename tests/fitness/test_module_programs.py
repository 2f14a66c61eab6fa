"""What a rehearsal builds and hears is there for a worker that starts no program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from cuda_sandbox.report import Status
from fitness.module.building import Folder, prepare
from fitness.module.jail import Place
from fitness.module.runner.orders import CONSTRUCTOR, KERNEL, ORDERS

ROOT = Path(__file__).parents[2]
EXTENSION = """
#include <Python.h>
static struct PyModuleDef made = {PyModuleDef_HEAD_INIT, "tiny", 0, -1, 0};
PyMODINIT_FUNC PyInit_tiny(void) { return PyModule_Create(&made); }
"""


def run(code: str, built: Path) -> str:
    """What a Python with our runner prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KERNELEVO_BUILT": str(built)}
    environment["TORCH_EXTENSIONS_DIR"] = str(built / "extensions")
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_answers_of_programs_are_kept_and_given_again(tmp_path):
    ask = "import subprocess, sys; from fitness.module.runner import programs; programs.{}()\n"
    ask += "print(subprocess.check_output([sys.executable, '-c', 'print({})'], text=True))\n"
    ask += "try: subprocess.check_output(['no-such-program'])\n"
    ask += "except FileNotFoundError: print('not there')\n"
    heard = run(ask.format("record", "6 * 7"), tmp_path)

    again = run(ask.replace("[sys", "['kept', sys").format("replay", "6 * 7"), tmp_path)
    known = run(ask.format("replay", "6 * 7"), tmp_path)

    assert heard.split() == known.split() == ["42", "not", "there"]
    assert "kept" in again, "another question is asked in earnest"


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_an_extension_that_was_built_is_loaded_without_compiler_and_lock(tmp_path):
    folder = tmp_path / "extensions" / "tiny"
    folder.mkdir(parents=True)
    (folder / "tiny.c").write_text(EXTENSION)
    include = sysconfig.get_path("include")
    command = ["g++", "-x", "c", "-shared", "-fPIC", f"-I{include}", "tiny.c", "-o", "tiny.so"]
    subprocess.run(command, cwd=folder, check=True)
    load = "from fitness.module.runner import programs; programs.replay()\n"
    load += "from torch.utils.cpp_extension import load_inline\n"
    load += "print(load_inline('{}', 'int one() {{ return 1; }}').__name__)"

    assert run(load.format("tiny"), tmp_path).strip() == "tiny"
    assert "the extension other was not built" in run(load.format("other"), tmp_path)
    assert not list(folder.glob("*lock*"))


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Prepares a module of this source in a cache of its own."""
    monkeypatch.setenv("KERNELEVO_CACHE", str(tmp_path))

    def prepared(source: str):
        orders = b'{"leaves": [], "outputs": [], "forward": []}'
        constructor = b"\x80\x04]\x94}\x94\x86\x94."  # ([], {})
        files = {KERNEL: source.encode(), ORDERS: orders, CONSTRUCTOR: constructor}
        return prepare(files, Place("cpu", "cpu"), "native", deadline_s=60)

    return prepared


HEAD = "from torch import nn\nfrom torch.utils import cpp_extension\n"
MODEL = "class ModelNew(nn.Module):\n    def forward(self):\n        return 1\n"


def test_what_builds_nothing_is_not_rehearsed(module):
    report = module("from torch import nn\n" + MODEL)

    assert report.status is Status.OK
    assert [path for path in Folder.of(report.object_key).built.rglob("*") if path.is_file()] == []


def test_a_rehearsal_leaves_its_folder_for_the_worker_and_is_not_repeated(module):
    source = (
        HEAD + "import os\nopen(os.environ['KERNELEVO_BUILT'] + '/mark', 'w').close()\n" + MODEL
    )

    first, again = module(source), module(source)

    assert (first.status, first.cached, again.cached) == (Status.OK, False, True)
    assert (Folder.of(again.object_key).built / "mark").exists()


@pytest.mark.parametrize(
    ("line", "status", "word"),
    [
        ("import subprocess; subprocess.run(['id'])", Status.HACK, "starts a program: id"),
        ("import socket; socket.socket()", Status.HACK, "network"),
        ("1 / 0", Status.COMPILE_ERROR, "line 3: importing it raised ZeroDivisionError"),
        ("import os; os._exit(3)", Status.CRASHED, "ended with code 3"),
    ],
)
def test_a_rehearsal_that_fails_says_why(module, line, status, word):
    report = module(HEAD + line + "\n" + MODEL)

    assert report.status is status
    assert word in report.reason
    assert report.object_key is None
