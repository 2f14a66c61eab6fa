"""The two steps of an audit, each for a process of its own: prepare the task, then examine it."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from fitness.audit.examine import examine
from fitness.audit.record import Audit, Job, Outcome, outcome_of, to_json
from fitness.audit.scale import Limits, smaller, tensor_bytes
from fitness.describe import describe_here
from fitness.description import TaskDescription, from_json
from fitness.description import to_json as described
from fitness.errors import TaskError, UnfitTask
from fitness.loaded import LoadedTask

_ON_CPU = Limits(tensor_bytes=8 << 20, flops=5e8)
_ON_GPU = Limits(tensor_bytes=2 << 30, flops=2e12)
_COPIES = 16  # seven contents with their truths in float64, and what comes and goes
_PATIENCE = 50  # a task that cannot be made smaller may be so many times larger than the limits
_SEED = 42


def prepare(job: Job, folder: Path) -> dict[str, Any]:
    """Describe the task, and put a smaller copy into ``folder`` where it is large.

    The answer has ``description``, ``path`` and ``sizes``, or ``audit`` where there is none.
    """
    try:
        description = describe_here(job.path)
        limits = _ON_CPU if job.device == "cpu" else _ON_GPU
        if limits.allow(description):
            return _prepared(job.path, description, ())
        copy = smaller(job.path, description, limits, folder)
    except TaskError as error:
        return {"audit": to_json(Audit(str(job.path), _outcome(error), str(error)))}
    if copy is not None:
        return _prepared(copy.path, copy.description, copy.sizes)
    if why := _too_large(job, description, limits):
        return {"audit": to_json(Audit(str(job.path), Outcome.NOT_AUDITED, why))}
    return _prepared(job.path, description, ())


def _prepared(path: Path, description: TaskDescription, sizes: tuple[str, ...]) -> dict[str, Any]:
    return {"path": str(path), "description": described(description), "sizes": sizes}


def finish(job: Job, prepared: dict[str, Any]) -> dict[str, Any]:
    """Load what `prepare` left, examine it, and answer with the audit."""
    started = time.monotonic()
    path = Path(prepared["path"])
    sys.path.append(str(job.path.parent))  # for what a copy imports from beside the file
    description = from_json(prepared["description"])
    audit = Audit(
        str(job.path),
        Outcome.SOUND,
        sizes=tuple(prepared["sizes"]),
        device=job.device,
        beside=description.beside,
    )
    try:
        task = LoadedTask.load(path, description, job.device, _SEED)
        found = examine(task, job.demand, started + 0.6 * job.deadline_s)
    except TaskError as error:
        reason = str(error).replace(str(path), str(job.path))
        return to_json(replace(audit, outcome=_outcome(error), reason=reason))
    except (MemoryError, torch.OutOfMemoryError) as error:
        reason = f"out of memory on {job.device}: {error}"
        return to_json(replace(audit, outcome=Outcome.NOT_AUDITED, reason=reason))
    return to_json(
        replace(
            audit,
            outcome=outcome_of(found.findings),
            findings=found.findings,
            distributions=found.distributions,
            left_out=found.left_out,
            further=found.further,
        )
    )


def _outcome(error: TaskError) -> Outcome:
    return Outcome.REFUSED if isinstance(error, UnfitTask) else Outcome.BROKEN


def _too_large(job: Job, description: TaskDescription, limits: Limits) -> str:
    """Why a task that has no smaller form is not audited; empty if it may be tried as it is."""
    need, have = _COPIES * tensor_bytes(description), free_bytes(job.device)
    if need > have:
        reason = f"it needs about {need / 2**30:.1f} GiB of memory, {have / 2**30:.1f} are free"
    elif limits.excess(description) > _PATIENCE:
        reason = f"it takes too long, with {(description.flops or 0) / 1e9:.0f} GFLOP for each call"
    else:
        return ""
    where = "on a GPU (--device cuda)" if job.device == "cpu" else "on a larger device"
    return (
        f"{reason}, and no constant that get_inputs() reads makes it smaller: "
        f"give its sizes names at the top of the file, or audit it {where}"
    )


def free_bytes(device: str) -> int:
    """Memory of ``device`` that an audit could take."""
    if device != "cpu":
        free, _ = torch.cuda.mem_get_info(torch.device(device))
        return int(free)
    lines = Path("/proc/meminfo").read_text().splitlines()
    kib = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    return min([kib << 10, *_group_limit()])


def _group_limit() -> list[int]:
    """What this process's control group leaves, where that limits memory."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit, used = (int((folder / f"memory.{name}").read_text()) for name in ("max", "current"))
    except (OSError, ValueError):
        return []
    return [limit - used]
