"""Repeating a run from its recorded replies: new timings, no tokens.

A reply is found by the digest of its prompt. Timings differ from one time to the next, and prompts
speak of them: sooner or later a prompt comes up that was never asked. Then the replay ends with a
report of how far it came and of what is different, or asks on, as told. With the recorded verdicts
in the place of new ones nothing differs: that repeats the search itself, and needs no device.
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from cuda_sandbox.errors import UserError
from evo.ledger import Asked
from evo.records import Call, CallState
from evo.store import Store

SHOWN = 12  # lines of a difference


class OnMiss(StrEnum):
    """What is done about a prompt that was never asked."""

    STOP = "stop"
    ASK = "ask"


class Verdicts(StrEnum):
    """Where a replay's verdicts come from."""

    NEW = "new"
    RECORDED = "recorded"


class Departed(UserError):
    """A replay came to a prompt that was never asked; the message is its report."""

    exit_code = 5


@dataclass(frozen=True, slots=True)
class Replaying:
    """Which run is repeated, and how. Raises UserError where that does not go together."""

    folder: Path
    on_miss: OnMiss = OnMiss.STOP
    verdicts: Verdicts = Verdicts.NEW

    def __post_init__(self) -> None:
        if self.on_miss is OnMiss.ASK and self.verdicts is Verdicts.RECORDED:
            raise UserError(
                "--on-miss ask needs new verdicts: what is asked for now was never judged"
            )

    @contextmanager
    def opened(self) -> Iterator[Recording]:
        """Its recording."""
        with Store.open(self.folder) as store:
            yield Recording(store, self.on_miss, self.verdicts)


@dataclass(slots=True)
class Recording:
    """The replies of another run. ``used`` counts those that were given again."""

    store: Store
    on_miss: OnMiss
    verdicts: Verdicts
    used: int = 0
    _by_digest: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        rows = self.store.rows("select digest, key from calls where state != 'open' order by seq")
        for digest, key in rows:
            self._by_digest[digest].append(key)

    @property
    def name(self) -> str:
        """Of the run."""
        return self.store.path.resolve().parent.name

    def find(self, asked: Asked) -> Call | None:
        """The call that was made of that very prompt; each is given once, its own place's first.

        None: it was never made, and is to be made now. Raises Departed where it is not.
        """
        keys = self._by_digest[asked.prompt.digest(asked.model)]
        if keys:
            key = asked.key if asked.key in keys else keys[0]
            keys.remove(key)
            found = self.store.call(key)
            if found is not None and found.state is not CallState.LOST:
                self.used += 1
                return found
        if self.on_miss is OnMiss.ASK:
            return None
        raise Departed(self._report(asked))

    def _report(self, asked: Asked) -> str:
        (total,) = self.store.rows("select count(*) from calls where state = 'done'")[0]
        lines = [
            f"the replay departed from {self.name} at {asked.key}, after {self.used} of {total} "
            f"replies: a prompt came up that was never asked",
            *self._difference(asked),
            "with --on-miss ask it goes on, and asks the models; --verdicts recorded repeats the "
            "run with its own timings",
        ]
        return "\n".join(lines)

    def _difference(self, asked: Asked) -> list[str]:
        """How the prompt differs from that of the same place."""
        there = self.store.call(asked.key)
        if there is None:
            return [f"  {self.name} never came to that place"]
        if there.model != asked.model.name:
            return [
                f"  {self.name} asked {there.model} there, and now it would be {asked.model.name}"
            ]
        before, now = there.prompt.text.splitlines(), asked.prompt.text.splitlines()
        changed = [
            f"  {line}"
            for line in difflib.unified_diff(before, now, n=0, lineterm="")
            if line[:1] in "+-" and line[:3] not in ("+++", "---")
        ]
        more = [f"  ... and {len(changed) - SHOWN} lines more"] if len(changed) > SHOWN else []
        return [*changed[:SHOWN], *more]
