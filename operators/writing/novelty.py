"""Ideas that say what was said before, told by their words: cheap, the same everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from operators.idea import Idea

NEAR = 0.7  # the share of words in common (of all words of both) from which two ideas are the same
SAME_TITLE = 0.85  # the same of their titles alone
FEWEST = 3  # words that a title must have to be compared on its own

_WORD = re.compile(r"[a-z]+|\d+")
_FILLER = frozenset(
    """a an and are as at be by can each for from in instead into is it its of on one only or per
    so than that the their then there these this through to use used using via we which with within
    without would more make makes let lets do does all any every""".split()  # noqa: SIM905
)
_ENDINGS = re.compile(r"(?:ations?|izations?|ings?|ised?|ized?|ises|izes|ies|ed|es|s|e|ly)$")


def repeats(idea: Idea, earlier: Iterable[Idea]) -> Idea | None:
    """The first of ``earlier`` ideas that ``idea`` says again, if there is one."""
    mine, title = words(idea.text), words(_title(idea.text))
    for one in earlier:
        theirs = words(one.text)
        if _overlap(mine, theirs) >= NEAR:
            return one
        their_title = words(_title(one.text))
        long_enough = min(len(title), len(their_title)) >= FEWEST
        if long_enough and _overlap(title, their_title) >= SAME_TITLE:
            return one
    return None


@lru_cache(maxsize=4096)
def words(text: str) -> frozenset[str]:
    """The words that carry the meaning, reduced to their stems; numbers are words."""
    found = (word for word in _WORD.findall(text.lower()) if word not in _FILLER)
    return frozenset(_stem(word) for word in found)


def _stem(word: str) -> str:
    if len(word) <= 4 or word.isdigit():
        return word
    stem = _ENDINGS.sub("", word)
    return stem if len(stem) >= 3 else word


def _title(text: str) -> str:
    return text.partition(":")[0]


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0
