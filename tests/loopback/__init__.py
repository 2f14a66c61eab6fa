"""Model servers on this machine, in the vendors' real wire formats, with faults on demand."""

from tests.loopback.faults import BILLED_BUT_LOST, FAULTS, FREE, KNOWN, scattered
from tests.loopback.server import Entry, Loopback
from tests.loopback.wire import Asked, Said, Tokens

__all__ = [
    "BILLED_BUT_LOST",
    "FAULTS",
    "FREE",
    "KNOWN",
    "Asked",
    "Entry",
    "Loopback",
    "Said",
    "Tokens",
    "scattered",
]
