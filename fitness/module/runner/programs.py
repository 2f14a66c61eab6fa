"""Programs that extensions need: run in the rehearsal, and answered from memory in the worker.

Triton asks ``ptxas --version`` and ``ldconfig -p`` also when everything is compiled, and torch's
extensions call ninja to hear that nothing is to be done. A worker starts no programs, so it gets
the answers that the rehearsal got.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from cuda_sandbox.protocol import Failure
from fitness.module.runner.orders import Refused

EXTENSIONS = "extensions"
_ANSWERS = "answers.json"
_MOST_BYTES = 1 << 16  # of one answer that is worth keeping
_ask = subprocess.check_output


def folder() -> Path:
    """Where the rehearsal builds, and the worker finds what was built."""
    return Path(os.environ["KERNELEVO_BUILT"])


def record() -> None:
    """Keep what programs answer to check_output."""
    answers: dict[str, str | None] = {}

    def recorded(*args: Any, **kwargs: Any) -> Any:
        key = _key(args)
        try:
            answer = _ask(*args, **kwargs)
        except OSError:
            answers[key] = None
            raise
        finally:
            _keep(answers)
        data = answer.encode() if isinstance(answer, str) else answer
        if len(data) <= _MOST_BYTES:
            answers[key] = base64.b64encode(data).decode()
            _keep(answers)
        return answer

    subprocess.check_output = recorded


def replay() -> None:
    """Answer check_output from what was kept, and load extensions that were built already."""
    answers = _kept()

    def replayed(*args: Any, **kwargs: Any) -> Any:
        key = _key(args)
        if key not in answers:
            return _ask(*args, **kwargs)
        if (told := answers[key]) is None:
            raise FileNotFoundError(2, "No such program", key)
        data = base64.b64decode(told)
        text = any(kwargs.get(word) for word in ("text", "universal_newlines", "encoding"))
        return data.decode() if text else data

    subprocess.check_output = replayed
    if (folder() / EXTENSIONS).is_dir():
        _load_built_extensions()


def _load_built_extensions() -> None:
    """Torch's extension loader without its compiler and its lock file."""
    from torch.utils import cpp_extension

    loader: Any = cpp_extension  # typed as it is; we put others in place of its functions

    def built(name: str, build_directory: str, **_: Any) -> None:
        place = Path(build_directory, f"{name}.so")
        if not place.exists():
            reason = f"the extension {name} was not built when the module was prepared"
            raise Refused(Failure.NOT_BUILT, f"{reason}: its name or sources must not change")

    class Free:
        def __init__(self, *_: Any, **__: Any) -> None: ...

        def try_acquire(self) -> bool:
            return True

        def release(self) -> None: ...

    loader._write_ninja_file_and_build_library = built
    loader.FileBaton = Free


def _key(args: tuple[Any, ...]) -> str:
    return repr(args[0] if args else "")


def _keep(answers: dict[str, str | None]) -> None:
    (folder() / _ANSWERS).write_text(json.dumps(answers), encoding="utf-8")


def _kept() -> dict[str, str | None]:
    try:
        told = json.loads((folder() / _ANSWERS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}
