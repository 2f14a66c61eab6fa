"""The languages of cuda_sandbox's backends: one translation unit behind a C interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_sandbox.backend import Backend
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CompileReport
from cuda_sandbox.sandbox import Worker
from cuda_sandbox.signature import Signature
from fitness.languages._language import Language

if TYPE_CHECKING:
    from fitness.arena import Arena
    from fitness.judge import Judge


class Native(Language):
    """Compiled by the judge's compiler, run by the backend's worker."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.name, self.suffix, self.devices = backend.name, backend.suffix, (backend.device,)

    def compile(self, kernel: Kernel, judge: Judge) -> CompileReport:
        """The compiler's report. Raises also ValueError: the judge's chip is unknown to it."""
        return judge.compiler.submit(kernel, judge.signature, judge.arch).result()

    def worker(self, compiled: CompileReport, judge: Judge, arena: Arena) -> Worker:
        """A worker with the compiled object."""
        assert compiled.object_key is not None
        return Worker(
            self._backend,
            judge.compiler.object_path(compiled.object_key),
            arena.buffers,
            device=str(judge.device),
            threads=judge.threads,
            deadline_s=judge.deadline_s,
        )

    def digest(self, kernel: Kernel, signature: Signature) -> str:
        """Of tokens, flags and header; comments and white space do not count."""
        return kernel.digest(signature.header(kernel.language))
