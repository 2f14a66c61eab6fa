from __future__ import annotations

import multiprocessing
import os
import threading
import time
from pathlib import Path

import pytest

from cuda_sandbox import cache as store
from cuda_sandbox.compiler import Compiler
from cuda_sandbox.errors import UserError
from cuda_sandbox.slot import compile_slot, timing_slot


@pytest.fixture(autouse=True)
def own_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


class Holder(threading.Thread):
    """Takes a slot in a thread of its own and says when it has it."""

    def __init__(self, slot) -> None:
        super().__init__(daemon=True)
        self.slot, self.has_it, self.let_go = slot, threading.Event(), threading.Event()
        self.start()

    def run(self) -> None:
        with self.slot():
            self.has_it.set()
            self.let_go.wait(30)


def test_compilations_share_and_timing_excludes() -> None:
    one, two = Holder(compile_slot), Holder(compile_slot)
    assert one.has_it.wait(10)
    assert two.has_it.wait(10)
    timer = Holder(timing_slot)
    assert not timer.has_it.wait(0.2)
    one.let_go.set()
    two.let_go.set()
    assert timer.has_it.wait(10)
    late = Holder(compile_slot)
    assert not late.has_it.wait(0.2)
    timer.let_go.set()
    assert late.has_it.wait(10)
    late.let_go.set()


def test_a_waiting_timer_comes_before_compilations_that_come_later() -> None:
    running = Holder(compile_slot)
    assert running.has_it.wait(10)
    timer = Holder(timing_slot)
    time.sleep(0.2)  # let it take the gate
    newcomer = Holder(compile_slot)
    assert not newcomer.has_it.wait(0.2)
    running.let_go.set()
    assert timer.has_it.wait(10)
    assert not newcomer.has_it.is_set()
    timer.let_go.set()
    assert newcomer.has_it.wait(10)
    newcomer.let_go.set()


def _hold_for_ever(ready) -> None:
    with timing_slot():
        ready.set()
        time.sleep(60)


def test_kill_9_of_a_timer_frees_the_slot() -> None:
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    child = context.Process(target=_hold_for_ever, args=(ready,))
    child.start()
    assert ready.wait(10)
    child.kill()
    child.join()
    after = Holder(timing_slot)
    assert after.has_it.wait(10)
    after.let_go.set()


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("KERNELEVO_CACHE", "/somewhere")
    assert store.cache_dir() == Path("/somewhere")
    monkeypatch.delenv("KERNELEVO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store.cache_dir() == tmp_path / "kernelevo"


def test_a_wrong_size_limit_says_what_to_write(monkeypatch) -> None:
    monkeypatch.setenv("KERNELEVO_CACHE_MB", "2GB")
    with pytest.raises(ValueError, match="KERNELEVO_CACHE_MB must be a size in MB such as 2048"):
        store.limit_bytes()
    with pytest.raises(UserError, match="KERNELEVO_CACHE_MB"):
        Compiler()  # at once, not after the first kernel has been compiled


def test_the_least_recently_used_files_go_first(tmp_path) -> None:
    old = time.time() - 10_000
    for age, name in enumerate("cab"):
        path = tmp_path / name
        path.write_bytes(bytes(100))
        os.utime(path, (old + age, old + age))
    fresh = tmp_path / "fresh"
    fresh.write_bytes(bytes(100))
    store.touch(tmp_path / "c")
    assert store.evict(tmp_path, 250) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "fresh"]


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path) -> None:
    target = tmp_path / "target"
    with store.replacing(target) as part:
        part.write_text("one")
    assert target.read_text() == "one"
    with pytest.raises(RuntimeError), store.replacing(target) as part:  # noqa: PT012 - the point
        part.write_text("tw")
        raise RuntimeError
    assert target.read_text() == "one"
    assert list(tmp_path.iterdir()) == [target]


def test_the_cache_is_listed_and_cleared_by_folder(tmp_path) -> None:
    for name, size in (("objects", 10), ("workers", 20)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(bytes(size))
    assert [(e.name, e.files, e.bytes) for e in store.entries(tmp_path)] == [
        ("objects", 1, 10),
        ("workers", 1, 20),
    ]
    with pytest.raises(ValueError, match="holds no 'objekts'; it has: objects, workers"):
        store.clear(tmp_path, "objekts")
    assert store.clear(tmp_path, "objects") == 10
    assert store.clear(tmp_path) == 20
    assert store.entries(tmp_path) == ()
