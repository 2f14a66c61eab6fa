"""YAML with a memory: plain data, and for each key the line where it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cuda_sandbox.errors import UserError

Key = tuple[str | int, ...]


class ConfigError(UserError):
    """A configuration cannot be used; the message has a line for each mistake."""


@dataclass(frozen=True, slots=True)
class Source:
    """The data of a YAML text; ``places`` says for each key where it was set."""

    name: str
    data: dict[str, Any]
    places: dict[Key, str]

    def place(self, key: Key) -> str:
        """Where ``key`` was set, or else where the nearest key above it was."""
        for length in range(len(key), 0, -1):
            if key[:length] in self.places:
                return self.places[key[:length]]
        return self.name


class _Loader(yaml.SafeLoader):
    """YAML 1.1 reads ``1e-2`` as text because it lacks a dot; people mean the number."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def read(path: Path) -> Source:
    """Read a YAML file; raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    return parse(text, str(path))


def parse(text: str, name: str) -> Source:
    """Parse YAML text that came from ``name``; raises ConfigError."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        places: dict[Key, str] = {}
        data = {} if node is None else _plain(loader, node, name, (), places)
    except yaml.YAMLError as error:
        raise ConfigError(_syntax(name, error)) from error
    finally:
        loader.dispose()
    if not isinstance(data, dict):
        raise ConfigError(
            f"{name}:1: a configuration is a table of keys (name: value), not {data!r}"
        )
    return Source(name, data, places)


def _syntax(name: str, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error)
    line = f":{mark.line + 1}" if mark else ""
    return f"{name}{line}: not YAML: {what}"


def _plain(loader: _Loader, node: yaml.Node, name: str, at: Key, places: dict[Key, str]) -> Any:
    if isinstance(node, yaml.MappingNode):
        return _table(loader, node, name, at, places)
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            places[*at, index] = f"{name}:{item.start_mark.line + 1}"
        return [_plain(loader, item, name, (*at, i), places) for i, item in enumerate(node.value)]
    return loader.construct_object(node, deep=True)


def _table(
    loader: _Loader, node: yaml.MappingNode, name: str, at: Key, places: dict[Key, str]
) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key_node, value in node.value:
        key = str(loader.construct_object(key_node, deep=True))
        place = f"{name}:{key_node.start_mark.line + 1}"
        if key in table:
            dotted = spelled((*at, key))
            raise ConfigError(f"{place}: {dotted}: given twice, first at {places[*at, key]}")
        places[*at, key] = place
        table[key] = _plain(loader, value, name, (*at, key), places)
    return table


def spelled(key: Key) -> str:
    """A key as people write it: ``population.size``, ``authors[0].name``."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def override(source: Source, settings: tuple[str, ...]) -> Source:
    """The same with ``KEY=VALUE`` settings on top; a value is read as YAML. Raises ConfigError."""
    data, places = _copy(source.data), dict(source.places)
    for setting in settings:
        dotted, equals, text = setting.partition("=")
        if not equals or not dotted.strip():
            raise ConfigError(f"--set {setting}: write --set KEY=VALUE, as in --set budget.hours=1")
        key = tuple(
            int(p) if p.isdigit() else p for p in re.split(r"[.\[\]]+", dotted.strip()) if p
        )
        value = parse(f"value: {text}", f"--set {setting}").data["value"]
        _put(data, key, value, setting)
        places = {at: place for at, place in places.items() if at[: len(key)] != key}
        places[key] = f"--set {setting}"
    return Source(source.name, data, places)


def _copy(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _copy(value) for key, value in data.items()}
    return [_copy(item) for item in data] if isinstance(data, list) else data


def _put(data: Any, key: Key, value: Any, setting: str) -> None:
    *path, last = key
    for part in path:
        if isinstance(data, dict):
            if data.get(str(part)) is None:
                data[str(part)] = {}
            data = data[str(part)]
        else:
            data = _item(data, part, setting)
    if isinstance(data, dict):
        data[str(last)] = value
    else:
        _item(data, last, setting)
        data[last] = value


def _item(data: Any, index: str | int, setting: str) -> Any:
    if not isinstance(data, list) or not isinstance(index, int) or index >= len(data):
        raise ConfigError(f"--set {setting}: there is nothing at {index!r} to set it in")
    return data[index]
