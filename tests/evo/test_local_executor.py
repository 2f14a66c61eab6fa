"""The executor of this machine: judge processes that get jobs, die, and are started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from cuda_sandbox.children import environment
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CompileReport, Status
from cuda_sandbox.signature import Signature
from evo.executor import Job, JobFailed, Purpose
from evo.executors import _bench, local
from evo.executors.local import LocalExecutor
from evo.machine import Machine
from fitness.evaluation import Demand
from tests.evo.fakes import description

MACHINE = Machine(("cpu",), "cpp", "fake", "native", ())


class FakeCompiler:
    """Compiles at once; what says ``error`` does not compile."""

    def submit(self, kernel: Kernel, signature: Signature, arch: str) -> Future[CompileReport]:
        future: Future[CompileReport] = Future()
        if "missing" in kernel.source:
            raise RuntimeError("there is no g++")
        if "error" in kernel.source:
            report = CompileReport(
                Status.COMPILE_ERROR, "line 1: error", None, 0.25, log="line 1: error\n  x"
            )
        else:
            report = CompileReport(Status.OK, "", "key", 0.25)
        future.set_result(report)
        return future

    def close(self) -> None:
        pass


Make = Callable[..., LocalExecutor]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setattr(local, "Compiler", FakeCompiler)
    monkeypatch.setattr(_bench, "MODULE", "tests.evo.fake_judge")
    made: list[LocalExecutor] = []

    def executor(
        task: str = "task.py", workers: int = 1, devices: tuple[str, ...] = ("cpu",)
    ) -> LocalExecutor:
        machine = replace(MACHINE, devices=devices)
        found = LocalExecutor(machine, Path(task), description().signature, Demand(), workers)
        made.append(found)
        return found

    yield executor
    for one in made:
        one.close()


def job(source: str, *rivals: str) -> Job:
    purpose = Purpose.CERTIFY if rivals else Purpose.SEARCH
    return Job(Kernel(source, "cpp"), purpose, tuple(Kernel(rival, "cpp") for rival in rivals))


def test_jobs_are_judged_in_a_process_of_their_own(make: Make) -> None:
    executor = make()
    found = executor.submit(job("fine")).result(60)
    assert found.status is Status.OK
    assert found.certificate is not None
    assert found.certificate["pid"] != os.getpid()
    certified = executor.submit(job("fine", "parent")).result(60)
    assert certified.certificate == found.certificate | {"purpose": "certify", "rivals": ["parent"]}


def test_what_does_not_compile_reaches_no_judge(make: Make) -> None:
    found = make().submit(job("error")).result(60)
    assert (found.status, found.reason) == (Status.COMPILE_ERROR, "line 1: error")
    assert found.device == "fake"
    assert found.seconds.compile == 0.25
    assert found.log == "line 1: error\n  x"  # whoever mends it needs more than the first line


def test_without_a_compiler_the_job_fails_with_the_remedy(make: Make) -> None:
    with pytest.raises(JobFailed, match="there is no g"):
        make().submit(job("missing")).result(60)


def test_a_judge_that_dies_is_started_again_and_the_job_tried_once_more(
    make: Make, tmp_path: Path
) -> None:
    executor = make()
    assert executor.submit(job(f"die {tmp_path / 'died'}")).result(60).status is Status.OK
    assert (tmp_path / "died").exists()


def test_a_job_on_which_the_judge_dies_twice_is_booked_and_the_next_goes_on(make: Make) -> None:
    executor = make()
    found, after = executor.submit(job("die")), executor.submit(job("fine"))
    assert found.result(60).status is Status.CRASHED
    assert found.result().reason == "the judge died on it twice: exit code 3: last words"
    assert after.result(60).status is Status.OK


def test_a_judge_whose_process_cannot_be_started_fails_the_job_and_keeps_nobody_waiting(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_bench, "sys", SimpleNamespace(executable="/nowhere/python"))
    executor = make()
    for _ in range(2):
        with pytest.raises(JobFailed, match=r"FileNotFoundError: .*/nowhere/python"):
            executor.submit(job("fine")).result(60)


def test_a_fault_of_ours_is_no_verdict(make: Make) -> None:
    executor = make()
    with pytest.raises(JobFailed, match="the judge failed: our own mistake"):
        executor.submit(job("fault")).result(60)
    assert executor.submit(job("fine")).result(60).status is Status.OK


def test_a_judge_that_cannot_start_says_why(make: Make) -> None:
    with pytest.raises(JobFailed, match=r"broken.py:3: the task is broken"):
        make("broken.py").submit(job("fine")).result(60)


def test_any_idle_judge_takes_the_next_job(make: Make) -> None:
    executor = make(workers=2)
    slow = executor.submit(job("sleep 1.0"))
    quick = executor.submit(job("fine"))
    pids = {future.result(60).certificate["pid"] for future in (quick, slow)}  # type: ignore[index]
    assert len(pids) == 2


def test_a_silent_judge_is_killed_at_its_deadline(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_bench, "ANSWER_S", {Purpose.SEARCH: 0.2})
    found = make().submit(job("sleep 30")).result(60)
    assert found.status is Status.CRASHED
    assert found.reason == "the judge died on it twice: no answer within 0.2 s"


def test_a_device_that_does_not_recover_is_taken_out_and_the_others_go_on(
    make: Make, tmp_path: Path
) -> None:
    executor = make(str(tmp_path / "task.py"), devices=("gpu0", "gpu1"))
    said: list[str] = []
    executor.heed(said.append)
    harmed = executor.submit(job(f"harm {tmp_path}")).result(60).device
    futures = [executor.submit(job("sleep 0.01")) for _ in range(8)]
    found = {future.result(60).device for future in futures}
    assert found == {"gpu0", "gpu1"} - {harmed}
    assert [line.partition(":")[0] for line in said] == [
        f"{harmed} is taken out of the run, its work goes to the others"
    ]
    assert "known work gives 41" in said[0]


def test_where_no_device_is_left_jobs_fail_and_say_why(make: Make, tmp_path: Path) -> None:
    executor = make(str(tmp_path / "task.py"), devices=("gpu0",))
    said: list[str] = []
    executor.heed(said.append)
    assert executor.submit(job(f"harm {tmp_path}")).result(60).status is Status.OK
    for _ in range(2):
        with pytest.raises(JobFailed, match="no device is left to judge on: known work gives 41"):
            executor.submit(job("fine")).result(60)
    assert said[0].startswith("gpu0 is taken out of the run, no other is left")


def test_a_device_that_recovers_in_a_fresh_process_stays(make: Make, tmp_path: Path) -> None:
    executor = make("task.py", devices=("gpu0",))
    first = executor.submit(job(f"harm {tmp_path}")).result(60)
    second = executor.submit(job("fine")).result(60)
    assert second.status is Status.OK
    assert second.certificate["pid"] != first.certificate["pid"]  # type: ignore[index]


def test_closing_is_quick_and_leaves_no_process(make: Make) -> None:
    executor = make()
    pid = executor.submit(job("fine")).result(60).certificate["pid"]  # type: ignore[index]
    executor.submit(job("sleep 30"))
    started = time.monotonic()
    executor.close()
    assert time.monotonic() - started < 10
    assert gone(pid)


def gone(pid: int) -> bool:
    """Whether the process ends within a few seconds."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.1)
    return False


