"""Search/replace blocks, and how they are applied to a source."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST = 100  # blocks in one answer

_BLOCK = re.compile(
    r"^[ \t]*<{5,9}[ \t]*(?:SEARCH|ORIGINAL|HEAD)?[^\n]*\n(?P<search>.*?)"
    r"^[ \t]*={5,9}[ \t]*\n(?P<replace>.*?)^[ \t]*>{5,9}[ \t]*(?:REPLACE|UPDATED)?[^\n]*$",
    re.DOTALL | re.MULTILINE,
)
_OPENING = re.compile(r"^[ \t]*<{5,9}[ \t]*SEARCH\b", re.MULTILINE)


class PatchFailed(Exception):
    """A block cannot be applied; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Block:
    """One edit: the lines ``search`` give way to the lines ``replace``."""

    search: str
    replace: str


def blocks(text: str) -> list[Block]:
    """The blocks of an answer, in order.

    Raises PatchFailed where one was begun and is not whole.
    """
    found = [Block(match["search"], match["replace"]) for match in _BLOCK.finditer(text)]
    begun = len(_OPENING.findall(text))
    if begun > len(found):
        raise PatchFailed(
            f"{begun} search/replace blocks begin, but only {len(found)} are whole: each needs "
            f"the lines <<<<<<< SEARCH, ======= and >>>>>>> REPLACE"
        )
    return found[:MOST]


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
    wanted = _trimmed(edit.search.split("\n"))
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
            replacement = edit.replace.split("\n")[:-1]  # the last ends with its line
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
