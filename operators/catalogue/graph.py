"""A traced reference as recognisers want to read it: by operation, past views and copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fitness.description import Node, TaskDescription

LEAVES = frozenset({"input", "parameter", "buffer", "state", "constant"})

# Operations that leave the elements of a contiguous tensor as they are and where they are.
TRANSPARENT = frozenset(
    {"view", "reshape", "contiguous", "clone", "detach", "alias", "flatten", "unsqueeze"}
    | {"squeeze", "unsafe_view", "lift_fresh", "lift_fresh_copy", "identity", "unflatten"}
)

# Spellings that decompositions use for the same operation.
SAME = {
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "native_layer_norm": "layer_norm",
    "convolution": "conv",
    "conv1d": "conv",
    "conv2d": "conv",
    "conv3d": "conv",
    "max_pool2d_with_indices": "max_pool2d",
    "_unsafe_view": "unsafe_view",
}


def kind(node: Node) -> str:
    """The operation's short name: ``aten.softmax.int`` and ``aten._softmax.default`` are softmax.

    In-place spellings (``relu_``) count as their plain ones.
    """
    name = node.op.split(".")[1] if node.op.startswith("aten.") else node.op.split(".")[-1]
    if name in SAME:
        return SAME[name]
    name = name[:-1] if name.endswith("_") else name
    return SAME.get(name, name)


class Graph:
    """The nodes of a task's reference, looked up by name, with views and copies seen through."""

    def __init__(self, task: TaskDescription) -> None:
        self.task = task
        self._nodes = {node.name: node for node in task.graph}

    @property
    def outputs(self) -> tuple[Node, ...]:
        """The nodes that compute what ``forward`` returns, views removed."""
        found = []
        for node in self._nodes.values():
            if node.op == "output":
                found += [self._behind(name) for name in _references(node.args)]
        return tuple(found)

    @property
    def computations(self) -> tuple[Node, ...]:
        """What is left to compute, in order: no leaves, outputs, views or copies."""
        return tuple(
            node
            for node in self._nodes.values()
            if node.op not in LEAVES and node.op != "output" and not self._transparent(node)
        )

    def kinds(self) -> tuple[str, ...]:
        """The short names of the computations, in order."""
        return tuple(kind(node) for node in self.computations)

    def node(self, value: Any) -> Node | None:
        """The node that an argument refers to, views kept; None if it is no reference."""
        if isinstance(value, dict) and set(value) == {"node"}:
            return self._nodes[value["node"]]
        return None

    def source(self, value: Any) -> Node:
        """The leaf or computation behind an argument. Raises TypeError if it is no reference."""
        node = self.node(value)
        if node is None:
            raise TypeError(f"{value!r} is no reference to a node")
        return self._behind(node.name)

    def leaf(self, value: Any) -> Node | None:
        """The input, parameter or buffer behind an argument; None if it is computed or absent."""
        if self.node(value) is None:
            return None
        node = self.source(value)
        return node if node.op in LEAVES else None

    def argument(self, node: Node, index: int, name: str, default: Any = None) -> Any:
        """An argument by position or by keyword."""
        if index < len(node.args):
            return node.args[index]
        return dict(node.kwargs).get(name, default)

    def pair(self, node: Node, index: int, name: str, default: int) -> tuple[int, int] | None:
        """An argument such as a stride, ``2``, ``[2]`` or ``[2, 3]``, for both dimensions."""
        value = self.argument(node, index, name, default)
        if isinstance(value, int):
            return value, value
        if isinstance(value, list | tuple) and all(isinstance(item, int) for item in value):
            sizes = list(value)
            return (sizes[0], sizes[-1]) if len(sizes) in (1, 2) else None
        return None

    def output_name(self) -> str | None:
        """The name of the only output tensor, or None if there are several."""
        outputs = self.task.signature.outputs
        return outputs[0].name if len(outputs) == 1 else None

    def _behind(self, name: str) -> Node:
        node = self._nodes[name]
        while self._transparent(node):
            node = self._nodes[next(_references(node.args))]
        return node

    def _transparent(self, node: Node) -> bool:
        name = kind(node)
        if name == "getitem":
            return bool(node.args[1] == 0)
        if name in ("dropout", "native_dropout"):
            return self.argument(node, 1, "p") == 0 or self.argument(node, 2, "train") is False
        if name in ("to", "_to_copy", "type_as"):
            source = self._nodes[next(_references(node.args))]
            return source.dtype == node.dtype
        if name == "expand":
            source = self._nodes[next(_references(node.args))]
            return source.shape == node.shape
        return name in TRANSPARENT


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and set(value) == {"node"}:
        yield value["node"]
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _references(item)
