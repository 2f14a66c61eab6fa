"""Which model and which category of idea brought what, and for how much."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evo.credit import gained, writer
from evo.individual import Individual
from evo.records import Call, CallState, Proposal
from evo.report.layout import times
from evo.report.plain import finite
from evo.report.text import table
from evo.report.view import RunView
from evo.store import Store
from operators.llm import Usage

NOTHING = Usage()
PORTS, CROSSINGS, TUNINGS = "(first kernels)", "(crossings)", "(tunings)"


@dataclass(slots=True)
class Account:
    """What was spent on a model or a category, and what it brought.

    ``calls`` are attempts that cost something, ``replies`` those that answered; ``unusable``
    replies held no kernel or idea. ``accepted`` of the ``kernels`` were correct; ``gains`` are
    speedups over their base that are significant. Shares of a call may be fractions.
    """

    calls: float = 0.0
    replies: float = 0.0
    unusable: float = 0.0
    usage: Usage = NOTHING
    ideas: int = 0
    kernels: int = 0
    accepted: int = 0
    gains: list[float] = field(default_factory=list)

    @property
    def doublings(self) -> float:
        """All significant gains together, as doublings of the speed."""
        return sum(math.log2(gain) for gain in self.gains)

    @property
    def gain_per_dollar(self) -> float | None:
        """Doublings for each dollar; None where nothing was paid."""
        return self.doublings / self.usage.dollars if self.usage.dollars else None

    def pay(self, call: Call, unusable: bool, share: float = 1.0) -> None:
        """Add a call, or a share of it."""
        self.calls += share * call.attempts
        self.replies += share * (call.state is CallState.DONE)
        self.unusable += share * unusable
        self.usage = _sum(self.usage, call.usage, share)

    def bear(self, child: Individual, gain: float | None) -> None:
        """Add a kernel."""
        self.kernels += 1
        self.accepted += child.fitness.valid
        if gain is not None:
            self.gains.append(gain)


def _sum(one: Usage, other: Usage, share: float) -> Usage:
    def add(name: str) -> Any:
        return getattr(one, name) + share * getattr(other, name)

    return Usage(*(add(name) for name in ("input", "cached", "output", "reasoning", "dollars")))


@dataclass(frozen=True, slots=True)
class Accounts:
    """A run's accounts by model and by category; ``guessed`` tokens and dollars are estimates."""

    models: Mapping[str, Account]
    categories: Mapping[str, Account]
    guessed: tuple[int, float]

    @classmethod
    def read(cls, store: Store, view: RunView) -> Accounts:
        """From all that the store holds."""
        books = _Books(view, store.proposals(), _empty_answers(store))
        return cls(*books.accounts(store.calls()), store.guessed())


class _Books:
    """Knows whose each call and each kernel is."""

    def __init__(self, view: RunView, proposals: Iterable[Proposal], empty: frozenset[str]) -> None:
        self._view = view
        self._proposals: dict[str, dict[int, Proposal]] = defaultdict(dict)
        for one in proposals:
            self._proposals[one.key][one.place] = one
        self._empty = empty

    def accounts(self, calls: Iterable[Call]) -> tuple[dict[str, Account], dict[str, Account]]:
        models: dict[str, Account] = defaultdict(Account)
        categories: dict[str, Account] = defaultdict(Account)
        for call in calls:
            unusable = self._unusable(call)
            models[call.model].pay(call, unusable)
            for name, share in self._shares(call):
                categories[name].pay(call, unusable, share)
        for answer in self._proposals.values():
            for proposal in answer.values():
                categories[str(proposal.idea.category)].ideas += 1
                if proposal.idea.model:
                    models[proposal.idea.model].ideas += 1
        for child in self._view.individuals:
            self._bear(child, models, categories)
        return _ordered(models), _ordered(categories)

    def _bear(
        self, child: Individual, models: dict[str, Account], categories: dict[str, Account]
    ) -> None:
        find = self._view.by_id.get
        gain = gained(child, find)
        categories[self._category(child)].bear(child, gain)
        if model := writer(child, find):
            models[model].bear(child, gain)

    def _category(self, child: Individual) -> str:
        """The category of its idea; what was no idea of its own goes by how it was born."""
        if child.birth.idea is None:
            return TUNINGS
        root = self._view.by_id.get(child.id.partition("r")[0], child)
        named = {"port": PORTS, "crossover": CROSSINGS}
        return named.get(root.birth.operator, str(child.birth.idea.category))

    def _unusable(self, call: Call) -> bool:
        return call.state is CallState.DONE and _answer_of(call) in self._empty

    def _shares(self, call: Call) -> Iterator[tuple[str, float]]:
        """The categories that a call was for, with their shares of it."""
        purpose = call.prompt.purpose
        if purpose == "ideas":
            ideas = self._proposals.get(_answer_of(call), {}).values()
            counts = Counter(str(one.idea.category) for one in ideas) or Counter(["(no idea)"])
            yield from ((name, count / counts.total()) for name, count in counts.items())
        elif purpose == "repair" and (failed := self._view.by_id.get(call.parents[0])):
            yield self._category(failed), 1.0
        elif found := re.match(r"(.*)/implement/(\d+)/", call.key):
            proposal = self._proposals.get(f"{found[1]}/ideate", {}).get(int(found[2]))
            yield str(proposal.idea.category) if proposal else "(no idea)", 1.0
        else:
            yield (PORTS if purpose == "port" else CROSSINGS), 1.0


