"""Run a compiler or another tool over a candidate's source: jailed, limited, killed in time."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cuda_sandbox import isolation
from cuda_sandbox.cache import cache_dir
from cuda_sandbox.children import wait_for
from cuda_sandbox.isolation import Jail, Mount
from cuda_sandbox.programs import build
from cuda_sandbox.toolchain import Toolchain, host_compiler

_MEMORY_KB = 8 << 20  # per process; nvcc's parts reserve far more than they use
_FILE_BLOCKS = (256 << 20) // 512
_TMP_BYTES = 1 << 30
_LOG_BYTES = 1 << 20
_LIMITED = 'ulimit -v "$1"; ulimit -t "$2"; ulimit -f "$3"; ulimit -c 0; shift 3; exec "$@"'


@dataclass(frozen=True, slots=True)
class Tool:
    """A command run in ``folder/src`` (read-only inside), which may write to ``folder/out``.

    The command names its files relative to ``src``: as ``kernel.cpp`` and ``../out/kernel.so``.
    """

    command: Sequence[str]
    toolchain: Toolchain
    folder: Path
    proc: bool = False
    log: str = "log"  # what it prints goes to this file in ``folder``


def job_folder(root: Path) -> Path:
    """A fresh folder for one job, with ``src`` and ``out`` in it; the caller removes it."""
    (root / "jobs").mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=root / "jobs"))
    for name in ("src", "out"):
        (folder / name).mkdir()
    return folder


def limited(command: Sequence[str], seconds: float) -> list[str]:
    """The command with limits on memory, CPU time and file sizes of each of its processes."""
    limits = [str(_MEMORY_KB), str(int(seconds) + 1), str(_FILE_BLOCKS)]
    return ["/bin/sh", "-c", _LIMITED, "sh", *limits, *command]


def run_tool(tool: Tool, deadline_s: float, stop: threading.Event | None = None) -> int | None:
    """The exit code, or None if it was killed (at its deadline, or because ``stop`` was set).

    What it prints is in the tool's log file.
    """
    inside = not isolation.namespaces_missing()
    with (tool.folder / tool.log).open("wb") as log:
        process = subprocess.Popen(
            [*(_enter(tool) if inside else _confine(tool)), *tool.command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={} if inside else _plain_environment(tool),
            cwd=tool.folder / "src",
            start_new_session=True,
        )
    return _wait(process, time.monotonic() + deadline_s, stop)


def read_log(folder: Path, name: str = "log") -> str:
    """What the tool printed, cut at 1 MiB."""
    with (folder / name).open("rb") as log:
        return log.read(_LOG_BYTES).decode("utf-8", "replace")


def _wait(
    process: subprocess.Popen[bytes], deadline: float, stop: threading.Event | None
) -> int | None:
    try:
        while (left := deadline - time.monotonic()) > 0 and not (stop and stop.is_set()):
            # Short waits, so that ``stop`` is heard.
            if (code := wait_for(process, min(0.5, left))) is not None:
                return code
        return None
    finally:
        if process.returncode is None:
            # Killing bubblewrap ends its PID namespace; without one the group is all there is.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _enter(tool: Tool) -> list[str]:
    mounts = (
        *tool.toolchain.mounts,
        Mount(Path("/dev/null"), device=True),
        Mount(tool.folder / "src", "/src"),
        Mount(tool.folder / "out", "/out", writable=True),
    )
    proc = tool.proc and isolation.proc_mountable()
    return isolation.enter(
        Jail(mounts, tool.toolchain.environment, proc, _TMP_BYTES, directory="/src")
    )


def _confine(tool: Tool) -> list[str]:
    """Without namespaces: Landlock around the tool, as far as the kernel has it."""
    command = [str(host_compiler()), "-O1", "-std=c++17"]
    program = build("confine", ("confine.cpp", "jail.hpp", "seccomp.hpp"), command, cache_dir())
    readable = [mount.source for mount in tool.toolchain.mounts if not mount.device]
    writable = [tool.folder / "out", Path("/dev/null")]
    writable += [mount.source for mount in tool.toolchain.mounts if mount.device]
    readable += [tool.folder / "src", *([Path("/proc")] if tool.proc else [])]
    pairs = [("--read", path) for path in readable] + [("--write", path) for path in writable]
    return [str(program), *(str(word) for pair in pairs for word in pair), "--"]


def _plain_environment(tool: Tool) -> dict[str, str]:
    return {**tool.toolchain.environment, "TMPDIR": str(tool.folder / "out")}
