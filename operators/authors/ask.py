"""People and coding agents as authors: requests wait until somebody answers them.

The prompts and the readers are those of the models; see ``kernelevo ask`` and ``kernelevo tell``.
"""

from __future__ import annotations

from operators.authors.llm import checked_ports
from operators.llm import Limits, Model
from operators.llm.choice import weights
from operators.writing.author import Settings, TextAuthor

WHOEVER = Model("ask", "ask", limits=Limits(concurrency=1_000_000))


def make(ports: int = 2) -> TextAuthor:
    """The author. ``ports`` are the first kernels of each island. Raises ValueError."""
    return TextAuthor("ask", [WHOEVER], weights, Settings(checked_ports(ports)))
