"""What the search needs to know of a task, as plain records: made where torch is, read anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cuda_sandbox.signature import Signature


@dataclass(frozen=True, slots=True)
class Node:
    """One operation of the reference's traced graph.

    ``op`` is the ATen name with overload (``aten.softmax.int``), or ``input``, ``parameter``,
    ``buffer``, ``state`` for a leaf, or ``output``. ``args`` and ``kwargs`` hold JSON values;
    a reference to another node is ``{"node": NAME}``.
    ``shape`` and ``dtype`` are those of the (first) result.
    """

    name: str
    op: str
    args: tuple[Any, ...] = ()
    kwargs: tuple[tuple[str, Any], ...] = ()
    shape: tuple[int, ...] | None = None
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class TaskDescription:
    """A task without its data: signature, traced graph (leaf names are the signature's), source.

    ``flops`` counts multiply and add apart; None where it could not be counted.
    ``remarks`` are things a user should know (buffers updated in train mode, ...).
    """

    name: str
    source: str
    signature: Signature
    graph: tuple[Node, ...]
    flops: int | None = None
    remarks: tuple[str, ...] = ()
