"""Keeps a winner: a small, readable folder under populations/archive/ that stays in the repository.

It holds no absolute path and no host name: texts that the run brought along are scrubbed of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cuda_sandbox.errors import UserError
from evo.export.bundle import SUFFIX
from evo.report import formats
from evo.report.plain import finite, scrubbed, verdict
from evo.report.summary import summary
from evo.report.text import verdict_facts
from evo.report.trajectory import lines
from evo.report.view import RunView

RECORD = "run.json"


class ArchiveError(UserError):
    """There is nothing to archive, or another run's archive is in the way."""


def archive(view: RunView, root: Path, *, force: bool = False) -> Path:
    """Write ``root/NAME`` for the run's winner; returns the folder. Raises ArchiveError."""
    if view.winner is None:
        raise ArchiveError(f"run {view.info.name!r} has no winner to keep: no kernel was accepted")
    folder = root / view.info.name
    if not force:
        _refuse_other(folder, view)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in _texts(view).items():
            (folder / name).write_text(text, encoding="utf-8")
        for name in ("lineage.svg", "lineage.json"):
            formats.write(view, folder / name)
        _rewrite(folder / "lineage.json", scrubbed)
    except OSError as error:
        raise ArchiveError(f"cannot write to {folder}: {error.strerror}") from error
    return folder


def _refuse_other(folder: Path, view: RunView) -> None:
    """Raises ArchiveError where the folder keeps another run."""
    if not folder.exists() or not any(folder.iterdir()):
        return
    try:
        created = json.loads((folder / RECORD).read_text(encoding="utf-8"))["created"]
    except (OSError, ValueError, KeyError, TypeError):
        created = None
    if created != view.info.created:
        raise ArchiveError(f"{folder} keeps another run of this name; --force replaces it")


def _texts(view: RunView) -> dict[str, str]:
    assert view.winner is not None
    info, one = view.info, view.by_id[view.winner]
    certificate = {
        "kernel": one.id,
        "digest": one.digest,
        "certified": bool(view.certificate and view.certificate.correct),
        "search": verdict(one.evaluation),
        "certification": verdict(view.certificate) if view.certificate else None,
    }
    facts = summary(view)
    facts.pop("config")
    return {
        f"kernel.{SUFFIX.get(one.kernel.language, one.kernel.language)}": one.kernel.source,
        "interface.h": info.header,
        "task.py": info.task.source,
        "config.yaml": scrubbed(info.config),
        "trajectory.txt": scrubbed("\n".join(lines(view)) + "\n"),
        "certificate.json": _json(certificate),
        "environment.json": _json(dict(info.environment)),
        RECORD: _json(facts),
        "README.md": scrubbed(_readme(view)),
    }


def _readme(view: RunView) -> str:
    one = view.by_id[view.winner or ""]
    found = view.certificate or one.evaluation
    facts = [f"- {name}: {text}" for name, text in verdict_facts(found) if text] if found else []
    return "\n".join(
        [
            f"# {view.info.name}",
            "",
            f"The best kernel of this run for `{view.info.task.name}`: {one.id}. The way to it:",
            "",
            "```text",
            *(line.replace("```", "'''") for line in lines(view)),
            "```",
            "",
            "![lineage](lineage.svg)",
            "",
            *facts,
            "",
            "`config.yaml` is the configuration as run, `environment.json` what it ran on,",
            "`run.json` its figures, `lineage.json` every kernel without its source;",
            "`certificate.json` holds the search's verdict on the kernel and the certification's,",
            "with its certificate (`kernelevo certify --earlier` compares another with it).",
            "`run.tar.gz`, where there is one, is the whole run with every prompt and reply",
            "(`kernelevo unpack run.tar.gz`).",
            "",
        ]
    )


def _rewrite(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def _json(data: Any) -> str:
    return scrubbed(json.dumps(finite(data), indent=1, ensure_ascii=False) + "\n")
