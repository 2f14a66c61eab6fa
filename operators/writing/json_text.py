"""JSON values out of an answer that may wrap them in prose or fences, or break off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

LONGEST = 100_000  # characters that are searched
FENCES = 20  # fenced blocks that are looked at
TRIES = 200  # places at which a value is looked for

_FENCED = re.compile(r"```[\w+-]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
_OPENING = re.compile(r"[{\[]")
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")


def values(text: str) -> Iterator[Any]:
    """JSON objects and lists in ``text``: all of it, then fenced blocks, then anywhere."""
    text = text[:LONGEST]
    fenced = (match[1] for match in islice(_FENCED.finditer(text), FENCES))
    for candidate in (text, *fenced):
        found = _whole(candidate)
        if isinstance(found, dict | list):
            yield found
    yield from _anywhere(_TRAILING_COMMA.sub(r"\1", text))


def _whole(text: str) -> Any:
    for form in (text, _TRAILING_COMMA.sub(r"\1", text)):
        try:
            return json.loads(form, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def _anywhere(text: str) -> Iterator[Any]:
    """Values that begin somewhere; inside one that is broken, those that are whole."""
    decoder = json.JSONDecoder(strict=False)
    position = 0
    for _ in range(TRIES):
        start = _OPENING.search(text, position)
        if start is None:
            return
        try:
            value, position = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            position = start.end()
            continue
        yield value
