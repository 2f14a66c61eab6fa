"""Split C++ or CUDA source into tokens, so that layout and comments do not make a new kernel."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple


class Kind(Enum):
    """What a token is; only what the callers need to tell apart."""

    COMMENT = auto()
    SPACE = auto()
    NEWLINE = auto()
    STRING = auto()  # strings and characters, raw ones too
    NUMBER = auto()
    NAME = auto()
    HEADER = auto()  # <...> or "..." after #include
    PUNCTUATION = auto()


class Token(NamedTuple):
    """One token and where it starts in the source (in characters)."""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        """Where the token ends."""
        return self.start + len(self.text)


# Order matters: raw strings before names, comments before punctuation, longest operators first.
_GRAMMAR: tuple[tuple[Kind, str], ...] = (
    (Kind.COMMENT, r"//(?:\\\r?\n|[^\n])*"),
    (Kind.COMMENT, r"/\*.*?\*/"),
    (Kind.STRING, r'(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)"'),
    (Kind.STRING, r'(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"'),
    (Kind.STRING, r"(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'"),
    (Kind.NUMBER, r"\.?[0-9](?:'?[\w.]|(?<=[eEpP])[+-])*"),
    (Kind.NAME, r"[A-Za-z_$]\w*"),
    (Kind.SPACE, r"(?:\\\r?\n|[ \t\r\f\v])+"),
    (Kind.NEWLINE, r"\n"),
    (
        Kind.PUNCTUATION,
        r"<<<|>>>|<<=|>>=|<=>|\.\.\.|->\*|::|\.\*|->|\+\+|--|<<|>>|<=|>=|==|!="
        r"|&&|\|\||[-+*/%&|^]=|##|.",
    ),
)
_TOKEN = re.compile("|".join(f"(?P<k{i}>{p})" for i, (_, p) in enumerate(_GRAMMAR)), re.DOTALL)
_KINDS = {_TOKEN.groupindex[f"k{i}"]: kind for i, (kind, _) in enumerate(_GRAMMAR)}
_BLANK = (Kind.SPACE, Kind.COMMENT)
_SPANNING = re.compile(r'/\*|R"|\\\r?\n')
_HEADER = re.compile(r'<[^>\n]*>|"[^"\n]*"')
_BREAK = json.dumps("\n")
TUNE = re.compile(r"//\s*tune:(?P<choices>[^\n]*)")


def tokens(source: str) -> Iterator[Token]:
    """All tokens in order, comments and white space included; their texts join to the source."""
    position = 0
    for kind, text in _scan(source):
        yield Token(kind, text, position)
        position += len(text)


def _scan(source: str) -> Iterator[tuple[Kind, str]]:
    """Kinds and texts: every candidate is digested, so this loop is lean."""
    if "#" not in source:  # no directive, so no header's name, which only its place tells apart
        for match in _TOKEN.finditer(source):
            yield _KINDS[match.lastindex or 0], match[0]
        return
    position, end = 0, len(source)
    directive: list[str] = []  # the first three tokens since a newline
    match_token, kinds = _TOKEN.match, _KINDS
    while position < end:
        if len(directive) == 2 and directive == ["#", "include"]:
            header = _HEADER.match(source, position)
        else:
            header = None
        found = header or match_token(source, position)
        assert found is not None  # "." with DOTALL matches whatever is left
        kind = Kind.HEADER if header else kinds[found.lastindex or 0]
        text = found[0]
        position = found.end()
        if kind is Kind.NEWLINE:
            directive = []
        elif len(directive) < 3 and kind not in _BLANK:
            directive.append(text)
        yield kind, text


def canonical(source: str) -> list[str]:
    """The token texts that make a kernel what it is.

    Comments and white space are gone, except where they mean something: the end of a preprocessor
    line, the gap in ``#define A (x)``, and ``// tune:`` lists.
    """
    tokens_of_all: list[str] = json.loads(canonical_json(source))
    return tokens_of_all


def canonical_json(source: str) -> str:
    """``json.dumps(canonical(source))``: every candidate is digested, and lines are cached."""
    if spans_lines(source):
        lines = [_spelled(_significant(line)) for line in _by_line(source)]
    else:
        lines = [_spelled_of(line) for line in source.split("\n")]
    result: list[str] = []
    after_break = True  # at the start there is no line to end
    for number, (directive, text) in enumerate(lines, 1):
        if directive and not after_break:
            result.append(_BREAK)
        if text:
            result.append(text)
            after_break = False
        if directive and number < len(lines):
            result.append(_BREAK)
            after_break = True
    return f"[{', '.join(result)}]"


def spans_lines(source: str) -> bool:
    """Whether a token may reach over the end of a line; without, lines can be read one by one."""
    return _SPANNING.search(source) is not None


def _by_line(source: str) -> list[list[tuple[Kind, str]]]:
    lines: list[list[tuple[Kind, str]]] = [[]]
    for kind, text in _scan(source):
        if kind is Kind.NEWLINE:
            lines.append([])
        else:
            lines[-1].append((kind, text))
    return lines


@lru_cache(maxsize=4096)  # kernels share most of their lines with their parents
def _spelled_of(line: str) -> tuple[bool, str]:
    return _spelled(_significant(_scan(line)))


def _spelled(line: tuple[str, ...]) -> tuple[bool, str]:
    """Whether a line is a directive, and its tokens in JSON, without the brackets."""
    return line[:1] == ("#",), json.dumps(line)[1:-1]


def _significant(line: Iterable[tuple[Kind, str]]) -> tuple[str, ...]:
    """The texts of one line that count."""
    result: list[str] = []
    gap = False
    for kind, text in line:
        if kind is Kind.SPACE:
            gap = True
        elif kind is Kind.COMMENT:
            gap = True
            if tune := TUNE.match(text):
                result.append("// tune: " + " ".join(split_choices(tune["choices"])))
        else:
            if gap and len(result) == 3 and result[:2] == ["#", "define"]:
                result.append(" ")  # object-like macro: "A (x)" is not "A(x)"
            result.append(text)
            gap = False
    return tuple(result)


def split_choices(text: str) -> list[str]:
    """The values of a ``tune:`` list, separated by blanks or commas."""
    return [value for value in re.split(r"[\s,]+", text) if value]
