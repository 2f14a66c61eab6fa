"""Frozen records to JSON text and back."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter

T = TypeVar("T")


@cache
def _adapter(kind: Any) -> Any:
    return TypeAdapter(kind)


def encode(record: Any) -> str:
    """JSON of a dataclass instance; infinities and NaN are kept as Python's json spells them."""
    return json.dumps(_adapter(cast(Any, type(record))).dump_python(record), separators=(",", ":"))


def decode(kind: type[T], text: str) -> T:
    """The record of type ``kind`` that ``encode`` made ``text`` from; raises ValueError if not."""
    result: T = _adapter(cast(Any, kind)).validate_python(json.loads(text))
    return result
