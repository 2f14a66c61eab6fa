"""What a judge's process does after a kernel that may have harmed its device."""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
from pathlib import Path

import pytest

from cuda_sandbox.errors import UserError
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CompileReport, Status
from evo.executor import Job
from evo.executors._judge_process import Fault, Order, Post, Sick, attend
from fitness import pulse
from fitness.evaluation import Demand, Evaluation

ORDER = Order(Job(Kernel("", "cuda")), CompileReport(Status.OK, "", "key", 0.1))
POST = Post(Path("task.py"), Demand(), "cuda:0", None, pulse_ms=5.0)


class Heart:
    """Proves well, or not."""

    def __init__(self, well: bool) -> None:
        self.well = well
        self.asked: list[float | None] = []

    def prove(self, usual_ms: float | None = None) -> None:
        self.asked.append(usual_ms)
        if not self.well:
            raise pulse.DeviceSick("cuda:0 computes wrongly")


class Judge:
    def __init__(self, status: Status | None, well: bool) -> None:
        self.pulse = Heart(well)
        self.status = status

    def evaluate(self, kernel: Kernel, compiled: CompileReport) -> Evaluation:
        if self.status is None:
            raise RuntimeError("CUDA error: unspecified launch failure")
        return Evaluation(self.status)


def answers(judge: Judge) -> list[object]:
    """All that the engine gets for one order."""
    ours, theirs = multiprocessing.Pipe()

    def serve() -> None:
        with contextlib.suppress(EOFError):
            attend(theirs, judge, POST)  # type: ignore[arg-type]
        theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    ours.send(ORDER)
    found = [ours.recv()]
    with contextlib.suppress(EOFError):
        while ours.poll(0.2):
            found.append(ours.recv())
    ours.close()
    thread.join()
    return found


@pytest.mark.parametrize("status", [Status.CRASHED, Status.TIMEOUT, Status.LAUNCH_ERROR])
def test_after_a_harmful_kernel_the_verdict_stands_and_a_sick_device_is_reported(status) -> None:
    judge = Judge(status, well=False)
    verdict, illness = answers(judge)
    assert verdict.status is status
    assert illness == Sick("cuda:0 computes wrongly")
    assert judge.pulse.asked == [5.0]


def test_a_device_that_is_well_goes_on_without_a_word() -> None:
    judge = Judge(Status.CRASHED, well=True)
    assert [found.status for found in answers(judge)] == [Status.CRASHED]


@pytest.mark.parametrize("status", [Status.OK, Status.INCORRECT, Status.HACK])
def test_harmless_kernels_cost_no_proof(status) -> None:
    judge = Judge(status, well=False)
    assert [found.status for found in answers(judge)] == [status]
    assert judge.pulse.asked == []


def test_where_the_judge_fails_on_a_sick_device_the_device_is_to_blame() -> None:
    assert answers(Judge(None, well=False)) == [Sick("cuda:0 computes wrongly")]
    (fault,) = answers(Judge(None, well=True))
    assert isinstance(fault, Fault)
    assert "unspecified launch failure" in fault.message


def test_a_sick_device_is_the_callers_business() -> None:
    assert issubclass(pulse.DeviceSick, UserError)


def test_what_a_person_can_mend_is_told_without_a_traceback(monkeypatch) -> None:
    judge = Judge(Status.OK, well=True)
    busy = pulse.DeviceShared("cuda:0 is too busy; end that, and call again")
    monkeypatch.setattr(judge, "evaluate", lambda *_: (_ for _ in ()).throw(busy))
    assert answers(judge) == [Fault("cuda:0 is too busy; end that, and call again")]
