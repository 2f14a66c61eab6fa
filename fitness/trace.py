"""The reference's graph at a semantic level, and its operation count.

Traced before autograd decomposes anything, so that ``aten.softmax.int``, ``aten.layer_norm``,
``aten.linear``, ``aten.matmul``, ``aten.conv2d`` stay what they are.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from fitness.description import Node
from fitness.dispatch import Mode
from fitness.errors import UnfitTask
from fitness.leaves import dtype_name
from fitness.reference import Reference

# What gives its first argument's values and nothing else
_NAMES = """
    detach detach_ alias lift_fresh lift_fresh_copy contiguous clone dropout feature_dropout
    alpha_dropout feature_alpha_dropout dropout_ alpha_dropout_ feature_dropout_
"""
_IDENTITIES = frozenset(_NAMES.split())
_PER_ELEMENT = {"_softmax": 5, "_log_softmax": 5, "native_layer_norm": 8, "native_batch_norm": 8}
_CONSTANT_LIMIT = 64  # elements of a tensor constant that are written into the graph


def trace(reference: Reference, leaves: Mapping[str, Tensor]) -> tuple[Node, ...]:
    """The graph of one call on ``leaves`` (real or fake). Raises UnfitTask where it is random."""
    names = list(leaves)

    def function(*tensors: Tensor) -> tuple[Tensor, ...]:
        return reference.call(dict(zip(names, tensors, strict=True)))

    given = [tensor.detach().clone() for tensor in leaves.values()]
    module = make_fx(function, pre_dispatch=True)(*given)
    _refuse_randomness(module.graph)
    _functionalise(module.graph)
    _strip_identities(module.graph)
    roles = {leaf.name: str(leaf.role) for leaf in reference.leaves}
    return _Writer(module, names, roles).nodes()


class FlopCount(Mode):
    """Counts the operations that run inside it, multiply and add apart.

    Contractions by their shapes; normalisations a few per element; any other arithmetic one per
    element of the larger of its operands and results. ``known`` is False where an operation hides
    its work.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types here
        self.flops = 0
        self.known = True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        packet = func._overloadpacket
        name = packet.__name__
        if packet in flop_registry:
            self.flops += flop_registry[packet](*args, **kwargs, out_val=out)
        elif name == "_scaled_dot_product_flash_attention_for_cpu":
            self.flops += _attention_flops(args[0], args[1])
        elif "rnn" in name or "lstm" in name or "gru" in name:
            self.known = False
        elif _computes(func):
            self.flops += _PER_ELEMENT.get(name, 1) * _largest((args, out))
        return out


def _attention_flops(query: Tensor, key: Tensor) -> int:
    return 4 * query.numel() * key.shape[-2]


def _computes(func: Any) -> bool:
    """Whether it is arithmetic: no view, copy or factory."""
    name = func._overloadpacket.__name__.rstrip("_")
    moves = ("copy", "to_copy", "clone", "cat", "fill", "zero", "empty", "constant_pad_nd", "stack")
    makes = not any(isinstance(a.type, torch.TensorType) for a in func._schema.arguments)
    return not (func.is_view or makes or name.lstrip("_") in moves)


def _largest(values: Any) -> int:
    sizes = [
        leaf.numel()
        for leaf in tree_leaves(values)
        if isinstance(leaf, Tensor) and leaf.is_floating_point()
    ]
    return max(sizes, default=0)


def _refuse_randomness(graph: fx.Graph) -> None:
    """Raises UnfitTask if the reference draws random numbers."""
    for node in graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and _is_random(node):
            name = node.target._overloadpacket.__name__
            raise UnfitTask(
                f"forward is random (aten.{name}): no kernel can give the same output. Dropout in "
                "train mode with p > 0 draws a new mask at every call; set p to 0 or call .eval()"
            )


def _is_random(node: fx.Node) -> bool:
    target: Any = node.target
    if torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    given = _named_arguments(node)
    chances = [given[key] for key in ("p", "dropout", "dropout_p") if key in given]
    trains = [given[key] for key in ("train", "training") if key in given]
    if "rrelu" in target.name() or not chances:
        return not trains or bool(trains[0])
    return chances[0] > 0 and (not trains or bool(trains[0]))


def _named_arguments(node: fx.Node) -> dict[str, Any]:
    """Arguments by the schema's names, defaults included."""
    target: Any = node.target
    given = {}
    for i, argument in enumerate(target._schema.arguments):
        if i < len(node.args):
            given[argument.name] = node.args[i]
        else:
            given[argument.name] = node.kwargs.get(argument.name, argument.default_value)
    return given


