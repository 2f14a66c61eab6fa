"""Prepare a module: its folder, and what its process cannot build for itself.

A module that builds extensions (load_inline, Triton) is rehearsed: imported, made and called once
in a compiler's jail, with compilers, a folder to write to, and nothing of the judge's. The worker
then finds everything built and starts no program. What was built is kept in the cache.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cuda_sandbox import isolation, toolchain
from cuda_sandbox.cache import cache_dir, limit_bytes, touch
from cuda_sandbox.programs import only_one
from cuda_sandbox.report import CompileReport, Status
from cuda_sandbox.slot import compile_slot
from cuda_sandbox.tool import Tool, limited, read_log, run_tool
from cuda_sandbox.wording import STATUS
from fitness.module.jail import CACHES, Place, rehearsal_command, rehearsal_tools
from fitness.module.runner.orders import KERNEL, REPORT

BUILD_S = 600.0
"""What a rehearsal may take: nvcc needs 50 to 100 s for torch's headers."""

_BUILDS = re.compile(r"cpp_extension|triton|tilelang|cupy|torch\.compile|_inductor|nvrtc")
_FORMAT = "2"
_GRACE_S = 3600.0
_DONE = "done.json"


@dataclass(frozen=True, slots=True)
class Folder:
    """Where a prepared module lies: ``told`` for its process to read, ``built`` its extensions."""

    path: Path

    @classmethod
    def of(cls, key: str) -> Folder:
        """The folder of a report's ``object_key``."""
        return cls(cache_dir() / "modules" / key)

    @property
    def told(self) -> Path:
        """Our files."""
        return self.path / "src"

    @property
    def built(self) -> Path:
        """What the rehearsal left."""
        return self.path / "out"


def prepare(
    files: Mapping[str, bytes], place: Place, arch: str, deadline_s: float = BUILD_S
) -> CompileReport:
    """The module ready to run, or why it cannot be. ``arch`` is the chip's, ``sm_90``."""
    key = _key(files, place, arch)
    folder = Folder.of(key)
    _evict()
    folder.path.parent.mkdir(parents=True, exist_ok=True)
    with only_one(folder.path.with_suffix(".lock")):
        if report := _known(folder, key):
            return report
        shutil.rmtree(folder.path, ignore_errors=True)
        _write(folder, files)
        started = time.monotonic()
        status, reason = Status.OK, ""
        if _BUILDS.search(files[KERNEL].decode("utf-8", "replace")):
            with compile_slot():
                status, reason = _rehearse(folder, place, arch, deadline_s)
        seconds = time.monotonic() - started
        done = {"status": status, "reason": reason, "seconds": seconds}
        if status is not Status.TIMEOUT:
            (folder.path / _DONE).write_text(json.dumps(done), encoding="utf-8")
        return _report(done, key, cached=False)


def _write(folder: Folder, files: Mapping[str, bytes]) -> None:
    caches = (folder.built / name for name in CACHES)  # a worker could not make them
    for path in (folder.told, folder.built, *caches):
        path.mkdir(parents=True)
    for name, data in files.items():
        (folder.told / name).write_bytes(data)


def _rehearse(folder: Folder, place: Place, arch: str, deadline_s: float) -> tuple[Status, str]:
    jailed = not isolation.namespaces_missing()
    command = rehearsal_command("/src" if jailed else str(folder.told))
    if not place.is_cuda:
        command = tuple(limited(command, deadline_s))
    tools = rehearsal_tools(place, folder.built, arch)
    tool = Tool(command, tools, folder.path, proc=place.is_cuda)
    code = run_tool(tool, deadline_s)
    if code is None:
        return Status.TIMEOUT, f"building its extensions was stopped after {deadline_s:g} s"
    told = _told(folder.built / REPORT)
    if told is None:
        return (
            Status.CRASHED,
            f"the process ended with code {code} while it was built: {_last(folder)}",
        )
    failure, reason = told
    return (STATUS.get(failure, Status.CRASHED), reason) if failure else (Status.OK, "")


def _told(path: Path) -> tuple[int, str] | None:
    """The rehearsal's word, which is the candidate's to forge: all it can win is a worker."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        with path.open("rb") as file:
            told: Any = json.loads(file.read(1 << 16))
        return int(told["failure"] or 0), " ".join(str(told["reason"]).split())[:500]
    return None


def _last(folder: Folder) -> str:
    lines = [line.strip() for line in read_log(folder.path).splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it printed nothing"


def _known(folder: Folder, key: str) -> CompileReport | None:
    with suppress(OSError, ValueError, KeyError):
        done = json.loads((folder.path / _DONE).read_text(encoding="utf-8"))
        touch(folder.path)
        return _report(done, key, cached=True)
    return None


def _report(done: Mapping[str, Any], key: str, *, cached: bool) -> CompileReport:
    status = Status(done["status"])
    found = key if status is Status.OK else None
    return CompileReport(status, done["reason"], found, done["seconds"], cached=cached)


def _key(files: Mapping[str, bytes], place: Place, arch: str) -> str:
    toolkit = toolchain.cuda_toolkit() if place.is_cuda else None
    compiler = toolchain.host_compiler()
    tools = [
        *(toolchain.version(str(toolkit / "bin" / "nvcc")) for _ in (1,) if toolkit),
        *(toolchain.version(compiler) for _ in (1,) if compiler),
    ]
    versions = [_FORMAT, platform.python_version(), torch.__version__, place.kind, arch, *tools]
    digest = hashlib.sha256("\0".join(versions).encode())
    for name in sorted(files):
        digest.update(hashlib.sha256(files[name]).digest())
    return digest.hexdigest()


def _evict() -> None:
    """Remove the least recently used folders until the rest fits into the cache's limit."""
    folders = sorted(
        (path for path in (cache_dir() / "modules").glob("*") if path.is_dir()),
        key=lambda path: path.stat().st_mtime,
    )
    sizes = {
        path: sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) for path in folders
    }
    total = sum(sizes.values())
    for path in folders:
        if total <= limit_bytes() or time.time() - path.stat().st_mtime < _GRACE_S:
            break
        shutil.rmtree(path, ignore_errors=True)
        total -= sizes[path]
