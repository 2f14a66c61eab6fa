"""Which inputs and parameters the outputs depend on, seen by exchanging one at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from torch import Tensor

from cuda_sandbox.signature import Role, TensorSpec
from fitness.audit.record import Finding, Level
from fitness.contents import Content
from fitness.correctness import compare
from fitness.errors import TaskError
from fitness.evaluation import Demand
from fitness.inputs import Inputs
from fitness.loaded import LoadedTask
from fitness.reference import exact

_TRIED = (Role.INPUT, Role.PARAMETER)


def effects(
    task: LoadedTask,
    demand: Demand,
    contents: Sequence[Content],
    inputs: Inputs,
    deadline: float,
) -> list[Finding]:
    """What is to be said of leaves that make no difference, or were not tried by ``deadline``."""
    specs = [spec for spec in task.signature.arguments if spec.role in _TRIED]
    others = _Others(inputs)
    without: list[TensorSpec] = []
    late = 0
    for spec in specs:
        if time.monotonic() > deadline:
            late += 1
        elif not _matters(task, spec, demand, contents, others):
            without.append(spec)
    findings = list(_said(task, without))
    if late:
        text = f"{late} of {len(specs)} inputs and parameters were not tried for an effect: no time"
        findings.append(Finding(Level.NOTE, text))
    return findings


def _matters(
    task: LoadedTask,
    spec: TensorSpec,
    demand: Demand,
    contents: Sequence[Content],
    others: _Others,
) -> bool:
    """Whether another ``spec`` gives outputs that would not be accepted; True where it is fixed."""
    tried = False
    for content in contents:
        other = others.leaf(spec, content)
        if other.equal(content.leaves[spec.name]):
            continue
        tried = True
        try:
            with exact():
                outputs = task.run({**content.leaves, spec.name: other})
        except TaskError:
            return True  # it is looked at, at least
        if not all(found.satisfies(demand) for found in compare(outputs, content.truth)):
            return True
    return not tried


class _Others:
    """Other draws of the leaves, kept for the next one that is exchanged."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._drawn: dict[str, dict[str, Tensor]] = {}

    def leaf(self, spec: TensorSpec, content: Content) -> Tensor:
        """Another draw of that leaf, of the content's distribution where that draws it."""
        parameter = spec.role is Role.PARAMETER
        name = "normal" if parameter and content.name in ("own", "redrawn") else content.name
        if name not in self._drawn:
            self._drawn[name] = self._inputs.draw(name, index=1)
        return self._drawn[name][spec.name]


def _said(task: LoadedTask, without: Sequence[TensorSpec]) -> Iterator[Finding]:
    unread = _unread(task)
    groups = {
        (Level.REFUSES, "the output does not depend on {}: the work on it can be left out"): [
            spec for spec in without if _is_work(spec) and spec.name not in unread
        ],
        (Level.REFUSES, "forward never uses these inputs: {}"): [
            spec for spec in without if spec.role is Role.INPUT and spec.name in unread
        ],
        (Level.NOTE, "forward never uses these parameters: {}"): [
            spec for spec in without if spec.role is Role.PARAMETER and spec.name in unread
        ],
        (Level.NOTE, "the effect of {} cancels out: a kernel may leave it out"): [
            spec for spec in without if not _is_work(spec) and spec.name not in unread
        ],
    }
    for (level, text), specs in groups.items():
        if specs:
            yield Finding(level, text.format(", ".join(spec.name for spec in specs)))


def _is_work(spec: TensorSpec) -> bool:
    """Inputs and weights, not vectors as a bias is, which a norm behind it cancels."""
    return spec.role is Role.INPUT or sum(size > 1 for size in spec.shape) > 1


def _unread(task: LoadedTask) -> set[str]:
    """Leaves that no operation of the traced graph reads; none where there is no graph."""
    read: set[str] = set()

    def look(value: object) -> None:
        if isinstance(value, dict):
            read.update(name for key, name in value.items() if key == "node")
        elif isinstance(value, (list, tuple)):
            for item in value:
                look(item)

    graph = task.description.graph
    for node in graph:
        look(node.args)
        look([value for _, value in node.kwargs])
    return {spec.name for spec in task.signature.arguments if graph and spec.name not in read}
