"""Put the whole corpus before the real judge on this machine: is every cheat caught?"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import itertools
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cuda_sandbox import backend, driver
from cuda_sandbox.compiler import Compiler
from cuda_sandbox.report import CompileReport, Status
from fitness.corpus import HONEST, KINDS, Specimen, specimens
from fitness.errors import TaskError
from fitness.evaluation import Demand, Evaluation, Execution
from fitness.judge import Judge
from fitness.module.berths import Berths, spare
from fitness.task import describe

COMPILE_S = 25.0
ANSWER_S = 3.0
TUNING_S = 7.0
"""Deadlines of compiler and kernel, and what a module's tuning adds: cheats that never end must
not take minutes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on one specimen; ``complaint`` says what is wrong with it, empty if nothing is.

    ``status`` is None where it could not be judged here, and ``reason`` says why; ``execution`` is
    what ran of a module.
    """

    specimen: Specimen
    status: Status | None
    reason: str
    complaint: str
    seconds: float = 0.0
    execution: Execution | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """How many of a kind were judged, and how many of those as they should be."""

    right: int
    judged: int
    skipped: int


def tallies(outcomes: Sequence[Outcome]) -> dict[str, Tally]:
    """By kind, in the order of the kinds, honest ones last."""
    found = {}
    for kind in (*KINDS, HONEST):
        mine = [outcome for outcome in outcomes if outcome.specimen.kind == kind]
        judged = [outcome for outcome in mine if outcome.status is not None]
        right = sum(not outcome.complaint for outcome in judged)
        found[kind] = Tally(right, len(judged), len(mine) - len(judged))
    return found


def languages(device: str) -> tuple[str, ...]:
    """The languages whose specimens run on ``device``."""
    return ("cuda", "module") if device.startswith("cuda") else ("cpp", "module")


def chosen(device: str, names: Sequence[str] = (), language: str | None = None) -> list[Specimen]:
    """The corpus for ``device``; only those in a language and with these names, if any are given.

    Raises:
        ValueError: there is no such specimen, or none in that language for the device.
    """
    kind, known = device.partition(":")[0], languages(device)
    if language and language not in known:
        listed = ", ".join(known)
        raise ValueError(f"no kernel for {device} is in {language!r}; choose from: {listed}")
    wanted = [language] if language else known
    found = [s for s in specimens(*wanted) if not s.devices or kind in s.devices]
    if unknown := set(names) - {specimen.name for specimen in found}:
        raise ValueError(f"no kernel of the corpus for {device} is called {unknown.pop()!r}")
    return [specimen for specimen in found if not names or specimen.name in names]


def run(
    found: Sequence[Specimen], device: str, compiler: Compiler | None = None
) -> Iterator[Outcome]:
    """Judge specimens one after the other; all are compiled ahead, each task has one judge."""
    with contextlib.ExitStack() as stack:
        pool = compiler or stack.enter_context(Compiler(deadline_s=COMPILE_S))
        groups = itertools.groupby(sorted(found, key=_court), key=_court)
        berths = stack.enter_context(Berths(spare(device.partition(":")[0])))
        courts = [_Court(list(members), device, pool, berths) for _, members in groups]
        with ThreadPoolExecutor() as threads:  # a process for each, which imports PyTorch
            list(threads.map(describe, {specimen.task for specimen in found}))
        for court in courts:
            court.compile()
        for court in courts:
            yield from court.verdicts()


def _court(specimen: Specimen) -> tuple[str, str]:
    return str(specimen.task), str(specimen.demand)


class _Court:
    """The specimens of one task and demand, and the judge for them."""

    def __init__(
        self, members: list[Specimen], device: str, compiler: Compiler, berths: Berths
    ) -> None:
        self._task: Path = members[0].task
        self._demand: Demand = members[0].demand
        self._device = device
        self._compiler = compiler
        self._berths = berths
        self._here = [specimen for specimen in members if not missing(specimen)]
        self._absent = [specimen for specimen in members if missing(specimen)]
        self._reports: dict[Specimen, Future[CompileReport]] = {}

    def compile(self) -> None:
        """Start to compile those that can be compiled without a judge."""
        signature = describe(self._task).signature
        arch = _arch(self._device)
        for specimen in self._here:
            if specimen.kernel.language in backend.names():
                self._reports[specimen] = self._compiler.submit(specimen.kernel, signature, arch)

    def verdicts(self) -> Iterator[Outcome]:
        """One after the other."""
        for specimen in self._absent:
            yield Outcome(specimen, None, missing(specimen), "")
        try:
            judge = Judge(
                *(self._task, self._demand, self._device),
                compiler=self._compiler,
                berths=self._berths,
            )
        except TaskError as error:
            refusal = Evaluation(Status.REJECTED, f"task: {error}")
            yield from (_outcome(specimen, refusal, 0.0) for specimen in self._here)
            return
        judge.deadline_s = min(judge.deadline_s, ANSWER_S)
        judge.tuning_s = TUNING_S
        try:
            for specimen in self._here:
                yield self._verdict(judge, specimen)
        finally:
            judge.close()

    def _verdict(self, judge: Judge, specimen: Specimen) -> Outcome:
        ahead = self._reports.get(specimen)
        compiled = ahead.result() if ahead else judge.compile(specimen.kernel)
        started = time.perf_counter()
        found = judge.evaluate(specimen.kernel, compiled)
        return _outcome(specimen, found, time.perf_counter() - started)


def _outcome(specimen: Specimen, found: Evaluation, seconds: float) -> Outcome:
    complaint = specimen.complaint(found.status, found.reason)
    return Outcome(specimen, found.status, found.reason, complaint, seconds, found.execution)


def _arch(device: str) -> str:
    return driver.device(driver.ordinal(device)).arch if device.startswith("cuda") else "native"


def missing(specimen: Specimen) -> str:
    """Why this machine cannot judge a specimen; empty if it can."""
    native = specimen.kernel.language in backend.names()
    if native and (why := backend.find(specimen.kernel.language).missing()):
        return why
    if specimen.needs.startswith("sm_"):
        needed, here = int(specimen.needs[3:].rstrip("a")), _capability()
        return f"needs {specimen.needs}, this is sm_{here}" if here < needed else ""
    if specimen.needs and importlib.util.find_spec(specimen.needs) is None:
        return f"needs the package {specimen.needs}"
    return ""


def _capability() -> int:
    return max(
        (d.major * 10 + d.minor for d in map(driver.device, range(driver.count()))), default=0
    )


def as_record(outcomes: Sequence[Outcome], device: str) -> dict[str, object]:
    """The result as JSON values."""
    return {
        "device": device,
        "kinds": {kind: dataclasses.asdict(tally) for kind, tally in tallies(outcomes).items()},
        "missed": [_told(outcome) for outcome in outcomes if outcome.complaint],
        "outcomes": [_told(outcome) for outcome in outcomes],
    }


def _told(outcome: Outcome) -> dict[str, object]:
    specimen = outcome.specimen
    return {
        "name": specimen.name,
        "language": specimen.kernel.language,
        "kind": specimen.kind,
        "does": specimen.does,
        "status": outcome.status,
        "reason": outcome.reason,
        "complaint": outcome.complaint,
        "seconds": round(outcome.seconds, 3),
    }
