"""Compile candidates in parallel, each in a sandbox, each content only once."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

from cuda_sandbox import cache, compile_job
from cuda_sandbox.backend import find
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CompileReport, Resources, Status
from cuda_sandbox.signature import Signature
from cuda_sandbox.slot import compile_slot

_FORMAT = "1"  # change it when reports or objects of older versions must not be used
_EVICT_EVERY = 64  # compilations between looks at the cache's size


class Compiler:
    """A pool of sandboxed compilers over a content-addressed cache.

    ``jobs`` is the number of compilers that run at once (the cores, if None); ``deadline_s`` is
    what one compilation may take before its status is ``timeout``.

    Raises:
        BadLimit: KERNELEVO_CACHE_MB holds no size.
    """

    def __init__(
        self, cache_dir: Path | None = None, jobs: int | None = None, deadline_s: float = 60.0
    ) -> None:
        self._root = cache_dir or cache.cache_dir()
        self._objects = self._root / "objects"
        self._deadline_s = deadline_s
        self._limit = cache.limit_bytes()
        self._pool = ThreadPoolExecutor(jobs or len(os.sched_getaffinity(0)), "compile")
        self._running: dict[str, Future[CompileReport]] = {}
        self._lock = threading.Lock()
        self._compiled = 0
        self._stop = threading.Event()
        compile_job.sweep(self._root)

    def submit(self, kernel: Kernel, signature: Signature, arch: str) -> Future[CompileReport]:
        """Compile a kernel; what was compiled before, or is being compiled, is not done again.

        ``arch`` is ``native`` or a name for -march (cpp), ``sm_90a``, ``sm_89``, ... (cuda).

        Raises:
            ValueError: the language or the architecture is none.
            RuntimeError: this machine has no compiler for it.
        """
        backend = find(kernel.language)
        if complaint := backend.refused_flag(kernel.flags):
            return _done(CompileReport(Status.REJECTED, complaint, None, 0.0))
        if why := backend.missing():
            raise RuntimeError(why)
        header = signature.header(kernel.language)
        key = self.key(kernel, header, arch)
        with self._lock:
            if running := self._running.get(key):
                return running
            if report := self._look_up(key):
                return _done(report)
            future = self._pool.submit(self._compile, key, kernel, header, arch)
            self._running[key] = future
        future.add_done_callback(lambda _: self._forget(key))
        return future

    def key(self, kernel: Kernel, header: str, arch: str) -> str:
        """The name of a kernel's object in the cache: content, compiler, flags, architecture."""
        parts = [_FORMAT, kernel.digest(header), find(kernel.language).identity(arch)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def object_path(self, key: str) -> Path:
        """Where the shared object of a report's ``object_key`` lies."""
        return self._objects / key[:2] / f"{key}.so"

    def close(self) -> None:
        """Kill what is compiling, drop what waits, end the pool."""
        self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Compiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forget(self, key: str) -> None:
        with self._lock:
            self._running.pop(key, None)

    def _look_up(self, key: str) -> CompileReport | None:
        report_path = self.object_path(key).with_suffix(".json")
        try:
            report = _read_report(report_path.read_bytes())
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        if report.object_key is not None and not self.object_path(key).exists():
            return None
        cache.touch(report_path)
        cache.touch(self.object_path(key))
        return replace(report, cached=True)

    def _compile(self, key: str, kernel: Kernel, header: str, arch: str) -> CompileReport:
        job = compile_job.Job(find(kernel.language), kernel, header, arch)
        with compile_slot():
            report, built = compile_job.run(job, self._root, self._deadline_s, self._stop)
        with built:
            if report.status is Status.OK:
                report = replace(report, object_key=key)
                built.move_to(self.object_path(key))
        if report.status is not Status.TIMEOUT:  # a slow machine's word on it is not kept
            with cache.replacing(self.object_path(key).with_suffix(".json")) as part:
                part.write_text(json.dumps(asdict(report)), encoding="utf-8")
        self._limit_size()
        return report

    def _limit_size(self) -> None:
        with self._lock:
            self._compiled += 1
            due = self._compiled % _EVICT_EVERY == 1
        if due:
            cache.evict(self._objects, self._limit)


def _done(report: CompileReport) -> Future[CompileReport]:
    future: Future[CompileReport] = Future()
    future.set_result(report)
    return future


def _read_report(text: bytes) -> CompileReport:
    data = json.loads(text)
    resources = tuple(Resources(**item) for item in data.pop("resources"))
    return CompileReport(**{**data, "status": Status(data["status"]), "resources": resources})
