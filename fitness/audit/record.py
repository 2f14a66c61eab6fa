"""What an audit found, as plain records: made where torch is, read anywhere."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from fitness.evaluation import Demand, Tier


@dataclass(frozen=True, slots=True)
class Job:
    """One task to audit: for which demand, on which device, within how many seconds."""

    path: Path
    demand: Demand
    device: str = "cpu"
    deadline_s: float = 300.0

    def line(self) -> str:
        """The job as one line of JSON."""
        return json.dumps(
            {
                "path": str(self.path),
                "tier": self.demand.tier,
                "tolerance": self.demand.tolerance,
                "device": self.device,
                "deadline_s": self.deadline_s,
            }
        )

    @classmethod
    def read(cls, line: str) -> Job:
        """The job that `line` wrote."""
        data = json.loads(line)
        tier = None if data["tier"] is None else Tier(data["tier"])
        demand = Demand(tier, data["tolerance"])
        return cls(Path(data["path"]), demand, data["device"], data["deadline_s"])


class Outcome(StrEnum):
    """What became of a task in an audit."""

    SOUND = "sound"
    STRENGTHENED = "strengthened"  # weak on its own inputs; the judge's further ones make up for it
    REFUSED = "refused"  # it cannot tell a kernel that does the work from one that does not
    BROKEN = "broken"  # it cannot be described, loaded or run
    NOT_AUDITED = "not audited"

    @property
    def usable(self) -> bool:
        """Whether a verdict on this task means something, as far as the audit can tell."""
        return self in (Outcome.SOUND, Outcome.STRENGTHENED)


class Level(StrEnum):
    """What a finding means for the task."""

    REFUSES = "refuses"
    STRENGTHENS = "strengthens"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found, in a sentence."""

    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit of one task.

    ``distributions`` are those that verdicts rest on, ``left_out`` those on which the reference is
    not finite, ``further`` those that were added because lazy answers passed all others. ``sizes``
    are the constants that were made smaller for the audit. ``reason`` says what is broken, or why
    there was no audit. ``beside`` are files that the task imports from its own folder.
    """

    task: str
    outcome: Outcome
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    distributions: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    further: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    device: str = ""
    beside: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def summary(self) -> str:
        """The reason, or the findings that made the outcome what it is."""
        decisive = {
            Outcome.REFUSED: Level.REFUSES,
            Outcome.STRENGTHENED: Level.STRENGTHENS,
        }.get(self.outcome)
        said = [finding.text for finding in self.findings if finding.level is decisive]
        return self.reason or "; ".join(said)


def outcome_of(findings: tuple[Finding, ...]) -> Outcome:
    """What findings amount to."""
    levels = {finding.level for finding in findings}
    if Level.REFUSES in levels:
        return Outcome.REFUSED
    return Outcome.STRENGTHENED if Level.STRENGTHENS in levels else Outcome.SOUND


def to_json(audit: Audit) -> dict[str, Any]:
    """The audit as JSON values."""
    return asdict(audit)


def from_json(data: dict[str, Any]) -> Audit:
    """The audit that `to_json` wrote. Raises KeyError, TypeError or ValueError on anything else."""
    lists = ("distributions", "left_out", "further", "sizes", "beside")
    findings = tuple(Finding(Level(one["level"]), one["text"]) for one in data["findings"])
    return Audit(
        **{
            **data,
            **{name: tuple(data[name]) for name in lists},
            "outcome": Outcome(data["outcome"]),
            "findings": findings,
        }
    )
