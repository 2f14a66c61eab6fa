"""Requests as text for a person, and as values for a program."""

from __future__ import annotations

import json
from typing import Any

from evo.requests.board import Entry
from evo.requests.record import Told


def text(run: str, entry: Entry) -> str:
    """A request in full, with the command that answers it."""
    request = entry.request
    prompt = request.prompt
    parts = [_head(run, entry), prompt.system, prompt.text]
    if prompt.schema is not None:
        parts.append(f"--- schema of the answer: {json.dumps(dict(prompt.schema))}")
    parts += [
        f"--- told by {told.by or 'somebody'} at {told.at}\n\n{told.text}" for told in entry.told
    ]
    return "\n\n".join(part for part in parts if part)


def _head(run: str, entry: Entry) -> str:
    request = entry.request
    by = f" --by {entry.lease.by}" if entry.lease else ""
    lines = [f"--- {line(entry)}"]
    if not entry.told:
        lines.append(f"--- answer it: kernelevo tell {run} {request.id} FILE{by}")
    return "\n".join(lines)


def line(entry: Entry) -> str:
    """A request in a line: id, purpose, place, parents, how it stands."""
    request = entry.request
    parents = f"  on {', '.join(request.parents)}" if request.parents else ""
    return f"{request.id}  {request.prompt.purpose:<9}  {request.key}{parents}  {_standing(entry)}"


def _standing(entry: Entry) -> str:
    if entry.told:
        by = entry.told[0].by
        return f"answered{f' by {by}' if by else ''}, not used yet"
    if entry.lease:
        return f"taken by {entry.lease.by} until {entry.lease.ends}"
    return "open"


def record(run: str, entry: Entry) -> dict[str, Any]:
    """A request in full."""
    prompt = entry.request.prompt
    schema = None if prompt.schema is None else dict(prompt.schema)
    return {
        **listed(entry),
        "run": run,
        "system": prompt.system,
        "prompt": prompt.text,
        "schema": schema,
        "answers": [answer(told) for told in entry.told],
    }


def listed(entry: Entry) -> dict[str, Any]:
    """A request without its prompt."""
    request, lease = entry.request, entry.lease
    return {
        "request": request.id,
        "purpose": request.prompt.purpose,
        "key": request.key,
        "parents": list(request.parents),
        "answered": bool(entry.told),
        "lease": lease and {"by": lease.by, "until": lease.ends},
    }


def answer(told: Told) -> dict[str, Any]:
    """An answer as it was told."""
    return {"text": told.text, "by": told.by, "at": told.at}