ENGINE = """
import time
from tests.evo import test_local_executor as t
t.local.Compiler, t._bench.MODULE = t.FakeCompiler, "tests.evo.fake_judge"
executor = t.LocalExecutor(t.MACHINE, t.Path("t.py"), t.description().signature, t.Demand())
print(executor.submit(t.job("fine")).result(60).certificate["pid"], flush=True)
time.sleep(60)
"""


def test_closing_tells_those_who_wait_in_the_queue(make: Make) -> None:
    executor = make()
    futures = [executor.submit(Job(Kernel(f"sleep 60 {n}", "cpp"))) for n in range(3)]
    executor.close()
    for future in futures[1:]:
        with pytest.raises(JobFailed, match="the run ended before it was judged"):
            future.result(timeout=1)


def test_judges_die_with_the_engine_even_by_kill_9() -> None:
    engine = subprocess.Popen(
        [sys.executable, "-c", ENGINE], stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert engine.stdout is not None
    pid = int(engine.stdout.readline())
    assert Path(f"/proc/{pid}").exists()
    engine.send_signal(signal.SIGKILL)
    engine.wait()
    engine.stdout.close()
    assert gone(pid)


def test_a_judge_gets_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    monkeypatch.setenv("GITHUB_TOKEN", "planted")
    monkeypatch.setenv("CUDA_HOME", "/usr/local/cuda")
    found = environment()
    assert "planted" not in "".join(found.values())
    assert found["CUDA_HOME"] == "/usr/local/cuda"
