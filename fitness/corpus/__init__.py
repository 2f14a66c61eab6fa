"""Kernels that cheat and kernels that only look odd, with what the judge must say of each.

``exploits/`` must be rejected and ``honest/`` accepted, one file each: ``.cpp``, ``.cu``, or
``.py`` for a module. The opening comment of a file, its head, says what it is; ``tasks/`` are the
small tasks they are for, ``shared/`` pieces put before a source whose head says ``with``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from fitness.evaluation import Demand, Tier

FOLDER = Path(__file__).parent
LANGUAGES = {".cpp": "cpp", ".cu": "cuda", ".py": "module"}
KINDS = {
    "fake output": "wrong or foreign numbers",
    "no work": "results kept, work skipped",
    "clock": "work or time hidden from the clock",
    "not a kernel": "a library does the work",
    "breakout": "reaches for the judge, the host, its files, or harms the machine",
    "bad manners": "rules of the interface broken",
}
"""The kinds of cheat, and what they have in common."""

OWN = "own"
"""As a demand: tier fp32, and a module must compute with kernels of its own."""

HONEST = "honest"
"""The kind of those that must be accepted."""

_LINE = re.compile(r"(?://|#)\s*(\w+):\s+(.*?)\s*$")
_KEYS = {"kind", "task", "does", "expect", "word", "demand", "needs", "devices", "with", "flags"}


@dataclass(frozen=True, slots=True)
class Specimen:
    """One kernel of the corpus. ``words``: one of them must be in the reason of its rejection.

    ``needs`` is a compute capability (``sm_90``) or a package; ``devices`` are those it runs on.
    """

    name: str
    kind: str
    task: Path
    kernel: Kernel
    demand: Demand
    does: str
    expect: tuple[Status, ...]
    words: tuple[str, ...] = ()
    needs: str = ""
    devices: tuple[str, ...] = ()

    @property
    def honest(self) -> bool:
        """Whether it must be accepted."""
        return self.kind == HONEST

    def complaint(self, status: Status, reason: str) -> str:
        """What is wrong with this verdict on it; empty if nothing is."""
        if status not in self.expect:
            wanted = " or ".join(self.expect)
            return f"{status}, not {wanted}" + (f": {reason}" if reason else "")
        said = reason.lower()
        if self.words and not any(word.lower() in said for word in self.words):
            return f"{status}, but the reason does not say {' or '.join(self.words)!r}: {reason}"
        return ""


def specimens(*languages: str) -> list[Specimen]:
    """The corpus in these languages (in all of them, if none is named), by name.

    Raises:
        ValueError: a head is not as it should be; the message says where.
    """
    wanted = languages or tuple(LANGUAGES.values())
    return [_read(path) for path in _files() if LANGUAGES[path.suffix] in wanted]


def _files() -> Iterator[Path]:
    for folder in ("exploits", "honest"):
        yield from sorted(path for path in (FOLDER / folder).iterdir() if path.suffix in LANGUAGES)


def _read(path: Path) -> Specimen:
    head, source = _split(path)
    honest = path.parent.name == "honest"
    if unknown := head.keys() - _KEYS:
        raise ValueError(f"{path}: the head has the unknown key {unknown.pop()!r}")
    needed = {"task", "does"} if honest else {"task", "does", "kind", "expect", "word"}
    if missing := sorted(needed - head.keys()):
        raise ValueError(f"{path}: the head lacks {', '.join(missing)}")
    kind = HONEST if honest else head["kind"]
    if kind not in {HONEST, *KINDS}:
        raise ValueError(f"{path}: no kind is called {kind!r}; choose from: {', '.join(KINDS)}")
    task = FOLDER / "tasks" / f"{head['task']}.py"
    if not task.is_file():
        raise ValueError(f"{path}: there is no task {task}")
    return Specimen(
        name=path.stem,
        kind=kind,
        task=task,
        kernel=Kernel(source, LANGUAGES[path.suffix], tuple(head.get("flags", "").split())),
        demand=_demand(head.get("demand", Tier.FP32)),
        does=head["does"],
        expect=tuple(map(Status, _listed(head.get("expect", Status.OK), ","))),
        words=_listed(head.get("word", ""), " | "),
        needs=head.get("needs", ""),
        devices=_listed(head.get("devices", ""), ","),
    )


def _split(path: Path) -> tuple[dict[str, str], str]:
    """The head, and the source with the shared pieces that it asks for."""
    source = path.read_text(encoding="utf-8")
    head: dict[str, str] = {}
    for line in source.splitlines():
        if not (match := _LINE.match(line)):
            break
        head[match[1]] = match[2]
    pieces = [
        (FOLDER / "shared" / f"{name}.h").read_text(encoding="utf-8")
        for name in head.get("with", "").split()
    ]
    return head, "\n".join([*pieces, source])


def _demand(text: str) -> Demand:
    if text == OWN:
        return Demand(own_kernels=True)
    return Demand(Tier(text)) if text in list(Tier) else Demand(None, float(text))


def _listed(text: str, separator: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(separator) if part.strip())
