"""Audits of tasks: whether a verdict on them can mean anything. Needs no torch in this process.

find_tasks      task files under files and folders
audits          the audit of each, in a process that may take what it wants
require_sound   raises TaskError for a task that is refused; for the beginning of a run
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from cuda_sandbox.cache import cache_dir, write_json
from cuda_sandbox.children import environment
from fitness.audit.record import Audit, Job, Outcome, from_json, to_json
from fitness.errors import TaskError
from fitness.evaluation import Demand
from fitness.task import task_key

__all__ = ["Audit", "Job", "Outcome", "audits", "find_tasks", "require_sound"]

_KEPT = (Outcome.SOUND, Outcome.STRENGTHENED, Outcome.REFUSED)


def find_tasks(places: Sequence[Path]) -> list[Path]:
    """The files named, and in folders every ``.py`` file that speaks of a ``Model``, sorted.

    Raises TaskError where there is no such file or folder, or nothing in it.
    """
    found: list[Path] = []
    for place in places:
        if place.is_dir():
            inside = [path for path in sorted(place.rglob("*.py")) if _looks_like_a_task(path)]
            if not inside:
                raise TaskError(f"{place}: no task file (.py with a class Model) lies in there")
            found += inside
        elif place.is_file():
            found.append(place)
        else:
            raise TaskError(f"{place}: there is no such file or folder")
    return list(dict.fromkeys(found))


def _looks_like_a_task(path: Path) -> bool:
    hidden = any(part.startswith((".", "__")) for part in path.parts if part not in (".", ".."))
    return not hidden and b"class Model" in path.read_bytes()


def audits(jobs: Sequence[Job]) -> Iterator[Audit]:
    """The audit of each job, in order, as soon as it is known; no task stops the others."""
    known = [_known(job) for job in jobs]
    missing = [job for job, audit in zip(jobs, known, strict=True) if audit is None]
    fresh = _asked(missing)
    for job, audit in zip(jobs, known, strict=True):
        if audit is not None:
            yield audit
            continue
        found = next(fresh)
        _keep(job, found)
        yield found


def require_sound(path: Path, demand: Demand, device: str) -> Audit:
    """The audit of a task that is going to be used. Raises TaskError where that is no use."""
    (audit,) = audits([Job(path, demand, device)])
    if audit.outcome is Outcome.REFUSED:
        raise TaskError(f"{path}: the audit refuses this task: {audit.summary}")
    if audit.outcome is Outcome.BROKEN:
        raise TaskError(audit.reason)
    return audit


def _asked(jobs: Sequence[Job]) -> Iterator[Audit]:
    """Audits from a worker; one that dies is begun again with the job after."""
    rest = list(jobs)
    while rest:
        for audit in _from_worker(tuple(rest)):
            rest.pop(0)
            yield audit
        if rest:
            job = rest.pop(0)
            yield Audit(str(job.path), Outcome.BROKEN, f"{job.path}: the audit's process died")


def _from_worker(jobs: Sequence[Job]) -> Iterator[Audit]:
    on_gpu = any(job.device != "cpu" for job in jobs)
    # Asking CUDA itself whether it is there starts it in the worker: no fork could use it then.
    hidden = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"} if on_gpu else {"CUDA_VISIBLE_DEVICES": ""}
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "fitness.audit.worker", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(**hidden),
        text=True,
    ) as worker:
        try:
            assert worker.stdin is not None
            assert worker.stdout is not None
            for job in jobs:
                worker.stdin.write(job.line() + "\n")
                worker.stdin.flush()
                line = worker.stdout.readline()
                if not line:
                    return
                yield from_json(json.loads(line))
        except BrokenPipeError:
            return
        finally:
            worker.kill()  # its forks die with it


def _known(job: Job) -> Audit | None:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        found = from_json(json.loads(_entry(job).read_text()))
        return replace(found, task=str(job.path))
    return None


def _keep(job: Job, audit: Audit) -> None:
    """Into the cache; one that cannot be written costs time, nothing else."""
    # a reason may name the file's place, and what a task imports may change while it stays the same
    if audit.outcome not in _KEPT or audit.reason or audit.beside:
        return
    with contextlib.suppress(OSError):
        write_json(_entry(job), to_json(audit))


def _entry(job: Job) -> Path:
    """Where an audit is kept: by task, demand, device and our own sources."""
    text = "\0".join((task_key(job.path), str(job.demand), job.device, *_ours()))
    return cache_dir() / "audits" / f"{hashlib.sha256(text.encode()).hexdigest()}.json"


@functools.cache
def _ours() -> tuple[str, ...]:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return tuple(hashlib.sha256(source.read_bytes()).hexdigest() for source in sources)
