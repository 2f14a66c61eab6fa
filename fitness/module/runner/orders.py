"""What a worker is told of its task: no more than a module needs to be made and to be called."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuda_sandbox.protocol import Failure

KERNEL, ORDERS, CONSTRUCTOR = "kernel.py", "orders.json", "constructor.pickle"
REPORT = "rehearsal.json"
"""The files of the folder that a worker gets, and the one that a rehearsal leaves."""


class Refused(Exception):
    """The candidate cannot go on; ``failure`` says in which way."""

    def __init__(self, failure: Failure, reason: str) -> None:
        super().__init__(reason)
        self.failure = failure
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Spec:
    """A tensor by its name in the reference, dots and all; ``dtype`` as torch spells it.

    ``owes``: an output's ways of `owed` that the reference's has too.
    """

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]
    owes: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """For messages: ``norm.weight float32[256]``."""
        return f"{self.name} {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Orders:
    """``forward`` holds the arguments: ``{"leaf": i}`` for a tensor, ``{"value": v}`` for a number,
    ``{"list": [...]}`` or ``{"tuple": [...]}`` of such. ``source`` is the candidate's file.
    """

    source: Path
    leaves: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    forward: tuple[Mapping[str, Any], ...]
    args: list[Any]
    kwargs: dict[str, Any]

    @classmethod
    def read(cls, folder: Path) -> Orders:
        """What lies in ``folder``; our own files, so their content is trusted."""
        told = json.loads((folder / ORDERS).read_text(encoding="utf-8"))
        args, kwargs = pickle.loads((folder / CONSTRUCTOR).read_bytes())
        leaves, outputs = (
            tuple(
                Spec(name, role, dtype, tuple(shape), tuple(owes))
                for name, role, dtype, shape, owes in told[key]
            )
            for key in ("leaves", "outputs")
        )
        return cls(folder / KERNEL, leaves, outputs, tuple(told["forward"]), args, kwargs)


def filled(tree: Mapping[str, Any], tensors: Sequence[Any]) -> Any:
    """One argument of forward with the tensors in their places."""
    if "leaf" in tree:
        return tensors[tree["leaf"]]
    if "value" in tree:
        return tree["value"]
    items = [filled(item, tensors) for item in tree.get("list", tree.get("tuple", ()))]
    return items if "list" in tree else tuple(items)
