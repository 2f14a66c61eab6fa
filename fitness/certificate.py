"""The certificate as a document: its schema, finding one in a file, comparing two."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuda_sandbox.errors import UserError

SCHEMA = "kernelevo.certificate/1"
"""Named in each certificate; docs/certification.md says what every key holds."""

SANITIZER_S = 120.0
"""What each sanitizer may take: racecheck slows a large kernel down a thousandfold."""

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Terms:
    """How a certification is to go: ``sanitizer_s`` bounds each sanitizer.

    ``command`` is what repeats it (found from the task, if empty), ``made_by`` our version.
    """

    sanitizer_s: float = SANITIZER_S
    command: str = ""
    made_by: str = ""


class NoCertificate(UserError):
    """A file holds no certificate."""


def read(path: Path) -> dict[str, Any]:
    """The certificate in a JSON file, also where it lies deeper: in an export, an archive.

    Raises NoCertificate.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NoCertificate(f"{path} cannot be read as a certificate: {error}") from error
    for found in _documents(data):
        return found
    raise NoCertificate(
        f"{path} holds no certificate: give a file that `kernelevo certify -o FILE` or "
        "`kernelevo export` wrote"
    )


def _documents(data: Any) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict):
        if "checks" in data and "source_digest" in data:
            yield data
        for value in data.values():
            yield from _documents(value)


def compare(earlier: Document, now: Document) -> dict[str, Any]:
    """How ``now`` stands to an ``earlier`` certificate: a ``summary``, and ``lines`` of detail.

    Figures are compared where kernel, task and device are the same: they differ where their 95%
    intervals do not touch.
    """
    if earlier["source_digest"] != now["source_digest"]:
        return _told("the earlier certificate is of another kernel: not compared")
    if _task_digest(earlier) not in ("", _task_digest(now)):
        return _told("the earlier certificate is of another task of this name: not compared")
    lines = list(_changed_checks(earlier, now))
    devices = [one["environment"]["device"] for one in (earlier, now)]
    when = f" of {earlier['made']}" if "made" in earlier else ""
    if devices[0] != devices[1]:
        lines.insert(0, f"device: {devices[0]} earlier, {devices[1]} now: times not compared")
        return _told(f"the certificate{when} was made on another device", lines)
    figures = [
        *_changed_figures(earlier, now, "time_ms"),
        *_changed_figures(earlier, now, "speedup"),
    ]
    lines += figures
    if not lines:
        return _told(f"agrees with the certificate{when}: no figure differs beyond its interval")
    told = f"{len(figures)} figure{'s differ' if len(figures) != 1 else ' differs'}"
    return _told(f"compared with the certificate{when}: {told} beyond the intervals", lines)


def _told(summary: str, lines: list[str] | None = None) -> dict[str, Any]:
    return {"summary": summary, "lines": lines or []}


def _task_digest(document: Document) -> str:
    task = document.get("task")
    return str(task["digest"]) if isinstance(task, Mapping) else ""


def _changed_checks(earlier: Document, now: Document) -> Iterator[str]:
    for name, said in now["checks"].items():
        before = earlier["checks"].get(name)
        if before is not None and _word(before) != _word(said):
            yield f"{name}: {before} earlier, {said} now"


def _word(said: str) -> str:
    """``passed``, ``failed`` or ``not run``; what an older certificate says otherwise, passed."""
    return next((word for word in ("failed", "not run") if said.startswith(word)), "passed")


def _changed_figures(earlier: Document, now: Document, kind: str) -> Iterator[str]:
    before, after = (document.get("figures", {}).get(kind, {}) for document in (earlier, now))
    unit = "ms" if kind == "time_ms" else "times faster"
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        if old["high"] < new["low"] or new["high"] < old["low"]:
            change = new["median"] / old["median"] - 1
            yield f"{name}: {_span(old)} {unit} earlier, {_span(new)} now ({change:+.1%})"


def _span(figure: Mapping[str, float]) -> str:
    return f"{figure['median']:.4g} [{figure['low']:.4g}, {figure['high']:.4g}]"
