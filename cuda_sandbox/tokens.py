"""Split C++ or CUDA source into tokens, so that layout and comments do not make a new kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto


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


@dataclass(frozen=True, slots=True)
class Token:
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
_KINDS = {f"k{i}": kind for i, (kind, _) in enumerate(_GRAMMAR)}
_TOKEN = re.compile("|".join(f"(?P<k{i}>{p})" for i, (_, p) in enumerate(_GRAMMAR)), re.DOTALL)
_HEADER = re.compile(r'<[^>\n]*>|"[^"\n]*"')
TUNE = re.compile(r"//\s*tune:(?P<choices>[^\n]*)")


def tokens(source: str) -> Iterator[Token]:
    """All tokens in order, comments and white space included; their texts join to the source."""
    position = 0
    directive: list[str] = []  # the tokens since a newline, as far as they matter
    while position < len(source):
        header = _HEADER.match(source, position) if directive == ["#", "include"] else None
        match = header or _TOKEN.match(source, position)
        assert match is not None  # "." with DOTALL matches whatever is left
        kind = Kind.HEADER if header else _KINDS[str(match.lastgroup)]
        token = Token(kind, match.group(), position)
        position = token.end
        if kind is Kind.NEWLINE:
            directive = []
        elif kind not in (Kind.SPACE, Kind.COMMENT) and len(directive) < 3:
            directive.append(token.text)
        yield token


def canonical(source: str) -> list[str]:
    """The token texts that make a kernel what it is.

    Comments and white space are gone, except where they mean something: the end of a preprocessor
    line, the gap in ``#define A (x)``, and ``// tune:`` lists.
    """
    result: list[str] = []
    line: list[str] = []  # significant tokens of this line
    gap = False
    for token in tokens(source):
        if token.kind is Kind.NEWLINE:
            if line[:1] == ["#"]:
                result.append("\n")
            line, gap = [], False
        elif token.kind is Kind.SPACE:
            gap = True
        elif token.kind is Kind.COMMENT:
            gap = True
            if tune := TUNE.match(token.text):
                result.append("// tune: " + " ".join(split_choices(tune["choices"])))
        else:
            if line[:2] == ["#", "define"] and len(line) == 3 and gap:
                result.append(" ")  # object-like macro: "A (x)" is not "A(x)"
            text = re.sub(r"\\\r?\n", "", token.text) if token.kind is Kind.NAME else token.text
            if text == "#" and not line and result and result[-1] != "\n":
                result.append("\n")
            result.append(text)
            line.append(text)
            gap = False
    return result


def split_choices(text: str) -> list[str]:
    """The values of a ``tune:`` list, separated by blanks or commas."""
    return [value for value in re.split(r"[\s,]+", text) if value]
