"""Search/replace blocks, and how they are applied to a source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST = 100  # blocks in one answer

_SEARCH = re.compile(r"\s*<{5,9}\s*(?:SEARCH|ORIGINAL)\b.*")
_MIDDLE = re.compile(r"\s*={5,9}\s*")
_END = re.compile(r"\s*>{5,9}\s*(?:REPLACE|UPDATED)?.*")


class PatchFailed(Exception):
    """A block cannot be applied; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Block:
    """One edit: the lines ``search`` give way to the lines ``replace``."""

    search: tuple[str, ...]
    replace: tuple[str, ...]


def blocks(text: str) -> list[Block]:
    """The blocks of an answer, in order.

    Raises PatchFailed where one was begun and is not whole.
    """
    found: list[Block] = []
    lines = iter(text.split("\n"))
    for line in lines:
        if not _SEARCH.fullmatch(line):
            continue
        search, replace = _until(lines, _MIDDLE), _until(lines, _END)
        if search is None or replace is None:
            raise PatchFailed(
                f"SEARCH block {len(found) + 1} is not whole: each block needs the lines "
                f"<<<<<<< SEARCH, ======= and >>>>>>> REPLACE"
            )
        found.append(Block(search, replace))
    return found[:MOST]


def _until(lines: Iterator[str], end: re.Pattern[str]) -> tuple[str, ...] | None:
    """The lines before the one that is ``end``; None if there is none."""
    taken: list[str] = []
    for line in lines:
        if end.fullmatch(line):
            return tuple(taken)
        taken.append(line)
    return None


def apply(source: str, edits: list[Block]) -> str:
    """``source`` with all blocks applied, one after the other.

    A block's lines must be in the source once: exactly, or up to white space at the ends of lines,
    or up to indentation. Raises PatchFailed.
    """
    lines = source.removesuffix("\n").split("\n")
    for number, edit in enumerate(edits, 1):
        lines = _applied(lines, edit, f"SEARCH block {number}")
    return "\n".join(lines) + "\n"


def _applied(lines: list[str], edit: Block, name: str) -> list[str]:
    wanted = _trimmed(list(edit.search))
    if not wanted:
        raise PatchFailed(f"{name} is empty: quote the lines to be replaced")
    for view in (str, str.rstrip, str.split):
        places = _places([view(line) for line in lines], [view(line) for line in wanted])
        if len(places) > 1:
            raise PatchFailed(
                f"{name} is in the kernel {len(places)} times: quote more lines around it: "
                f"{_quoted(wanted)}"
            )
        if places:
            (start,) = places
            replacement = list(edit.replace)
            if view is str.split:
                replacement = _shifted(replacement, wanted[0], lines[start])
            return [*lines[:start], *replacement, *lines[start + len(wanted) :]]
    raise PatchFailed(f"{name} is not in the kernel: {_quoted(wanted)}")


def _trimmed(lines: list[str]) -> list[str]:
    """Without the empty lines at both ends."""
    while lines and not lines[0].strip():
        lines = lines[1:]
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def _places(lines: list[object], wanted: list[object]) -> list[int]:
    """Where ``wanted`` begins in ``lines``."""
    first, count = wanted[0], len(wanted)
    return [
        start
        for start, line in enumerate(lines[: len(lines) - count + 1])
        if line == first and lines[start : start + count] == wanted
    ]


def _shifted(lines: list[str], quoted: str, actual: str) -> list[str]:
    """``lines`` indented as the source is, where the quotation was indented otherwise."""
    was, now = _indent(quoted), _indent(actual)
    if was == now:
        return lines
    return [now + line.removeprefix(was) if line.strip() else line for line in lines]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _quoted(lines: list[str]) -> str:
    text = " | ".join(line.strip() for line in lines[:3])
    return text if len(text) <= 160 else text[:157] + "..."
