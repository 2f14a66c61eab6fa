"""The JSON schema of an answer, as servers want it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from operators.llm import Prompt


def format_of(prompt: Prompt) -> dict[str, Any]:
    """Name, schema and strictness in the form that both of OpenAI's APIs share."""
    schema = dict(prompt.schema or {})
    return {"name": prompt.purpose, "schema": schema, "strict": is_strict(schema)}


def is_strict(schema: Any) -> bool:
    """Whether every object is closed and demands all its properties, as strict decoding wants."""
    if isinstance(schema, list):
        return all(is_strict(item) for item in schema)
    if not isinstance(schema, Mapping):
        return True
    if "properties" in schema or schema.get("type") == "object":
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required", ())) != set(properties):
            return False
    return all(is_strict(value) for value in schema.values())
