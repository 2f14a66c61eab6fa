"""The one policy for trouble, as rules: what is done when a model does not answer as it should.

rate limited, quota used up,      the line is shut, says so, and lets one call at a time try,
server trouble, not reached       more and more rarely: a run outlives an outage
connection lost, unreadable,      asked again a few times; each attempt is booked anew, and
empty or cut answer               where its cost is unknown, at its upper estimate
no answer in time, declined,      given up: Refused, and the run goes on without it
rejected, budget
key not accepted, unknown model   the run stops: Unusable, with the remedy
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from operators.llm import Kind


class Then(StrEnum):
    """What is done about a trouble."""

    WAIT = "waits"
    AGAIN = "asks again"
    GIVE_UP = "gives the answer up"
    STOP = "stops"


@dataclass(frozen=True, slots=True)
class Rule:
    """``again``: how often a call is repeated. ``strikes`` in a row mean that the server is out."""

    then: Then
    again: int = 0
    strikes: int | None = None


RULES = {
    Kind.RATE: Rule(Then.WAIT, strikes=1),
    Kind.QUOTA: Rule(Then.WAIT, strikes=1),
    Kind.OUTAGE: Rule(Then.WAIT, strikes=1),
    Kind.UNREACHABLE: Rule(Then.WAIT, strikes=1),
    Kind.LOST: Rule(Then.AGAIN, again=2, strikes=3),
    Kind.GARBLED: Rule(Then.AGAIN, again=2, strikes=3),
    Kind.EMPTY: Rule(Then.AGAIN, again=1),
    Kind.TRUNCATED: Rule(Then.AGAIN, again=1),
    Kind.TIMEOUT: Rule(Then.GIVE_UP, strikes=3),
    Kind.DECLINED: Rule(Then.GIVE_UP),
    Kind.REJECTED: Rule(Then.GIVE_UP),
    Kind.BUDGET: Rule(Then.GIVE_UP),
    Kind.KEY: Rule(Then.STOP),
    Kind.MODEL: Rule(Then.STOP),
}

# how often a call may meet server trouble while others are answered: some servers have an error of
# their own for a prompt that is too long
_HOPELESS = 5
# how often a key or a name is tried again that was good before: servers in trouble deny both
_BELIEF = 5
# requests rejected one after the other before any was accepted: the options must be wrong
_WRONG_OPTIONS = 3


class Tried:
    """What one call has met so far."""

    def __init__(self) -> None:
        self.kinds: Counter[Kind] = Counter()
        self.again = 0
        self._alone = 0
        self._answers: int | None = None

    def alone(self, answers: int) -> int:
        """How often it failed although others were answered since it last did.

        ``answers`` is how many there have been on this line.
        """
        self._alone += self._answers is not None and answers > self._answers
        self._answers = answers
        return self._alone


class Record:
    """What a line has seen: it decides beside the rules."""

    def __init__(self) -> None:
        self.answers = 0
        self._rejections = 0

    def decide(self, kind: Kind, tried: Tried) -> Then:
        """What is done now about a trouble that a call has met."""
        rule = RULES[kind]
        tried.kinds[kind] += 1
        if rule.then is Then.AGAIN:
            tried.again += 1
            return Then.AGAIN if tried.again <= rule.again else Then.GIVE_UP
        if kind is Kind.OUTAGE and tried.alone(self.answers) >= _HOPELESS:
            return Then.GIVE_UP
        if rule.then is Then.STOP and self.answers and tried.kinds[kind] <= _BELIEF:
            return Then.WAIT
        if kind is Kind.REJECTED and not self.answers:
            self._rejections += 1
            return Then.STOP if self._rejections >= _WRONG_OPTIONS else Then.GIVE_UP
        return rule.then