def _functionalise(graph: fx.Graph) -> None:
    """In-place operations on whole tensors become plain ones; dead nodes go.

    Where a view is written to, the in-place operations stay, in their order.
    """
    writers = [node for node in graph.nodes if _written(node) is not None]
    if any(_is_view(_written(node)) for node in writers):
        return
    for node in writers:
        target = _written(node)
        assert target is not None
        later = [user for user in target.users if user is not node and node < user]
        for user in later:
            user.replace_input_with(target, node)
        plain = _out_of_place(node.target)
        if plain is not None:
            node.target = plain
    _drop_dead(graph)


def _written(node: fx.Node) -> fx.Node | None:
    """The node whose value ``node`` overwrites, if it does."""
    target: Any = node.target
    if not isinstance(target, torch._ops.OpOverload) or not node.args:
        return None
    info = target._schema.arguments[0].alias_info
    first = node.args[0]
    return first if info is not None and info.is_write and isinstance(first, fx.Node) else None


def _is_view(node: fx.Node | None) -> bool:
    return isinstance(node, fx.Node) and getattr(node.target, "is_view", False) is True


def _out_of_place(target: Any) -> Any:
    name, overload = target._overloadpacket.__name__, target._overloadname
    packet = getattr(torch.ops.aten, name.removesuffix("_"), None)
    return getattr(packet, overload, None) if packet is not None else None


def _drop_dead(graph: fx.Graph) -> None:
    for node in reversed(list(graph.nodes)):
        if node.op not in ("placeholder", "output") and not node.users:
            graph.erase_node(node)


def _strip_identities(graph: fx.Graph) -> None:
    for node in list(graph.nodes):
        if _is_identity(node):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _is_identity(node: fx.Node) -> bool:
    target: Any = node.target
    if not isinstance(target, torch._ops.OpOverload) or not isinstance(
        source := next(iter(node.args), None), fx.Node
    ):
        return False
    name = target._overloadpacket.__name__
    if name in ("to", "_to_copy", "type_as", "expand", "expand_as"):
        ours = _result(node)
        return ours[0] is not None and ours == _result(source)
    return name in _IDENTITIES


class _Writer:
    """Turns an fx graph into our nodes; leaves get the signature's names."""

    def __init__(self, module: fx.GraphModule, leaves: list[str], roles: dict[str, str]) -> None:
        self.module = module
        self.roles = roles
        self.names: dict[fx.Node, str] = {}
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        self.names.update(zip(placeholders, leaves, strict=True))

    def nodes(self) -> tuple[Node, ...]:
        """All nodes in order, the output last."""
        taken = set(self.names.values())
        for node in self.module.graph.nodes:
            if node not in self.names:
                self.names[node] = node.name if node.name not in taken else f"{node.name}__op"
        return tuple(self._node(node) for node in self.module.graph.nodes)

    def _node(self, node: fx.Node) -> Node:
        shape, dtype = _result(node)
        name = self.names[node]
        args: tuple[Any, ...] = tuple(self._json(value) for value in node.args)
        kwargs = tuple((key, self._json(value)) for key, value in node.kwargs.items())
        if node.op == "placeholder":
            op, args, kwargs = self.roles[name], (), ()
        elif node.op == "get_attr":
            op, args = "constant", (_constant(getattr(self.module, str(node.target))),)
        elif node.op == "output":
            op, args = "output", tuple(tree_args(args))
        elif node.target is operator.getitem:
            op = "getitem"
        else:
            op = str(node.target)
        return Node(name, op, args, kwargs, shape, dtype)

    def _json(self, value: Any) -> Any:
        if isinstance(value, fx.Node):
            return {"node": self.names[value]}
        if isinstance(value, (list, tuple)):
            return [self._json(item) for item in value]
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        return str(value).removeprefix("torch.")


def tree_args(args: tuple[Any, ...]) -> list[Any]:
    """The output node's values, one level of nesting taken away."""
    return list(args[0]) if len(args) == 1 and isinstance(args[0], list) else list(args)


def _result(node: fx.Node) -> tuple[tuple[int, ...] | None, str | None]:
    value = node.meta.get("val")
    if isinstance(value, (list, tuple)):
        value = next((item for item in value if isinstance(item, Tensor)), None)
    if not isinstance(value, Tensor):
        return None, None
    return tuple(int(size) for size in value.shape), dtype_name(value)


def _constant(value: Any) -> Any:
    """A small tensor constant's values; None where they are many or unknown."""
    if not isinstance(value, Tensor) or math.prod(value.shape) > _CONSTANT_LIMIT:
        return None
    try:
        return value.tolist()
    except RuntimeError:  # a fake tensor has no values
        return None
