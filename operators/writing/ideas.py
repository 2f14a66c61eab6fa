"""Ideas out of an answer: JSON by the schema, and whatever else a model or a person writes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from operators.idea import Category, Idea
from operators.writing import json_text
from operators.writing.text import clean, shortened

LONGEST_IDEA = 4000  # characters: nothing that its author needs is left out
MOST = 50  # items that are looked at

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["analysis", "ideas"],
    "properties": {
        "analysis": {"type": "string"},
        "ideas": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["title", "detail", "category"],
                "properties": {
                    "title": {"type": "string"},
                    "detail": {"type": "string"},
                    "category": {"type": "string", "enum": [str(one) for one in Category]},
                },
            },
        },
    },
}
"""Within what both vendors' structured output takes."""

_TEXTS = ("title", "name", "idea", "text", "summary")
_DETAILS = ("detail", "details", "description", "how", "explanation", "rationale")
_BULLET = re.compile(
    r"^\s{0,3}(?:\d{1,2}[.)]|[-*+]|#{1,4})\s+(?:idea\s*\d*\s*[:.-]\s*)?(.*\S)", re.I
)
_BOLD = re.compile(r"(?<![\w*])\*\*(\S(?:[^*]*\S)?)\*\*(?![\w*])")
"""What else looks like markup is meant: `tile`, _mm256_stream_ps, 31 * 132."""

_SIGNS = {
    Category.ASYNCHRONY: r"async|prefetch|overlap|pipelin|double.?buffer|latency|tma\b|bulk|stage",
    Category.PRECISION: r"precision|half|fp16|bf16|tf32|data type|float16|split|mantissa",
    Category.MEMORY: r"memory|cache|coalesc|shared|vectori|bandwidth|layout|tile|load|store",
    Category.PARALLELISM: r"parallel|occupan|block size|warps?\b|cluster|grid|thread|persistent",
    Category.CONTROL: r"unroll|branch|loop|control|index|predicat|divergen",
    Category.COMPUTE: r"tensor core|instruction|fma|wgmma|mma|comput|arithmetic|intrinsic",
}
_SIGNS_OF = {category: re.compile(signs, re.I) for category, signs in _SIGNS.items()}


def read(text: str, author: str, model: str = "") -> list[Idea]:
    """The ideas of an answer in its order; what is no idea is left out. Empty if there is none."""
    text = clean(text)
    for items in _lists(text):
        found = [idea for item in items[:MOST] if (idea := _idea(item, author, model))]
        if found:
            return found
    return [Idea(line, category_of(line), author, model) for line in _bullets(text)]


def _lists(text: str) -> Iterator[list[Any]]:
    """Lists that may hold ideas; at last all single objects of the text together."""
    singles = []
    for value in json_text.values(text):
        if isinstance(value, dict):
            inner = [item for item in value.values() if isinstance(item, list)]
            yield from sorted(inner, key=len, reverse=True)
            singles.append(value)
        elif isinstance(value, list):
            yield value
    yield singles


def _idea(item: Any, author: str, model: str) -> Idea | None:
    if isinstance(item, str):
        text, named = item, ""
    elif isinstance(item, dict):
        fields = {str(key).lower(): value for key, value in item.items()}
        title, detail = _first(fields, _TEXTS), _first(fields, _DETAILS)
        text = f"{title.rstrip('.:')}: {detail}" if title and detail else title or detail
        named = _first(fields, ("category", "kind", "type"))
    else:
        return None
    text = shortened(_plain(text), LONGEST_IDEA)
    return Idea(text, category_of(text, named), author, model) if len(text) > 3 else None


def _plain(text: str) -> str:
    return _BOLD.sub(r"\1", text)


def _first(fields: dict[str, Any], names: Iterable[str]) -> str:
    values = (fields.get(name) for name in names)
    return next((value.strip() for value in values if isinstance(value, str) and value.strip()), "")


def category_of(text: str, named: str = "") -> Category:
    """The category that is meant by ``named``, else the one that the text speaks of most."""
    wanted = " ".join(re.sub(r"[^a-z ]", " ", named.lower()).split())
    by_name = {str(one): one for one in Category} | {one.name.lower(): one for one in Category}
    if wanted:
        near = difflib.get_close_matches(wanted, by_name, n=1, cutoff=0.6)
        part = next((name for name in by_name if wanted in name), None)
        if near or part:
            return by_name[near[0] if near else str(part)]
    counts = {one: len(signs.findall(f"{named} {text}")) for one, signs in _SIGNS_OF.items()}
    return max(counts, key=lambda one: counts[one]) if any(counts.values()) else Category.COMPUTE


def _bullets(text: str) -> Iterator[str]:
    """Lines of a plain list, without their numbers and markup."""
    for line in text.split("\n"):
        match = _BULLET.match(line[: 4 * LONGEST_IDEA])
        if match and len(match[1]) > 15:
            yield shortened(_plain(match[1]), LONGEST_IDEA)