def _answer_of(call: Call) -> str:
    """The key of the author's answer that a call was made for."""
    return call.key.rsplit("/", 2)[0]


def _empty_answers(store: Store) -> frozenset[str]:
    """Keys of answers in which an author had nothing to give."""
    return frozenset(
        key
        for key, contents in store.contents_of_answers()
        if not (contents.get("ideas") or contents.get("drafts"))
    )


def _ordered(accounts: Mapping[str, Account]) -> dict[str, Account]:
    """What brought most comes first; what is no model or category of its own comes last."""

    def rank(item: tuple[str, Account]) -> tuple[bool, float, str]:
        return item[0].startswith("("), -item[1].doublings, item[0]

    return dict(sorted(accounts.items(), key=rank))


def document(accounts: Accounts, name: str) -> dict[str, Any]:
    """As JSON values."""
    return {
        "run": name,
        "models": {key: _record(one) for key, one in accounts.models.items()},
        "categories": {key: _record(one) for key, one in accounts.categories.items()},
        "guessed": {"tokens": accounts.guessed[0], "dollars": accounts.guessed[1]},
    }


def _record(one: Account) -> dict[str, Any]:
    return {
        "calls": one.calls,
        "replies": one.replies,
        "unusable": one.unusable,
        "tokens": finite(one.usage),
        "dollars": one.usage.dollars,
        "ideas": one.ideas,
        "kernels": one.kernels,
        "accepted": one.accepted,
        "gains": len(one.gains),
        "best_gain": max(one.gains, default=None),
        "doublings": one.doublings,
        "gain_per_dollar": one.gain_per_dollar,
    }


HEAD = (
    *("calls", "replies", "unusable", "ideas", "kernels", "accepted", "gains", "best gain"),
    *("tokens", "dollars", "gain/$"),
)
NOTES = (
    "A gain is significant: its time lies wholly below that of the kernel its idea was had for.",
    "gain/$: doublings of speed for a dollar. A call for ideas is shared among them.",
)


def lines(accounts: Accounts, name: str) -> list[str]:
    """For a terminal."""
    if not accounts.models:
        text = [f"{name}: its authors asked no models"]
    else:
        text = [f"{name}: what each model brought", ""]
        text += table(("model", *HEAD), (_row(*item) for item in accounts.models.items()))
    text += ["", *NOTES]
    tokens, dollars = accounts.guessed
    if tokens:
        text.append(
            f"Of calls that were lost, {tokens} tokens, {dollars:.2f} dollars are estimates."
        )
    return text


def _row(name: str, one: Account) -> tuple[str, ...]:
    worth = one.gain_per_dollar
    counts = (one.calls, one.replies, one.unusable, one.ideas, one.kernels, one.accepted)
    return (
        name,
        *(f"{count:.4g}" for count in counts),
        str(len(one.gains)),
        times(max(one.gains)) if one.gains else "-",
        f"{one.usage.tokens:.0f}",
        f"{one.usage.dollars:.2f}",
        "-" if worth is None else f"{worth:.2f}",
    )
