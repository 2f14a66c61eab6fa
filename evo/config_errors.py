"""Turns pydantic's errors into lines for people: where, which key, what is wrong, what is valid."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from evo.yaml_source import Key, Source, spelled
from operators import extension

_TYPES = {
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text (put it in quotes)",
    "list_type": "a list",
    "dict_type": "a table of keys",
    "model_type": "a table of keys",
}
_BOUNDS = {
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than": "less than {lt:g}",
    "less_than_equal": "{le:g} or less",
}


def explain(error: ValidationError, source: Source, model: type[BaseModel]) -> str:
    """A line for each mistake: ``FILE:LINE: KEY: what is wrong; what is valid``."""
    lines = []
    for detail in error.errors(include_url=False):
        key: Key = tuple(part for part in detail["loc"] if part != "[key]")
        dotted = spelled(key) or "the configuration"
        lines.append(f"{source.place(key)}: {dotted}: {_what(detail, key, model)}")
    return "\n".join(dict.fromkeys(lines))


def _what(detail: ErrorDetails, key: Key, model: type[BaseModel]) -> str:
    kind, context, value = detail["type"], detail.get("ctx", {}), detail["input"]
    if kind in _TYPES:
        return f"must be {_TYPES[kind]}, not {_shown(value)}"
    if kind in _BOUNDS:
        return f"must be {_BOUNDS[kind].format(**context)}, not {_shown(value)}"
    explainer = _EXPLAINERS.get(kind)
    return explainer(detail, key, model) if explainer else detail["msg"]


def _unknown(detail: ErrorDetails, key: Key, model: type[BaseModel]) -> str:  # noqa: ARG001
    return extension.unknown("key", key[-1], _section(model, key[:-1]).model_fields)


def _literal(detail: ErrorDetails, key: Key, model: type[BaseModel]) -> str:
    field = _section(model, key[:-1]).model_fields[str(key[-1])]
    return extension.unknown("value", detail["input"], _literals(field.annotation))


def _missing(detail: ErrorDetails, key: Key, model: type[BaseModel]) -> str:  # noqa: ARG001
    return "is missing; it has no default"


def _raised(detail: ErrorDetails, key: Key, model: type[BaseModel]) -> str:  # noqa: ARG001
    return str(detail["ctx"]["error"])


def _short(detail: ErrorDetails, key: Key, model: type[BaseModel]) -> str:  # noqa: ARG001
    return f"needs at least {detail['ctx']['min_length']}"


_EXPLAINERS: dict[str, Callable[[ErrorDetails, Key, type[BaseModel]], str]] = {
    "extra_forbidden": _unknown,
    "literal_error": _literal,
    "missing": _missing,
    "value_error": _raised,
    "too_short": _short,
}


def _section(model: type[BaseModel], key: Key) -> type[BaseModel]:
    """The table that ``key`` leads to."""
    for part in key:
        if not isinstance(part, int):
            model = _table(model.model_fields[part].annotation)
    return model


def _table(annotation: Any) -> type[BaseModel]:
    inner = get_args(annotation)[0] if get_origin(annotation) is list else annotation
    found: type[BaseModel] = inner
    return found


def _literals(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    return [choice for part in get_args(annotation) for choice in _literals(part)]


def _shown(value: Any) -> str:
    return "empty" if value is None else repr(value)


def no_file(wanted: Path, folders: Sequence[Path] = (Path(),)) -> str:
    """That ``wanted`` is in none of ``folders``, and the nearest that is."""
    there = {
        str(wanted.with_name(file.name)): None
        for folder in folders
        for file in (folder / wanted).parent.glob(f"*{wanted.suffix}")
    }
    near = difflib.get_close_matches(str(wanted), there, n=1, cutoff=0.6)
    return f"there is no file {wanted}" + (f"; did you mean {near[0]}?" if near else "")
