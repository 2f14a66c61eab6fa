"""The kernel: source, language, flags; its tunables and its digest."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from cuda_sandbox.tokens import (
    TUNE,
    Kind,
    Token,
    canonical_json,
    spans_lines,
    split_choices,
    tokens,
)

_NUMBER = re.compile(
    r"-?(?:0[xX][0-9a-fA-F']+|0[bB][01']+|(?:[0-9][0-9']*\.?[0-9']*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"(?:[uUlLfF]|[zZ])*"
)


@dataclass(frozen=True, slots=True)
class Tunable:
    """A numeric constant that the source declares open to change.

    ``#define TILE 64  // tune: 32 64 128`` gives ``Tunable("TILE", "64", ("32", "64", "128"))``.
    """

    name: str
    value: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One translation unit in a language that is the name of a file in ``backends/``."""

    source: str
    language: str
    flags: tuple[str, ...] = ()

    def tunables(self) -> tuple[Tunable, ...]:
        """The constants declared open to change, in the order of the source.

        A constant is declared by ``#define NAME VALUE  // tune: A B C`` or by
        ``constexpr TYPE NAME = VALUE;  // tune: A B C`` on one line, all of them numbers. A name
        that is declared twice (in branches of ``#if``) is left out: it could not be set for sure.
        """
        return tuple(tunable for tunable, _ in _declared(self.source))

    def tuned(self, values: Mapping[str, str | int | float]) -> Kernel:
        """The same kernel with some tunables set to other values of their lists.

        Raises:
            ValueError: a name is no tunable of this source, or a value is not among its choices.
        """
        found = {tunable.name: (tunable, token) for tunable, token in _declared(self.source)}
        source = self.source
        edits: list[tuple[int, int, str]] = []
        for name, value in values.items():
            if name not in found:
                names = ", ".join(found) or "none"
                raise ValueError(f"no tunable is called {name!r}; this kernel declares: {names}")
            tunable, (start, end) = found[name]
            if str(value) not in tunable.choices:
                choices = ", ".join(tunable.choices)
                raise ValueError(f"tunable {name} cannot be {value!r}; its choices are: {choices}")
            edits.append((start, end, str(value)))
        for start, end, text in sorted(edits, reverse=True):
            source = source[:start] + text + source[end:]
        return replace(self, source=source)

    def untuned(self) -> Kernel:
        """The same for all kernels that differ in the values of their tunables only."""
        return self.tuned({one.name: one.choices[0] for one in self.tunables()})

    def digest(self, header: str = "") -> str:
        """Hex SHA-256 of what makes this kernel what it is: tokens, language, flags, header.

        Comments and white space do not count; preprocessor lines and ``tune:`` lists do.
        """
        parts = json.dumps([self.language, self.flags, header])[:-1]
        return hashlib.sha256(f"{parts}, {canonical_json(self.source)}]".encode()).hexdigest()


_Span = tuple[int, int]


@lru_cache(maxsize=256)  # one parent is tuned in many ways
def _declared(source: str) -> tuple[tuple[Tunable, _Span], ...]:
    """Each tunable with the span of its value in the source."""
    found = [hit for line in _lines(source) if (hit := _declaration(line))]
    count = Counter(tunable.name for tunable, _ in found)
    return tuple((tunable, span) for tunable, span in found if count[tunable.name] == 1)


def _lines(source: str) -> Iterator[list[Token]]:
    """The tokens of the lines that may declare a tunable, without their white space."""
    if spans_lines(source):
        yield from _all_lines(source)
        return
    start = 0
    for text in source.split("\n"):
        if "tune:" in text:
            yield [
                Token(token.kind, token.text, start + token.start)
                for token in tokens(text)
                if token.kind is not Kind.SPACE
            ]
        start += len(text) + 1


def _all_lines(source: str) -> Iterator[list[Token]]:
    line: list[Token] = []
    for token in tokens(source):
        if token.kind is Kind.NEWLINE:
            yield line
            line = []
        elif token.kind is not Kind.SPACE:
            line.append(token)
    yield line


def _declaration(line: list[Token]) -> tuple[Tunable, _Span] | None:
    """The tunable that a line declares, if it does."""
    tune = TUNE.match(line[-1].text) if line and line[-1].kind is Kind.COMMENT else None
    if tune is None:
        return None
    code = [token for token in line if token.kind is not Kind.COMMENT]
    hit = _defined(code) or _constexpr(code)
    choices = tuple(dict.fromkeys(split_choices(tune["choices"])))
    if hit is None or not choices or not all(map(_NUMBER.fullmatch, choices)):
        return None
    name, value, span = hit
    if value not in choices:
        choices = (value, *choices)
    return Tunable(name, value, choices), span


def _defined(code: list[Token]) -> tuple[str, str, _Span] | None:
    """``# define NAME VALUE`` with nothing after it."""
    if [token.text for token in code[:2]] != ["#", "define"] or len(code) < 4:
        return None
    return _value(code[2].text, code[3:])


def _constexpr(code: list[Token]) -> tuple[str, str, _Span] | None:
    """``[static] constexpr TYPE NAME = VALUE;`` with nothing after it."""
    texts = [token.text for token in code]
    if "constexpr" not in texts[:3] or texts[-1] != ";" or texts.count("=") != 1:
        return None
    at = texts.index("=")
    return _value(texts[at - 1], code[at + 1 : -1])


def _value(name: str, code: list[Token]) -> tuple[str, str, _Span] | None:
    """The number that these tokens spell (adjacent, so ``-1`` but not ``- 1``), and its span."""
    if not code or any(a.end != b.start for a, b in itertools.pairwise(code)):
        return None
    text = "".join(token.text for token in code)
    return (name, text, (code[0].start, code[-1].end)) if _NUMBER.fullmatch(text) else None
