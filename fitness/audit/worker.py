"""The process that audits: ``python -m fitness.audit.worker PARENT``.

A line on stdin is a job, a line on stdout its audit, in the same order. PyTorch is imported once;
each task then runs in forks of its own with a deadline. It may crash, hang, use up its memory or
change global settings, and the next one does not notice.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import torch

from cuda_sandbox.children import die_with
from fitness.audit.record import Audit, Job, Outcome, from_json, to_json
from fitness.audit.steps import finish, prepare
from fitness.describe import describe_here

Answer = dict[str, Any]


def audited(job: Job) -> Audit:
    """The audit of one task, whatever becomes of the processes that run it."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kernelevo-audit-") as name:
        folder = Path(name)
        answer = _forked(partial(prepare, job, folder), folder / "prepared", job)
        if "audit" not in answer:
            left = job.deadline_s - (time.monotonic() - started)
            rest = replace(job, deadline_s=max(1.0, left))
            answer = {"audit": _forked(partial(finish, rest, answer), folder / "audit", rest)}
    found = from_json(answer["audit"].get("audit", answer["audit"]))
    return replace(found, seconds=round(time.monotonic() - started, 2))


def _forked(work: Callable[[], Answer], place: Path, job: Job) -> Answer:
    """What ``work`` answers in a fork; an audit under ``audit`` that says how the fork died."""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _work(work, place, parent)
    status = _ended(child, job.deadline_s)
    if place.exists():
        answer: Answer = json.loads(place.read_text())
        return answer
    return {"audit": to_json(_lost(job, status, place.with_suffix(".stderr")))}


def _work(work: Callable[[], Answer], place: Path, parent: int) -> NoReturn:
    """In the fork: answer in the file ``place`` and end."""
    try:
        os.setsid()
        die_with(parent)
        _redirect(place.with_suffix(".stderr"))
        part = place.with_suffix(".part")
        part.write_text(json.dumps(work()))
        part.replace(place)
    except BaseException as error:  # noqa: BLE001  a fork must never return into its parent's loop
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def _redirect(errors: Path) -> None:
    """Stdin and stdout to nowhere (they are the parent's), stderr into a file."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)


def _ended(child: int, deadline_s: float) -> int | None:
    """The exit code, negative for a signal; None if it had to be killed at the deadline."""
    descriptor = os.pidfd_open(child)
    try:
        in_time, _, _ = select.select([descriptor], [], [], deadline_s)
    finally:
        os.close(descriptor)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    if not in_time:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if in_time else None


def _lost(job: Job, status: int | None, errors: Path) -> Audit:
    if status is None:
        why = f"still running after {job.deadline_s:.0f} s (--deadline allows more)"
        return Audit(str(job.path), Outcome.NOT_AUDITED, why)
    said = errors.read_text(errors="replace") if errors.exists() else ""
    tail = " | ".join(said.strip().splitlines()[-3:])
    how = f"was killed by signal {-status}" if status < 0 else f"exited with code {status}"
    why = f"{job.path}: the process that ran the task {how}{': ' + tail if tail else ''}"
    return Audit(str(job.path), Outcome.BROKEN, why)


_TINY = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.zeros(2)]
"""


def _warm_up() -> None:
    """Import what torch imports when it is first used: a second or two, once and not in each fork.

    On one thread: a fork has none of its parent's.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="kernelevo-audit-") as folder:
        path = Path(folder, "warm_up.py")
        path.write_text(_TINY)
        describe_here(path)
    torch.set_num_threads(threads)


def main() -> None:
    """Audit what stdin names until it ends."""
    die_with(parent=int(sys.argv[1]))
    warnings.simplefilter("ignore")
    _warm_up()
    for line in sys.stdin:
        print(json.dumps(to_json(audited(Job.read(line)))), flush=True)


if __name__ == "__main__":
    main()
