"""Python modules: KernelBench's ``ModelNew``, on the CPU and on a GPU."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CompileReport, Status
from cuda_sandbox.sandbox import Worker
from cuda_sandbox.signature import Signature
from fitness.evaluation import Execution
from fitness.languages._language import Language

if TYPE_CHECKING:
    from fitness.arena import Arena
    from fitness.judge import Judge


class Module(Language):
    """A Python file with a class ``ModelNew``, in a jailed Python of its own."""

    name = "module"
    suffix = ".py"
    devices = ("cuda", "cpu")
    idle_ms = math.inf  # it is Python too, which copies inputs and outputs
    in_rows = False  # Python between the calls would be more than what clocks may differ by

    def compile(self, kernel: Kernel, judge: Judge) -> CompileReport:
        """Its extensions built. Raises TaskError where the task cannot be told to it."""
        from fitness.module.building import prepare
        from fitness.module.jail import Place
        from fitness.module.orders import contents

        if kernel.flags:
            reason = "a module takes no compiler flags: give them to its own load_inline"
            return CompileReport(Status.REJECTED, reason, None, 0.0)
        place = Place(judge.device.type, str(judge.device))
        judge.berths.fill(place, judge.threads)
        return prepare(contents(judge.task, kernel.source), place, judge.arch)

    def worker(self, compiled: CompileReport, judge: Judge, arena: Arena) -> Worker:
        """A Python with the module in it."""
        from fitness.module.building import Folder
        from fitness.module.jail import Place
        from fitness.module.worker import ModuleWorker

        assert compiled.object_key is not None
        folder = Folder.of(compiled.object_key)
        place = Place(judge.device.type, str(judge.device))
        return ModuleWorker(
            place,
            folder,
            judge.berths,
            arena.buffers,
            threads=judge.threads,
            deadline_s=judge.deadline_s + (judge.tuning_s if place.is_cuda else 0.0),
        )

    def execution(self, worker: Worker) -> Execution | None:
        """Kernels and operators of one call, as its own process tells."""
        from fitness.module.worker import ModuleWorker

        assert isinstance(worker, ModuleWorker)
        return worker.execution()

    def digest(self, kernel: Kernel, signature: Signature) -> str:
        """Of the text: in Python white space counts."""
        del signature
        return hashlib.sha256(kernel.source.encode()).hexdigest()


def make() -> Language:
    """The language."""
    return Module()
