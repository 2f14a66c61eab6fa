"""The line to a model: every call goes through it, by one policy for all trouble (``rules``).

The vendors' own retries are off, so that nothing is asked, paid or waited for behind our back.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from operators.llm import (
    Booking,
    Books,
    Cost,
    Kind,
    Model,
    Prompt,
    Provider,
    Refused,
    Reply,
    Trouble,
    Unusable,
)
from operators.llm.estimate import about, at_most
from operators.llm.gate import LONGEST_S, Gate, Passage, backoff
from operators.llm.pace import Admission, Pace
from operators.llm.rules import RULES, Record, Then, Tried

# seconds: the longest pause while only a person can mend it; for asking whether a model is there
_LONG_PAUSE_S = 300.0
_CHECK_S = 60.0


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the user may want to know. ``wait_s``: the line is shut for so long.

    ``then`` None: the model answers again.
    """

    model: str
    kind: Kind
    message: str
    then: Then | None
    wait_s: float | None = None

    def __str__(self) -> str:
        if self.then is None:
            return f"{self.model} answers again"
        wait = f"; next try in {self.wait_s:.0f} s" if self.wait_s is not None else ""
        return f"{self.model}: {self.kind}: {self.message}{wait}"


class Line:
    """The line to one model of a run: all calls to it go through here, as many at once as allowed.

    ``notify`` is told of every trouble; ``troubles`` counts them by kind.
    """

    def __init__(
        self,
        model: Model,
        provider: Provider,
        notify: Callable[[Notice], None] = lambda _: None,
        rng: random.Random | None = None,
    ) -> None:
        self.model = model
        self.troubles: Counter[Kind] = Counter()
        self._provider = provider
        self._notify = notify
        self._rng = rng or random.Random()
        self._pace = Pace(model.limits)
        self._gate = Gate(self._rng)
        self._record = Record()

    async def check(self) -> None:
        """Ask whether key and model are accepted; waits out an outage. Costs nothing.

        Raises Unusable. A server that cannot tell passes.
        """
        tried = Tried()
        while True:
            async with self._gate.passage() as passage:
                trouble = await self._ask_whether_usable()
                if trouble is None:
                    return self._answered(passage)
                if self._react(trouble, tried, passage) is Then.GIVE_UP:
                    return None

    async def complete(self, prompt: Prompt, books: Books, model: Model | None = None) -> Reply:
        """Ask, and do about every trouble what the policy says. ``books`` are those of this call.

        ``model``: this line's model with other options, such as a temperature.
        Returns a whole reply with a text. Raises Refused if none will come, and Unusable. When it
        is cancelled, a request under way is booked as of unknown cost.
        """
        call, tried = _Call(prompt, model or self.model, books), Tried()
        async with self._pace.slots:
            while (reply := await self._try(call, tried)) is None:
                pass
        return reply

    async def aclose(self) -> None:
        """Close the connections."""
        await self._provider.aclose()

    async def _ask_whether_usable(self) -> Trouble | None:
        try:
            async with asyncio.timeout(_CHECK_S):
                await self._provider.check(self.model)
        except TimeoutError:
            return Trouble(Kind.UNREACHABLE, f"no answer within {_CHECK_S:g} s")
        except Trouble as trouble:
            return trouble
        return None

    async def _try(self, call: _Call, tried: Tried) -> Reply | None:
        """One try, as soon as gate and pace allow it; None: try again."""
        async with self._gate.passage() as passage:
            admission = await self._pace.admit(about(call.prompt) + call.model.max_output_tokens)
            booking = await self._book(call, admission, passage)
            if booking is None:
                return None
            try:
                reply = await self._attempt(call, booking)
            except Trouble as trouble:
                admission.used(_tokens(trouble))
                then = self._react(trouble, tried, passage)
                if then is Then.GIVE_UP:
                    raise Refused(trouble) from None
            else:
                admission.used(reply.usage.tokens)
                self._record.answers += 1
                self._answered(passage)
                return reply
        if then is Then.AGAIN:  # where it waits, the gate does
            await asyncio.sleep(backoff(tried.again, self._rng))
        return None

    async def _book(self, call: _Call, admission: Admission, passage: Passage) -> Booking | None:
        """The attempt's entry in the books, which may wait; None if the gate was shut meanwhile."""
        booking = None
        try:
            if not passage.overtaken:
                estimate = at_most(call.prompt, call.model)
                booking = await call.books.book(call.prompt, call.model, estimate)
                if booking is None:
                    raise Refused(Trouble(Kind.BUDGET, "what it may cost at most is not there"))
            if booking is not None and passage.overtaken:
                booking.free()
                booking = None
        finally:
            if booking is None:
                admission.withdrawn()
        return booking

    async def _attempt(self, call: _Call, booking: Booking) -> Reply:
        """One request and its entry in the books. Raises Trouble."""
        deadline_s = self.model.limits.deadline_s
        try:
            async with asyncio.timeout(deadline_s):
                reply = await self._provider.complete(call.prompt, call.model)
        except TimeoutError:
            booking.unknown()
            message = f"the answer was not complete after {deadline_s:g} s"
            raise Trouble(Kind.TIMEOUT, message, Cost.UNKNOWN) from None
        except Trouble as trouble:
            _settle(booking, trouble)
            raise
        except BaseException:  # cancelled under way, or a fault of ours
            booking.unknown()
            raise
        booking.settled(reply.usage)
        return reply

    def _react(self, trouble: Trouble, tried: Tried, passage: Passage) -> Then:
        """Decide, shut or open the gate, tell. Raises Unusable."""
        rule = RULES[trouble.kind]
        then = self._record.decide(trouble.kind, tried)
        wait_s = None
        if rule.strikes or then is Then.WAIT:
            longest_s = _LONG_PAUSE_S if trouble.kind is Kind.QUOTA else LONGEST_S
            wait_s = passage.failed(rule.strikes or 1, longest_s, trouble.retry_after_s)
        else:
            self._answered(passage)
        self._tell(trouble, then, wait_s)
        if then is Then.STOP:
            raise Unusable(f"{self.model.name}: {trouble.message}")
        return then

    def _answered(self, passage: Passage) -> None:
        if passage.answered():
            self._notify(Notice(self.model.name, Kind.OUTAGE, "", None))

    def _tell(self, trouble: Trouble, then: Then, wait_s: float | None = None) -> None:
        self.troubles[trouble.kind] += 1
        self._notify(Notice(self.model.name, trouble.kind, trouble.message, then, wait_s))


@dataclass(frozen=True, slots=True)
class _Call:
    """What is asked, of which model, and where it is booked."""

    prompt: Prompt
    model: Model
    books: Books


def _settle(booking: Booking, trouble: Trouble) -> None:
    if trouble.usage is not None:
        booking.settled(trouble.usage)
    elif trouble.cost is Cost.FREE:
        booking.free()
    else:
        booking.unknown()


def _tokens(trouble: Trouble) -> int | None:
    if trouble.usage is not None:
        return trouble.usage.tokens
    return 0 if trouble.cost is Cost.FREE else None
