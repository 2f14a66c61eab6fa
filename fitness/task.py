"""A task: a KernelBench-format file, described without its data or loaded with it.

`describe` needs no torch in the calling process: a child runs the file under fake tensors, with a
deadline. `load` runs it for real, in a judge's process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuda_sandbox.cache import cache_dir, write_json
from cuda_sandbox.children import environment, group
from fitness.description import TaskDescription, from_json
from fitness.errors import TaskError

if TYPE_CHECKING:
    from fitness.loaded import LoadedTask

_START_S = 60.0  # for importing torch, before the child's own deadline (which names the line) runs


def describe(path: str | Path, deadline_s: float = 60.0) -> TaskDescription:
    """The task in the file at ``path``, without allocating its data.

    A child process does the work within ``deadline_s`` seconds, torch's import not counted; the
    answer is kept in the user's cache. Raises TaskError with one clear message if the file is
    broken or not supported.
    """
    path = Path(path)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise TaskError(f"{path}: cannot be read: {error.strerror}") from error
    entry = cache_dir() / "descriptions" / f"{_key(path, source)}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return from_json(json.loads(entry.read_text()))
    answer = _ask_child(path, deadline_s)
    if not answer["beside"]:  # what it imports may change while the file stays the same
        with contextlib.suppress(OSError):  # a cache that cannot be written only costs time
            write_json(entry, answer)
    return from_json(answer)


def load(path: str | Path, device: str = "cpu", seed: int = 42) -> LoadedTask:
    """The task with its real model on ``device``, whose weights are drawn with ``seed``.

    For a judge's process: imports torch and runs the file here. Raises TaskError as `describe`.
    """
    from fitness.loaded import LoadedTask

    return LoadedTask.load(Path(path), describe(path), device, seed)


def task_key(path: Path) -> str:
    """What all that is kept of a task depends on: its content and name, torch, our own sources.

    Raises OSError.
    """
    return _key(path, path.read_bytes())


def _key(path: Path, source: bytes) -> str:
    """Names a description: the task's content and name, torch's version and our own sources."""
    digest = hashlib.sha256()
    for part in (source, path.stem.encode(), _versions()):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


@functools.cache
def _versions() -> bytes:
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        raise TaskError("PyTorch is not installed: pip install torch") from None
    # all of this package: a list of those that matter would one day lack one
    sources = sorted(Path(__file__).parent.glob("*.py"))
    ours = b"".join(source.read_bytes() for source in sources)
    return hashlib.sha256(torch.encode() + ours).digest()


def _ask_child(path: Path, deadline_s: float) -> dict[str, Any]:
    """Run ``python -m fitness.describe`` and read its answer. Raises TaskError."""
    with tempfile.TemporaryDirectory(prefix="kernelevo-") as folder:
        answer, errors = Path(folder, "answer.json"), Path(folder, "stderr")
        code = _run_child(path, answer, errors, deadline_s)
        if not answer.exists():
            raise TaskError(_death(path, code, errors.read_text(errors="replace"), deadline_s))
        data: dict[str, Any] = json.loads(answer.read_text())
    if "error" in data:
        raise TaskError(data["error"])
    return data


def _run_child(path: Path, answer: Path, errors: Path, deadline_s: float) -> int | None:
    """The child's exit code, or None if it had to be killed at the deadline."""
    command = [sys.executable, "-P", "-m", "fitness.describe", str(path.resolve()), str(answer)]
    with (
        errors.open("wb") as stderr,
        group(
            [*command, str(deadline_s), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            # describing must not touch, or wait for, a device
            env=environment(CUDA_VISIBLE_DEVICES=""),
        ) as child,
    ):
        try:
            return child.wait(deadline_s + _START_S)
        except subprocess.TimeoutExpired:
            return None


def _death(path: Path, code: int | None, stderr: str, deadline_s: float) -> str:
    """What to say of a child that left no answer."""
    frame = re.search(rf'File "{re.escape(str(path.resolve()))}", line (\d+)', stderr)
    where = f"{path}:{frame[1]}" if frame else str(path)
    if code is None or "Timeout (" in stderr:
        return (
            f"{where}: still running after {deadline_s:g} s while the task was described; "
            "importing it, its constructor, get_inputs() or forward hangs or is very slow"
        )
    tail = " | ".join(line for line in stderr.strip().splitlines()[-3:])
    how = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
    return f"{where}: the process that ran the task {how}{': ' + tail if tail else ''}"
