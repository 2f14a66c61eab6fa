"""One compilation: a jailed compiler process with limits and a deadline, then the symbol screen."""

from __future__ import annotations

import contextlib
import re
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from cuda_sandbox.backend import Backend
from cuda_sandbox.cache import replacing
from cuda_sandbox.elf import read_symbols
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CompileReport, Status
from cuda_sandbox.tool import Tool, job_folder, limited, read_log, run_tool

_LOG_CHARS = 4000
_SWEEP_AFTER_S = 3600.0


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be compiled."""

    backend: Backend
    kernel: Kernel
    header: str
    arch: str


class Built:
    """The job's folder with the object in it; gone when the ``with`` block ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def path(self) -> Path:
        """The shared object."""
        return self._folder / "out" / "kernel.so"

    def move_to(self, target: Path) -> None:
        """Put the object in its place in one step."""
        with replacing(target) as part:
            self.path.replace(part)

    def __enter__(self) -> Built:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def run(
    job: Job, root: Path, deadline_s: float, stop: threading.Event
) -> tuple[CompileReport, Built]:
    """Compile and screen; ``stop`` ends it early (then the status is ``timeout``)."""
    folder = job_folder(root)
    with contextlib.ExitStack() as stack:
        built = stack.enter_context(Built(folder))
        _write_sources(job, folder)
        started = time.monotonic()
        code = _execute(job, folder, deadline_s, stop)
        seconds = time.monotonic() - started
        report = _judge(job, code, seconds, read_log(folder), built, deadline_s)
        stack.pop_all()  # the folder is the caller's now
    return report, built


def sweep(root: Path) -> None:
    """Remove what killed processes left behind."""
    for folder in (root / "jobs").glob("*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - folder.stat().st_mtime > _SWEEP_AFTER_S:
                shutil.rmtree(folder, ignore_errors=True)


def _write_sources(job: Job, folder: Path) -> None:
    (folder / "src" / "header.h").write_text(job.header, encoding="utf-8")
    source = folder / "src" / f"kernel{job.backend.suffix}"
    source.write_text(job.kernel.source, encoding="utf-8", errors="replace")


def _execute(job: Job, folder: Path, deadline_s: float, stop: threading.Event) -> int | None:
    """The compiler's exit code, or None if it was killed at its deadline."""
    compiler = job.backend.command(job.arch, job.kernel.flags)
    macros = [f"-D{name}" for name in job.backend.defines(job.kernel.source, job.header)]
    files = ["-include", "header.h", f"kernel{job.backend.suffix}", "-o", "../out/kernel.so"]
    command = limited([*compiler, *macros, *files], deadline_s)
    return run_tool(Tool(command, job.backend.toolchain(), folder), deadline_s, stop)


def _judge(
    job: Job, code: int | None, seconds: float, log: str, built: Built, deadline_s: float
) -> CompileReport:
    if code is None:
        reason = f"the compiler was stopped after {deadline_s:g} s"
        return CompileReport(Status.TIMEOUT, reason, None, seconds)
    text = _compact(log, built.path.parent.parent)
    if code != 0 or not built.path.is_file():
        return CompileReport(
            Status.COMPILE_ERROR, _first_error(text, code), None, seconds, log=text
        )
    if complaint := _screen(job, built.path):
        return CompileReport(Status.REJECTED, complaint, None, seconds, log=_warnings(text))
    return CompileReport(
        Status.OK, "", None, seconds, resources=job.backend.resources(log), log=_warnings(text)
    )


def _screen(job: Job, path: Path) -> str:
    try:
        return job.backend.rules.complaint(read_symbols(path))
    except ValueError:
        return "the compiler's output is no shared object of this machine"


def _compact(log: str, folder: Path) -> str:
    """The log without paths of this host, from the first error on, cut to a size fit to be read."""
    log = re.sub(rf"{re.escape(str(folder))}/(?:src|out)/|/(?:src|out)/", "", log)
    log = re.sub(r"/tmp/[\w.+-]+", "(temporary file)", log)
    found = re.search(r"^.*\berror\b", log, re.MULTILINE | re.IGNORECASE)
    log = log[found.start() :] if found else log
    return log if len(log) <= _LOG_CHARS else log[:_LOG_CHARS] + "\n(cut)"


def _first_error(log: str, code: int) -> str:
    lines = [line.strip() for line in log.splitlines() if re.search(r"\berror\b", line, re.I)]
    return lines[0][:300] if lines else f"the compiler ended with code {code} and without a message"


def _warnings(log: str) -> str:
    """What an author should read although it compiled: warnings and the assembler's advice."""
    lines = [line for line in log.splitlines() if re.search(r"warning|\(C7\d\d\d\)", line)]
    return "\n".join(lines)[:_LOG_CHARS]
