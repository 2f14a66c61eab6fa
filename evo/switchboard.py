"""Connects authors' desks with models and people: one line to each model, every reply on record."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from evo.budget import Budget
from evo.desk import OverBudget
from evo.ledger import ASK, Asked, Ledger
from evo.outages import Outages
from evo.recorder import Recorder
from evo.records import Call, CallState
from evo.replay import Recording
from evo.requests.postbox import Postbox
from evo.waiting import Waiting
from evo.watch import Watch
from operators.llm import Kind, Model, Prompt, Refused, Reply, Usage
from operators.llm.policy import Line
from operators.llm.table import provider

LOOK_S = 2.0  # between two looks whether a call that waits is still wanted


class Switchboard:
    """Puts requests through. What is on record is answered from there, and never asked twice.

    ``recording`` holds the replies of another run, which are given again.
    """

    def __init__(
        self,
        recorder: Recorder,
        budget: Budget,
        watch: Watch,
        postbox: Postbox,
        waiting: Waiting,
        recording: Recording | None = None,
    ) -> None:
        self.ledger = Ledger(recorder)
        self.budget = budget
        self.outages = Outages(recorder, watch)
        self._recorder = recorder
        self._postbox = postbox
        self._waiting = waiting
        self._recording = recording
        self._lines: dict[str, Line] = {}

    async def reply(self, asked: Asked) -> Reply | None:
        """The reply: the recorded one, or one that is asked for now; None if none will come.

        Raises OverBudget where no call may be made, and Unusable where the model cannot be asked.
        """
        recorded = self._recorder.call(asked.key)
        if recorded is not None and recorded.state in (CallState.DONE, CallState.REFUSED):
            return recorded.reply
        if self._recording is not None and (known := self._recording.find(asked)) is not None:
            return self._again(asked, known)
        if asked.model.provider == ASK:
            return await self._from_people(asked, recorded)
        return await self._from_model(asked)

    def _again(self, asked: Asked, known: Call) -> Reply | None:
        """What another run was told, at no cost."""
        self.ledger.open(asked)
        if known.reply is None:
            self.ledger.refuse(asked.key, known.note)
            return None
        self.ledger.done(asked.key, known.reply, "from a recording")
        return known.reply

    async def _from_people(self, asked: Asked, recorded: Call | None) -> Reply:
        """The answer of whoever tells it first; the request stays open until then."""
        if recorded is None and not self._postbox.withdrawn:
            self.ledger.open(asked)
        # what was given out keeps its wording, whatever it would be on this machine
        prompt = asked.prompt if recorded is None else recorded.prompt
        told = await self._postbox.answer(asked.key, prompt)
        if told is None:
            self.budget.refusals += 1
            raise OverBudget
        reply = Reply(told.text, Usage(), told.by or asked.model.name)
        self.ledger.done(asked.key, reply)
        return reply

    async def _from_model(self, asked: Asked) -> Reply | None:
        """The model's reply, on the disk before it is used."""
        books = CallBooks(self.ledger, self.budget, asked)
        try:
            with self._waiting.working():
                reply = await self._in_time(asked, books)
        except Refused as refused:
            if refused.trouble.kind is Kind.BUDGET:
                books.lost("the budget does not allow another attempt")
                raise OverBudget from None
            self.ledger.refuse(asked.key, str(refused))
            return None
        except BaseException:  # stopped, or a model that cannot be asked
            books.lost("the run was stopped before the reply came")
            raise
        self.ledger.done(asked.key, reply)
        return reply

    async def _in_time(self, asked: Asked, books: CallBooks) -> Reply:
        """Nobody waits for a server that is out once the budget is spent, by hours or otherwise."""
        line = self._line(asked.model)
        call = asyncio.ensure_future(line.complete(asked.prompt, books, asked.model))
        try:
            while not call.done():
                await asyncio.wait({call}, timeout=LOOK_S)
                if not call.done() and self.budget.exhausted() and not books.under_way:
                    self.budget.refusals += 1
                    raise OverBudget
        finally:
            call.cancel()
            await asyncio.wait({call})  # it still has to book what was under way
        return call.result()

    def _line(self, model: Model) -> Line:
        if model.name not in self._lines:
            self._lines[model.name] = Line(model, provider(model), self.outages.notice)
        return self._lines[model.name]

    async def check(self, models: Iterable[Model]) -> None:
        """Ask whether each model can be used, before anything is spent. Raises Unusable."""
        for model in models:
            if model.provider != ASK:
                await self._line(model).check()

    async def aclose(self) -> None:
        """Close all lines."""
        for line in self._lines.values():
            await line.aclose()


class CallBooks:
    """The books of one call: each attempt is reserved and on the disk before it is made."""

    def __init__(self, ledger: Ledger, budget: Budget, asked: Asked) -> None:
        self.under_way = False
        self._ledger = ledger
        self._budget = budget
        self._asked = asked
        self._opened = False

    async def book(self, prompt: Prompt, model: Model, estimate: Usage) -> Entry | None:  # noqa: ARG002
        """See `operators.llm.Books`."""
        if not await self._budget.reserve(estimate, model.name):
            return None
        self._ledger.open(self._asked, estimate)
        self._opened = self.under_way = True
        return Entry(self, estimate)

    def ended(self, estimate: Usage, usage: Usage | None, guessed: bool = False) -> None:
        """An attempt has ended; ``usage`` None: it was free."""
        self.under_way = False
        self._budget.settle(estimate, self._asked.model.name, usage)
        self._ledger.pay(self._asked.key, usage, guessed)

    def lost(self, note: str) -> None:
        """No reply came, but one may still be asked for; without an attempt nothing is recorded."""
        if self._opened:
            self._ledger.lose(self._asked.key, note)


class Entry:
    """One attempt in the books; see `operators.llm.Booking`."""

    def __init__(self, books: CallBooks, estimate: Usage) -> None:
        self._books = books
        self._estimate = estimate

    def settled(self, usage: Usage) -> None:
        """It cost this much."""
        self._books.ended(self._estimate, usage)

    def free(self) -> None:
        """It cost nothing, or was never sent."""
        self._books.ended(self._estimate, None)

    def unknown(self) -> None:
        """Nobody can say what it cost: it counts as its estimate."""
        self._books.ended(self._estimate, self._estimate, guessed=True)
