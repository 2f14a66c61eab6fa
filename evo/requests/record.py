"""The records of requests and answers."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cuda_sandbox.errors import UserError
from operators.llm import Prompt

NAME_LIMIT = 100
LONGEST_LEASE_MINUTES = 7 * 24 * 60.0


class RequestError(UserError):
    """A request cannot be given out or answered like this; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Told:
    """An answer: what was told, by whom (may be empty), when (ISO, UTC).

    Raises RequestError where a field could not be one of ours: they come from other machines too.
    """

    request: str
    text: str
    by: str
    at: str

    def __post_init__(self) -> None:
        _check_id(self.request)
        if self.by:
            check_name(self.by)
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]{8,15}\+00:00", self.at):
            raise RequestError(f"{self.at[:40]!r} is no time of an answer")


@dataclass(frozen=True, slots=True)
class Lease:
    """A request is somebody's until a moment (seconds since 1970). Raises RequestError as Told."""

    request: str
    by: str
    until: float

    def __post_init__(self) -> None:
        _check_id(self.request)
        check_name(self.by)

    @property
    def ends(self) -> str:
        """When, for a person to read."""
        return f"{datetime.fromtimestamp(self.until, UTC):%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class Request:
    """A question of a run to its authors. ``key`` is its place in the run, ``parents`` are ids."""

    id: str
    key: str
    prompt: Prompt
    parents: tuple[str, ...]

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The JSON schema that the answer must follow; None for one that is free in its form."""
        return self.prompt.schema


def request_id(key: str, prompt: Prompt) -> str:
    """Ten hex digits: the same question at the same place of a run has one id on every machine."""
    whole = json.dumps([key, prompt.system, prompt.text])
    return hashlib.blake2b(whole.encode(), digest_size=5).hexdigest()


def _check_id(request: str) -> None:
    if not re.fullmatch(r"[0-9a-f]{10}", request):
        raise RequestError(f"{request[:40]!r} is no request's id: those are ten hex digits")


def check_name(name: str) -> str:
    """A name for whoever answers, as a person gave it. Raises RequestError."""
    name = name.strip()
    if not name or len(name) > NAME_LIMIT or not name.isprintable():
        raise RequestError(f"a name is one line of 1 to {NAME_LIMIT} characters, not {name[:40]!r}")
    return name
