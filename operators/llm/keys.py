"""Keys: read from the environment or a .env file when they are used, and kept from all eyes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from operators.llm import Kind, Trouble

# a run of letters that a server masked: what is left around the stars belongs to a key
_MASKED = re.compile(r"[\w.-]*(?:\*{3,}|\.{3,}|…|x{6,})[\w.-]*\*?")
_KEY_LIKE = re.compile(r"\b(?:sk|pk|gsk|xai|key)-[\w-]{8,}|\bAIza[\w-]{8,}|\bBearer\s+\S+", re.I)
_SHOWN = "[key]"
_PIECE = 6  # so many letters of a key in a row are too many to show
_LONGEST = 300


class Key:
    """A secret. It prints as its name; only ``secret()`` gives it away."""

    __slots__ = ("_secret", "name")

    def __init__(self, name: str, secret: str) -> None:
        self.name = name
        self._secret = secret

    def secret(self) -> str:
        """The key itself, for the vendor's library and nobody else."""
        return self._secret

    def __repr__(self) -> str:
        return f"<key {self.name}>"

    def __reduce__(self) -> str:
        raise TypeError("a key is not to be stored or sent")

    def scrub(self, text: object) -> str:
        """``text`` in one line of bearable length, without the key and what looks like one."""
        return scrub(str(text), self._secret)


def find(names: Sequence[str], folder: Path | None = None) -> Key | None:
    """The first of ``names`` that the environment sets, else the nearest .env file upwards.

    The file is looked for from ``folder`` (here) on; it never enters the environment, where child
    processes would find it.
    """
    for name, value in _settings(names, (folder or Path.cwd()).absolute()):
        if value.strip():
            return Key(name, value.strip())
    return None


def need(names: Sequence[str]) -> Key:
    """As ``find``; raises Trouble with the remedy where there is none."""
    key = find(names)
    if key is None:
        choice = " or ".join(names)
        raise Trouble(Kind.KEY, f"there is no key: set {choice} in the environment or a .env file")
    return key


def _settings(names: Sequence[str], folder: Path) -> Iterator[tuple[str, str]]:
    yield from ((name, os.environ.get(name, "")) for name in names)
    for place in (folder, *folder.parents):
        file = place / ".env"
        if file.is_file():
            values = parse(file.read_text(encoding="utf-8", errors="replace"))
            yield from ((name, values.get(name, "")) for name in names)
            return


def parse(text: str) -> Mapping[str, str]:
    """A .env file: ``NAME=value`` lines, ``export`` before them or not, quotes, ``#`` comments."""
    values = {}
    for line in text.splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if not equals or name.startswith("#"):
            continue
        value = value.strip()
        if value[:1] in {"'", '"'} and value[:1] in value[1:]:
            value = value[1 : value.index(value[0], 1)]
        else:
            value = re.split(r"\s+#", value, maxsplit=1)[0].strip()
        values[name.strip()] = value
    return values


def scrub(text: str, secret: str = "") -> str:
    """``text`` without ``secret``, its pieces and whatever looks like a key, in one short line."""
    line = " ".join(text.split())
    for piece in _pieces(secret, line):
        line = line.replace(piece, _SHOWN)
    line = _KEY_LIKE.sub(_SHOWN, _MASKED.sub(_SHOWN, line))
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."


def _pieces(secret: str, line: str) -> Iterator[str]:
    """The parts of ``secret`` that stand in ``line``, the longest first at each place."""
    start = 0
    while start + _PIECE <= len(secret):
        length = _PIECE
        if secret[start : start + length] not in line:
            start += 1
            continue
        while start + length < len(secret) and secret[start : start + length + 1] in line:
            length += 1
        yield secret[start : start + length]
        start += length
