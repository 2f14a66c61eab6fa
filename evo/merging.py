"""What two copies of a run hold that the other lacks, and which of them is to go on.

Answers are kept beside the record and join as a set, so whatever follows from answers alone can be
done again from them: requests, births, generations begun. What cannot is here called *hard*:
verdicts, replies that cost something, and events that tell of them. A copy may give way to another
if it holds nothing hard that the other lacks.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from enum import StrEnum

# What identifies a record that is written once and never changed, table by table
_RECORDS = (
    ("individuals", "seq, at, id", "true"),
    ("events", "seq, at, kind, subject, detail", "true"),
    ("answers", "seq, at, key", "true"),
    ("proposals", "seq, at, key, place", "true"),
    ("calls", "seq, at, key", "true"),
    ("calls", "seq, at, key", "state != 'open'"),  # an open one is closed some time
    ("migrations", "seq, at, individual, source, target", "true"),
    ("generations", "seq, island, number", "true"),
    ("evaluations", "digest, hardware, purpose", "true"),  # may be replaced by a newer one
)
_HARD = (
    ("evaluations", "digest, hardware, purpose", "true"),
    (
        "calls",
        "seq, at, key",
        "state != 'open' and (input + output + reasoning > 0 or dollars > 0)",
    ),
    ("events", "seq, at, kind, subject, detail", "kind not in ('sitting', 'rest')"),
)


class Way(StrEnum):
    """What becomes of the record that is here when another copy of it comes in."""

    SAME = "same"  # both hold the same
    REPLACE = "replace"  # the copy holds more, and everything hard that is here
    KEEP = "keep"  # what is here holds more, and everything hard that is in the copy
    CONFLICT = "conflict"  # each holds something hard that the other lacks


@dataclass(frozen=True, slots=True)
class Difference:
    """Records that are only ``here`` and only ``there``; ``hard_...`` counts the hard ones."""

    here: int
    there: int
    hard_here: int
    hard_there: int

    @property
    def way(self) -> Way:
        """Which copy goes on."""
        if not (self.here or self.there):
            return Way.SAME
        if self.hard_here and self.hard_there:
            return Way.CONFLICT
        if self.hard_here or not self.there:
            return Way.KEEP
        return Way.REPLACE if self.hard_there or not self.here else Way.KEEP


def compare(db: sqlite3.Connection) -> Difference:
    """Between a run's record (``main``) and a copy of it that is attached as ``pack``."""
    counts = (
        sum(_only(db, held, missing, *record) for record in records)
        for records in (_RECORDS, _HARD)
        for held, missing in (("main", "pack"), ("pack", "main"))
    )
    return Difference(*counts)


def _only(
    db: sqlite3.Connection, held: str, missing: str, table: str, columns: str, condition: str
) -> int:
    """How many records one of the two holds that the other lacks."""
    query = (
        f"select count(*) from (select {columns} from {held}.{table} where {condition} "
        f"except select {columns} from {missing}.{table} where {condition})"
    )
    (count,) = db.execute(query).fetchone()
    return int(count)
