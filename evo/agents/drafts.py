"""Judges drafts on this machine's device; the run does not hear of them."""

from __future__ import annotations

import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from evo.config import restore
from evo.executor import Executor, Job
from evo.executors.local import LocalExecutor
from evo.machine import DeviceMissing, survey
from evo.store import Store
from fitness.evaluation import Evaluation


@dataclass(frozen=True, slots=True)
class Bench:
    """A run's judge on this machine, kept warm, with the folder that its task's file lies in."""

    executor: Executor
    place: tempfile.TemporaryDirectory[str]


class Drafts:
    """One bench for each run that drafts were made for. Safe to call from several threads."""

    def __init__(self) -> None:
        self._benches: dict[Path, Bench] = {}
        self._lock = threading.Lock()

    def judge(self, folder: Path, kernel: Kernel) -> Evaluation:
        """The verdict on ``kernel`` for the run in ``folder``. Raises UserError where none can be.

        A cheat is not told how it was found out.
        """
        with self._lock:
            bench = self._benches.get(folder) or _bench(folder)
            self._benches[folder] = bench
        found = bench.executor.submit(Job(kernel)).result()
        return replace(found, reason="") if found.status is Status.HACK else found

    def close(self) -> None:
        """Stop all judges."""
        for bench in self._benches.values():
            bench.executor.close()
            bench.place.cleanup()


def _bench(folder: Path) -> Bench:
    with Store.open(folder) as store:
        info = store.info
    config = restore(info.config, f"{folder.name}'s configuration")
    machine = survey(config.devices, config.require, config.cpu.threads)
    if machine.language != info.language:
        raise DeviceMissing(
            f"{folder.name} evolves {info.language} kernels, which {', '.join(machine.devices)} "
            f"cannot run: drafts of it are judged on a machine with its device"
        )
    place = tempfile.TemporaryDirectory(prefix="kernelevo-drafts-")
    task = Path(place.name) / Path(config.task).name
    task.write_text(info.task.source, encoding="utf-8")
    return Bench(LocalExecutor(machine, task, info.task.signature, info.demand), place)
