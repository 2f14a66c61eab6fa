"""The records that a run's store hands out beside individuals."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fitness.description import TaskDescription
from fitness.evaluation import Demand, Evaluation
from operators.idea import Idea
from operators.llm import Prompt, Reply, Usage


class State(StrEnum):
    """Where a run stands. A run killed while running still says so; its lock tells it apart."""

    RUNNING = "running"
    STOPPED = "stopped"  # by Ctrl-C or a signal
    FAILED = "failed"  # by an error of ours or of the machine
    WAITING = "waiting"  # for answers, or for a device that is not here
    FINISHED = "finished"  # its budget is spent


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What a run is about. ``config`` is the YAML as run, with the task's file name alone.

    ``best`` is the id of the fastest kernel so far, ``winner`` that of the certified one.
    ``outcome`` says in a line why the run ended.
    """

    name: str
    config: str
    task: TaskDescription
    demand: Demand
    language: str
    header: str
    environment: dict[str, str]
    created: str
    state: State = State.RUNNING
    best: str | None = None
    winner: str | None = None
    outcome: str = ""

    def standing(self, *, busy: bool) -> str:
        """The state in a word; ``interrupted`` for a run that was killed.

        ``busy``: whether a process is at it now.
        """
        if busy:
            return str(State.RUNNING)
        return "interrupted" if self.state is State.RUNNING else str(self.state)


@dataclass(frozen=True, slots=True)
class Step:
    """One planned act of variation: ``slot`` is the first that its children may take."""

    operator: str
    parents: tuple[str, ...]
    slot: int


@dataclass(frozen=True, slots=True)
class Phase:
    """Steps that are carried out at once.

    ``seen`` is the number of the last thing on record when they were planned: of profiles, which
    nobody waits for, authors know those that were there by then.
    """

    steps: tuple[Step, ...]
    seen: int


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation of one island.

    ``horizon`` is what its authors may know of: for each island the last generation that was closed
    when this one started, -1 for none. ``migrants`` were taken in at its start. ``survivors`` are
    ids, the best first; None while the generation is not closed.
    """

    island: int
    number: int
    horizon: tuple[int, ...]
    migrants: tuple[str, ...]
    survivors: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Migration:
    """A copy of an individual on its way; ``taken_in`` is the target's generation, once taken."""

    individual: str
    source: int
    target: int
    sent_in: int
    taken_in: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What an author answered to one of the search's questions: its ideas, or a draft.

    ``key`` names its place in the run. ``parts`` are a table of contents in JSON, and the sources,
    which the store keeps once for all answers, calls and kernels.
    """

    key: str
    author: str
    parts: tuple[str, ...]


class CallState(StrEnum):
    """What became of a request to a model or a person."""

    OPEN = "open"  # no reply yet
    DONE = "done"
    REFUSED = "refused"  # no usable reply will come
    LOST = "lost"  # its outcome is unknown; it is paid for at its estimate, and may be asked again


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a model or a person, and its reply.

    ``key`` names its place in the run. ``usage`` counts all ``attempts``, those of unknown outcome
    at their upper estimate. ``note`` says why there is no reply. ``at`` is when it was opened.
    """

    key: str
    seq: int
    at: float
    author: str
    model: str
    provider: str
    prompt: Prompt
    parents: tuple[str, ...]
    state: CallState
    reply: Reply | None
    usage: Usage
    attempts: int
    note: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """An idea that an author had for a kernel, whether or not it was carried out.

    ``key`` is the answer in which it came, ``place`` its place there.
    """

    key: str
    place: int
    idea: Idea
    parent: str
    island: int
    generation: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, ``at`` seconds of running time; ``seq`` orders all of a store."""

    seq: int
    at: float
    kind: str
    subject: str
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """An evaluation as stored: of which kernel, on which hardware, how deep, when."""

    seq: int
    at: float
    digest: str
    hardware: str
    purpose: str
    evaluation: Evaluation


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has used of its budget so far."""

    evaluations: int
    seconds: float
    tokens: int
    dollars: float
    calls: int = 0
