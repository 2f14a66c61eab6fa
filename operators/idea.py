"""Ideas: optimisation hypotheses in plain language, in the field's six categories."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from enum import StrEnum

LONGEST_TITLE = 120  # characters


class Category(StrEnum):
    """The six categories of the published work."""

    MEMORY = "memory access"
    ASYNCHRONY = "asynchrony and latency hiding"
    PRECISION = "data type and precision"
    COMPUTE = "compute and instructions"
    PARALLELISM = "parallelism and occupancy"
    CONTROL = "control flow and loops"


@dataclass(frozen=True, slots=True)
class Idea:
    """What somebody thinks would make a kernel faster.

    ``author`` is who had it, ``model`` the name of the model that it came from, if any.
    """

    text: str
    category: Category
    author: str
    model: str = ""

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ValueError("an idea needs a text")

    @property
    def title(self) -> str:
        """The idea in a line: of a long text what stands before its first colon, or its start."""
        whole = " ".join(self.text.split())
        if len(whole) <= LONGEST_TITLE:
            return whole
        head, colon, _ = whole.partition(": ")
        return textwrap.shorten(head if colon else whole, LONGEST_TITLE, placeholder=" ...")
