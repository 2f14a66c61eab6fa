"""A run's open requests with their leases and answers: what ask and tell work with.

It reads the run's record and writes the answers beside it, so it works whether the run is going on
or not, on any machine that has the run, and beside any number of others.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.signature import Signature
from evo import runs
from evo.ledger import ASK
from evo.records import Call, CallState, State
from evo.requests.answers import Answers
from evo.requests.record import (
    LONGEST_LEASE_MINUTES,
    Lease,
    Request,
    RequestError,
    Told,
    check_name,
    request_id,
)
from evo.store import Store
from operators.writing.check import IDEAS, check
from operators.writing.code import exactly
from operators.writing.text import LONGEST_REPLY

LOOK_S = 1.0
START_S = 20.0  # somebody may just be starting the run

Check = Callable[[str, str, str, tuple[Kernel, ...]], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """A request as it stands: who has taken it, if anybody, and what was told, the first first."""

    request: Request
    lease: Lease | None = None
    told: tuple[Told, ...] = ()


class Board:
    """The requests of the run in ``folder``. Use it as a context manager.

    ``reader`` raises on an answer that cannot be read; by default it is that of the authors.
    """

    def __init__(self, folder: Path, reader: Check | None = None) -> None:
        self.folder = folder
        self._check = reader or check
        self._store = Store.open(folder)
        self._answers = Answers.open(folder)

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        self._answers.close()
        self._store.close()

    def entries(self) -> list[Entry]:
        """All that the run waits for, in the order of asking; also what was told and is unused."""
        leases = self._answers.leases()
        return [
            Entry(one, leases.get(one.id), tuple(self._answers.told(one.id)))
            for one in map(request_of, self._store.calls(CallState.OPEN, ASK))
        ]

    @property
    def language(self) -> str:
        """What the run's kernels are written in."""
        return self._store.info.language

    @property
    def signature(self) -> Signature:
        """What a kernel of the run is called with."""
        return self._store.info.task.signature

    @property
    def header(self) -> str:
        """What the compiler puts before every source of the run."""
        return self._store.info.header

    def parents(self, entry: Entry) -> dict[str, Kernel]:
        """The kernels that a request is about, by id."""
        return {one: self._store.individual(one).kernel for one in entry.request.parents}

    def open(self) -> list[Entry]:
        """What is to be answered still, whoever has taken it."""
        return [entry for entry in self.entries() if not entry.told]

    def next(self) -> Entry | None:
        """The first request that nobody has answered or taken."""
        return next((entry for entry in self.open() if entry.lease is None), None)

    def take(self, by: str, minutes: float, wanted: str | None = None) -> Entry | None:
        """Lease a request to ``by``: the one that it holds, else the first that is free.

        ``wanted`` asks for that very one. Raises RequestError where that is not to be had.
        """
        by = check_name(by)
        if not 0 < minutes <= LONGEST_LEASE_MINUTES:
            raise RequestError(f"a lease lasts up to {LONGEST_LEASE_MINUTES:g} minutes")
        entries = {one.request.id: one for one in self.open()}
        if wanted is not None:
            entries = {wanted: self._to_take(wanted, by)}
        lease = self._answers.take(entries, by, minutes)
        return None if lease is None else Entry(entries[lease.request].request, lease)

    def _to_take(self, wanted: str, by: str) -> Entry:
        entry = self.find(wanted)
        if entry.told:
            raise RequestError(f"request {wanted} was answered; take another")
        if entry.lease is not None and entry.lease.by != by:
            raise RequestError(
                f"request {wanted} is taken by {entry.lease.by} until {entry.lease.ends}"
            )
        return entry

    def find(self, word: str) -> Entry:
        """The request of that id (or the beginning of one). Raises RequestError naming others."""
        entries = self.entries()
        found = [one for one in entries if word and one.request.id.startswith(word)]
        if len(found) == 1:
            return found[0]
        if len(found) > 1:
            several = ", ".join(one.request.id for one in found)
            raise RequestError(f"several requests begin with {word!r}: {several}")
        raise RequestError(self._unknown(word, [one.request.id for one in entries]))

    def _unknown(self, word: str, ids: list[str]) -> str:
        for call in self._store.calls(None, ASK):
            request = request_of(call)
            if word and request.id.startswith(word):
                return f"request {request.id} is closed: its answer was used, and is not replaced"
        if told := self._answers.told(word):
            return f"request {word} is not one of this run now, and was answered at {told[0].at}"
        near = difflib.get_close_matches(word, ids, n=3) or ids[:5]
        hint = f"; open are: {', '.join(near)}" if near else ": nothing is open"
        return f"{self.folder.name} has no request {word!r}{hint}"

    def tell(self, word: str, text: str, by: str = "") -> Told:
        """Take an answer in, once it was read as the run will read it.

        Raises RequestError for an unknown, answered or leased request, and whatever says why the
        answer cannot be read: then nothing has changed.
        """
        by = check_name(by) if by else ""
        entry = self.find(word)
        request = entry.request
        if not entry.told:  # else it may be the same answer once more
            self._answers.refuse(request.id, by)
        self._read(entry, text)
        return self._answers.tell(request.id, text, by)

    def draft(self, word: str, text: str) -> Kernel | None:
        """The kernel that ``text`` would be as an answer to a request; nothing is taken in.

        None where it holds ideas, as it should. Raises RequestError for an unknown request, and
        what `tell` raises.
        """
        entry = self.find(word)
        parents = self._read(entry, text)
        if entry.request.prompt.purpose == IDEAS:
            return None
        return exactly(text, self.language, parents[0] if parents else None)

    def _read(self, entry: Entry, text: str) -> tuple[Kernel, ...]:
        """The request's parents, if ``text`` can be read as its answer; raises as `tell`."""
        if len(text) > LONGEST_REPLY:
            raise RequestError(f"the answer has {len(text)} characters; {LONGEST_REPLY} are read")
        parents = tuple(self.parents(entry).values())
        self._check(entry.request.prompt.purpose, text, self.language, parents)
        return parents

    def give_back(self, word: str, by: str) -> None:
        """End a lease, so that somebody else may take the request at once."""
        self._answers.give_back(self.find(word).request.id, check_name(by))

    def standing(self) -> str:
        """What the run does now, and what to do where it does nothing."""
        name, entries = self.folder.name, self.open()
        leases = [entry.lease for entry in entries if entry.lease]
        if entries and len(leases) == len(entries):
            first = min(leases, key=lambda lease: lease.until)
            free = f"{first.request}, taken by {first.by}, is free again at {first.ends}"
            return f"{len(entries)} open, all of them taken: {free}"
        if entries:
            return f"{len(entries)} open, {len(leases)} of them taken"
        if runs.in_use(self.folder):
            return f"nothing is open: {name} is going on, and asks when it comes to it"
        if self._store.info.state is State.FINISHED:
            return f"nothing is open: {name} is finished"
        return f"nothing is open until the run goes on: kernelevo run {name} --until-waiting"


def patiently(
    folder: Path, look: Callable[[Board], Entry | None], seconds: float
) -> tuple[Entry | None, str]:
    """What ``look`` finds, within so many seconds; else why nothing was found.

    Nobody waits long where nothing can come: no request is open, and the run is not going on.
    """
    began = time.monotonic()
    while True:
        with Board(folder) as board:  # anew: another copy of the run may come in meanwhile
            found, why = look(board), board.standing()
            may_come = runs.in_use(folder) or bool(board.open())
        limit = seconds if may_come else min(seconds, START_S)
        if found is not None or time.monotonic() - began >= limit:
            return found, why
        time.sleep(LOOK_S)


def request_of(call: Call) -> Request:
    """A recorded call as a request."""
    return Request(request_id(call.key, call.prompt), call.key, call.prompt, call.parents)
