"""Ideas that say what was said before, told by their words: cheap, the same everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from operators.author import Specimen, Tried
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


@dataclass(frozen=True, slots=True)
class Sifted:
    """Ideas that are new, and those that are not, each with the one that it repeats.

    ``earlier`` is what they were held against, ``failed`` what did not get to a fair trial: that
    is a repetition only in the same words.
    """

    fresh: tuple[Idea, ...]
    repeated: tuple[tuple[Idea, Idea], ...]
    earlier: tuple[Idea, ...]
    failed: tuple[Idea, ...]

    def and_then(self, ideas: Iterable[Idea]) -> Sifted:
        """These with further ones, which must not repeat these either."""
        fresh, repeated = list(self.fresh), list(self.repeated)
        dropped = [idea for idea, _ in self.repeated]
        for idea in ideas:
            found = repeats(idea, [*self.earlier, *fresh, *dropped]) or _again(idea, self.failed)
            if found:
                repeated.append((idea, found))
            else:
                fresh.append(idea)
        return Sifted(tuple(fresh), tuple(repeated), self.earlier, self.failed)


def sift(ideas: Iterable[Idea], parent: Specimen, tried: Sequence[Tried]) -> Sifted:
    """Tell the ideas for ``parent`` that are new from those that are in it or were tried on it."""
    here = [one for one in tried if one.here]
    failed = tuple(one.idea for one in here if one.gain is None)
    earlier = (*parent.ancestry, *(one.idea for one in here if one.gain is not None))
    return Sifted((), (), earlier, failed).and_then(ideas)


def _again(idea: Idea, failed: Iterable[Idea]) -> Idea | None:
    """The failed one that ``idea`` repeats word for word."""
    return next((one for one in failed if words(one.text) == words(idea.text)), None)


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
