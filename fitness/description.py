"""What the search needs to know of a task, as plain records: made where torch is, read anywhere."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from cuda_sandbox.signature import Signature


@dataclass(frozen=True, slots=True)
class Node:
    """One operation of the reference's traced graph.

    ``op`` is the ATen name with overload (``aten.softmax.int``), ``getitem``, ``constant``, or
    ``input``, ``parameter``, ``buffer``, ``state`` for a leaf, or ``output``. ``args`` and
    ``kwargs`` hold JSON values; a reference to another node is ``{"node": NAME}``.
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
    ``graph`` is empty where the reference could not be traced; a remark says why. ``beside`` are
    the files that the task imports from its own folder.
    """

    name: str
    source: str
    signature: Signature
    graph: tuple[Node, ...]
    flops: int | None = None
    remarks: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


def to_json(description: TaskDescription) -> dict[str, Any]:
    """The description as JSON values (infinities as Python's ``json`` writes them)."""
    return asdict(description)


def from_json(data: dict[str, Any]) -> TaskDescription:
    """The description that `to_json` wrote. Raises KeyError or ValueError on anything else."""
    return TaskDescription(
        name=data["name"],
        source=data["source"],
        signature=Signature.from_dict(data["signature"]),
        graph=tuple(_node(node) for node in data["graph"]),
        flops=data["flops"],
        remarks=tuple(data["remarks"]),
        beside=tuple(data.get("beside", ())),
    )


def _node(data: dict[str, Any]) -> Node:
    shape = data["shape"]
    return Node(
        name=data["name"],
        op=data["op"],
        args=tuple(data["args"]),
        kwargs=tuple((key, value) for key, value in data["kwargs"]),
        shape=None if shape is None else tuple(shape),
        dtype=data["dtype"],
    )
