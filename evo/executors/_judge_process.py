"""A judge in a process of its own: takes orders from a socket, answers with verdicts.

Started by ``evo.executors._bench`` as ``python -m evo.executors._judge_process FD PARENT``.
"""

from __future__ import annotations

import signal
import sys
import traceback
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_sandbox.children import die_with
from cuda_sandbox.errors import UserError
from cuda_sandbox.report import CompileReport, Status
from evo import __version__
from evo.executor import Job, Purpose
from fitness.certificate import SANITIZER_S, Terms
from fitness.evaluation import Demand, Evaluation

if TYPE_CHECKING:
    from fitness.judge import Judge


@dataclass(frozen=True, slots=True)
class Post:
    """Where a judge sits: its task, what it demands, on which device, with how many threads.

    ``sanitizer_s`` bounds each sanitizer of a certification. ``pulse_ms`` is what known work took
    the device when all was well, as an earlier judge there found; None for the first.
    """

    task_path: Path
    demand: Demand
    device: str
    threads: int | None
    sanitizer_s: float = SANITIZER_S
    pulse_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """A job with the compiler's reports on its kernel and on its rivals."""

    job: Job
    compiled: CompileReport
    rivals: tuple[CompileReport, ...] = ()


@dataclass(frozen=True, slots=True)
class Ready:
    """The judge is in its place; ``hardware`` is what its figures carry.

    ``pulse_ms`` is what known work takes the device; None for one that needs no such proof.
    """

    hardware: str
    pulse_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """We failed, not the candidate."""

    message: str


@dataclass(frozen=True, slots=True)
class Sick:
    """The device does not compute as it did; nothing that is judged on it can be believed."""

    message: str


# After one of these a device is proved healthy before the next kernel is judged on it.
HARMFUL = frozenset({Status.CRASHED, Status.TIMEOUT, Status.LAUNCH_ERROR})


def main() -> None:
    """Serve until the other side closes the socket."""
    descriptor, parent = map(int, sys.argv[1:3])
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the engine, which ends us
    connection = Connection(descriptor)
    try:
        serve(connection, connection.recv())
    except (EOFError, BrokenPipeError):
        return


def serve(connection: Connection, post: Post) -> None:
    """Take the post up, then answer orders one after the other."""
    from cuda_sandbox.compiler import Compiler
    from fitness.judge import Judge
    from fitness.pulse import DeviceSick

    with Compiler() as compiler:
        try:
            judge = Judge(
                post.task_path, post.demand, post.device, compiler=compiler, threads=post.threads
            )
        except DeviceSick as sick:
            connection.send(Sick(str(sick)))
            return
        except UserError as error:
            connection.send(Fault(str(error)))
            return
        if why := unwell(judge, post.pulse_ms):
            connection.send(Sick(why))
            return
        connection.send(Ready(judge.name, judge.pulse.usual_ms if judge.pulse else None))
        while True:
            attend(connection, judge, post)


def attend(connection: Connection, judge: Judge, post: Post) -> None:
    """Answer one order; then, if it may have harmed the device, say so where it did.

    After that no order is answered: the engine ends this process.
    """
    found = answer(judge, connection.recv(), post.sanitizer_s)
    harmful = isinstance(found, Fault) or found.status in HARMFUL
    why = unwell(judge, post.pulse_ms) if harmful else ""
    connection.send(Sick(why) if why and isinstance(found, Fault) else found)
    if why and not isinstance(found, Fault):
        connection.send(Sick(why))
    while why:
        connection.recv()


def unwell(judge: Judge, pulse_ms: float | None = None) -> str:
    """Why the device cannot be trusted any more; empty if known work goes as it always did."""
    from fitness.pulse import DeviceSick

    try:
        if judge.pulse is not None:
            judge.pulse.prove(pulse_ms)
    except DeviceSick as sick:
        return str(sick)
    return ""


def answer(judge: Judge, order: Order, sanitizer_s: float = SANITIZER_S) -> Evaluation | Fault:
    """The verdict; a Fault where judging itself failed."""
    try:
        if order.job.purpose is Purpose.SEARCH:
            return judge.evaluate(order.job.kernel, order.compiled)
        if order.job.purpose is Purpose.PROFILE:
            return profiled(judge, order.job)
        return certified(judge, order, Terms(sanitizer_s, made_by=f"kernelevo {__version__}"))
    except UserError as error:
        return Fault(str(error))
    except Exception:  # noqa: BLE001  # any: it must reach the engine, which knows what to do
        return Fault(traceback.format_exc())


def profiled(judge: Judge, job: Job) -> Evaluation:
    """What holds a kernel back, beside the verdict that is known."""
    from fitness.profile import profiled

    assert job.verdict is not None
    return replace(job.verdict, bottleneck=profiled(judge, job.kernel, job.verdict))


def certified(judge: Judge, order: Order, terms: Terms) -> Evaluation:
    """The certifying verdict, timed in one sitting with the rivals that compile."""
    from fitness.certify import certify

    pairs = zip(order.job.rivals, order.rivals, strict=True)
    names = ("parent", "other parent")
    rivals = {name: pair for name, pair in zip(names, pairs, strict=False) if pair[1].object_key}
    return certify(judge, (order.job.kernel, order.compiled), rivals, terms)


if __name__ == "__main__":
    # under its real name, so that what travels is pickled by that name
    from evo.executors import _judge_process

    _judge_process.main()
