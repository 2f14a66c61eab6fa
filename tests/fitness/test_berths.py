"""Processes that wait for modules: they judge as fresh ones do, and nothing is left of them."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from cuda_sandbox.cache import cache_dir
from cuda_sandbox.compiler import Compiler
from cuda_sandbox.isolation import namespaces_missing
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from cuda_sandbox.sandbox import SandboxError
from fitness.evaluation import Demand
from fitness.judge import Judge
from fitness.module.berths import Berth, Berths, spare
from fitness.module.building import Folder
from fitness.module.jail import Place

pytestmark = pytest.mark.skipif(
    bool(why := namespaces_missing()), reason=f"nobody waits without namespaces: {why}"
)

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(64, 48)]

def get_init_inputs():
    return []
"""
HONEST = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.clamp_min(0)
"""
PLACE = Place("cpu", "cpu")


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELEVO_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def berths():
    with Berths(1) as berths:
        yield berths


@pytest.fixture
def judge(tmp_path, berths):
    path = tmp_path / "rectified.py"
    path.write_text(TASK)
    with Compiler() as compiler:
        judge = Judge(path, Demand(), "cpu", compiler=compiler, berths=berths)
        yield judge
        judge.close()


def judged(judge, source):
    kernel = Kernel(source, "module")
    return judge.evaluate(kernel, judge.compile(kernel))


def folders() -> list[Path]:
    return list((cache_dir() / "berths").glob("*"))


def test_one_that_waits_takes_the_next_module_and_another_waits_then(judge, berths) -> None:
    judge.compile(Kernel(HONEST, "module"))
    waiting = folders()
    assert len(waiting) == 1

    found = judged(judge, HONEST)

    assert found.status is Status.OK, found.reason
    assert len(folders()) == 1
    assert folders() != waiting


def test_it_sees_its_own_files_and_no_earlier_ones(judge) -> None:
    assert judged(judge, HONEST).status is Status.OK
    told = (
        "import os, torch\nraise ValueError(sorted(os.listdir('/kernel.so')), os.listdir('/out'))"
    )

    found = judged(judge, HONEST.replace("import torch", told, 1))

    assert "(['constructor.pickle', 'kernel.py', 'orders.json'], " in found.reason
    assert str(cache_dir()) not in found.reason


def test_one_that_has_died_is_not_taken(judge, berths) -> None:
    judge.compile(Kernel(HONEST, "module"))
    waiting = berths.take(PLACE, sorted(os.sched_getaffinity(0)))
    waiting.close()
    for berth in [one for row in berths._waiting.values() for one in row]:
        berth.process.kill()

    assert judged(judge, HONEST).status is Status.OK


@pytest.mark.parametrize("late", [False, True], ids=["before it is asked", "on its way"])
def test_one_that_dies_before_it_holds_the_module_is_not_the_modules_fault(
    judge, monkeypatch, late
) -> None:
    board = Berth.board

    def boarded(berth, folder):
        process = board(berth, folder)
        if late:
            threading.Timer(0.2, lambda: process.signal(signal.SIGKILL)).start()
        else:
            process.signal(signal.SIGKILL)
            time.sleep(0.2)
        return process

    monkeypatch.setattr(Berth, "board", boarded)
    with pytest.raises(SandboxError, match="a module's process did not start"):
        judged(judge, HONEST)


def test_links_that_a_candidate_left_are_not_followed_out(tmp_path, berths) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    folder = Folder(tmp_path / "prepared")
    folder.told.mkdir(parents=True)
    folder.built.mkdir()
    (folder.built / "link").symlink_to(secret)
    berth = berths.take(PLACE, sorted(os.sched_getaffinity(0)))

    berth.board(folder)

    (seen,) = (path / "out" / "link" for path in folders() if (path / "out" / "link").is_symlink())
    assert seen.readlink() == secret
    berth.close()


def test_nothing_is_left_when_all_is_over(judge, berths) -> None:
    judged(judge, HONEST)

    berths.close()

    assert not folders()


def test_what_a_killed_one_left_is_removed_and_what_is_in_use_stays(berths) -> None:
    left = cache_dir() / "berths" / "left"
    (left / "src").mkdir(parents=True)
    berths.fill(PLACE, None)
    (waiting,) = set(folders()) - {left}
    long_ago = time.time() - 1000.0
    for folder in (left, waiting):
        os.utime(folder, (long_ago, long_ago))

    taken = berths.take(PLACE, sorted(os.sched_getaffinity(0)))  # which starts another

    assert not left.exists()
    assert waiting.exists()
    taken.close()


def test_nobody_gets_ready_beside_a_kernel_on_the_cpu() -> None:
    assert spare("cpu") == 0
