"""A task's tensors by name: which they are, where they sit, how they are put in place.

A *leaf* is a tensor that the kernel gets: an input, parameter, buffer, or a tensor that a module
keeps as a plain attribute. `Ref` stands for a leaf inside the structure it was found in.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from cuda_sandbox.header import identifiers
from cuda_sandbox.signature import DTYPES, Role, TensorSpec
from fitness.errors import TaskError


@dataclass(frozen=True, slots=True)
class Ref:
    """Stands for the leaf at ``position`` in the signature's order."""

    position: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """A named tensor with its role, as the task made it."""

    name: str
    role: Role
    tensor: Tensor

    @property
    def spec(self) -> TensorSpec:
        """Its place in the signature. Raises ValueError if no kernel can take its type."""
        return TensorSpec(self.name, dtype_name(self.tensor), tuple(self.tensor.shape), self.role)


class Collector:
    """Gathers leaves in the signature's order; the same tensor found twice is one leaf."""

    def __init__(self) -> None:
        self._found: list[Leaf] = []
        self._seen: dict[int, Ref] = {}

    def add(self, label: str, role: Role, tensor: Tensor) -> Ref:
        """The ref that stands for ``tensor``. Raises TaskError if no kernel can take it."""
        if id(tensor) not in self._seen:
            check(label, tensor)
            self._seen[id(tensor)] = Ref(len(self._found))
            self._found.append(Leaf(label, role, tensor))
        return self._seen[id(tensor)]

    def leaves(self) -> tuple[Leaf, ...]:
        """All leaves, their labels made identifiers."""
        return named(self._found)


def named(leaves: Sequence[Leaf]) -> tuple[Leaf, ...]:
    """The leaves with names as the header spells them: each once, dots as underscores."""
    names = identifiers(leaf.name.replace(".", "_") for leaf in leaves)
    return tuple(replace(leaf, name=name) for leaf, name in zip(leaves, names, strict=True))


def dtype_name(tensor: Tensor) -> str:
    """``float32`` and the like."""
    return str(tensor.dtype).removeprefix("torch.")


def rebuilt(value: Any, how: Callable[[Any], Any]) -> Any:
    """``value`` rebuilt with ``how`` applied to everything that is no list, tuple or dict."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(rebuilt(item, how) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(rebuilt(item, how) for item in value)
    if isinstance(value, dict):
        return {key: rebuilt(item, how) for key, item in value.items()}
    return how(value)


def filled(tree: Any, tensors: Sequence[Tensor]) -> Any:
    """``tree`` with the tensors, in the signature's order, in place of their refs."""
    return rebuilt(tree, lambda item: tensors[item.position] if isinstance(item, Ref) else item)


@dataclass(frozen=True)
class Arguments:
    """Forward's positional arguments: ``tree`` with refs; the numbers among them by name.

    ``dropped`` are the names of those that are None, ``strided`` of those not contiguous.
    """

    tree: tuple[Any, ...]
    scalars: tuple[tuple[str, int | float | bool], ...]
    dropped: tuple[str, ...]
    strided: tuple[str, ...]

    @classmethod
    def read(cls, model: nn.Module, values: tuple[Any, ...], collector: Collector) -> Arguments:
        """Name what ``get_inputs()`` gave. Raises TaskError on types that no kernel can take."""
        reader = _Reader(collector)
        labels = _parameter_names(model, len(values))
        tree = tuple(reader.take(label, value) for label, value in zip(labels, values, strict=True))
        return cls(tree, tuple(reader.scalars), tuple(reader.dropped), tuple(reader.strided))


class _Reader:
    """Walks the inputs and notes what it finds."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.scalars: list[tuple[str, int | float | bool]] = []
        self.dropped: list[str] = []
        self.strided: list[str] = []

    def take(self, label: str, value: Any) -> Any:
        """The value with its tensors replaced by refs."""
        if isinstance(value, Tensor):
            ref = self.collector.add(label, Role.INPUT, value)
            if not value.is_contiguous():
                self.strided.append(label)
            return ref
        if isinstance(value, (list, tuple)):
            return type(value)(self.take(f"{label}_{i}", item) for i, item in enumerate(value))
        if value is None:
            self.dropped.append(label)
        elif isinstance(value, (bool, int, float)):
            self.scalars.append((label, value))
        else:
            raise TaskError(
                f"get_inputs() gives {type(value).__name__} for {label!r}; a kernel can take "
                "tensors, lists of tensors and Python numbers"
            )
        return value


def check(label: str, value: Tensor) -> None:
    """Raises TaskError unless a kernel can take, or give, a tensor like this."""
    if value.layout is not torch.strided:
        raise TaskError(f"{label!r} is a {value.layout} tensor; only dense ones are supported")
    if dtype_name(value) not in DTYPES:
        raise TaskError(
            f"{label!r} has type {dtype_name(value)}; a kernel can take {', '.join(DTYPES)}"
        )
    if value.numel() == 0:
        raise TaskError(f"{label!r} is empty (shape {tuple(value.shape)}); there is nothing to do")


def _parameter_names(model: nn.Module, count: int) -> list[str]:
    """Names of forward's first ``count`` parameters; ``*xs`` counts as ``xs_0``, ``xs_1``..."""
    names: list[str] = []
    for parameter in inspect.signature(model.forward).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{i}" for i in range(count - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    if count > len(names):
        raise TaskError(
            f"get_inputs() gives {count} values, but forward takes {len(names)}: {', '.join(names)}"
        )
    return names[:count]


@dataclass(frozen=True)
class Site:
    """A place in a model that holds leaves: a key of one of a module's dictionaries."""

    module: nn.Module
    store: str  # "_parameters", "_buffers" or "__dict__"
    key: str
    tree: Any

    def put(self, tensors: Sequence[Tensor]) -> None:
        """Put the leaves in place, from all tensors in the signature's order."""
        getattr(self.module, self.store)[self.key] = filled(self.tree, tensors)


_STORES = ("_parameters", "_buffers", "_modules")


def find_sites(model: nn.Module, collector: Collector) -> list[Site]:
    """Where the model's own leaves sit: parameters, buffers, then states, in this order."""
    for name, parameter in model.named_parameters():
        collector.add(name, Role.PARAMETER, parameter)
    for name, buffer in model.named_buffers():
        collector.add(name, Role.BUFFER, buffer)
    sites: list[Site] = []
    for prefix, module in model.named_modules():
        sites += _registered_sites(module, collector)
        sites += _attribute_sites(module, f"{prefix}." if prefix else "", collector)
    return sites


def _registered_sites(module: nn.Module, collector: Collector) -> Iterator[Site]:
    for store, role in (("_parameters", Role.PARAMETER), ("_buffers", Role.BUFFER)):
        for key, value in getattr(module, store).items():
            if value is not None:
                yield Site(module, store, key, collector.add(key, role, value))


def _attribute_sites(module: nn.Module, prefix: str, collector: Collector) -> Iterator[Site]:
    """Sites of tensors that a module keeps as plain attributes, alone or in lists and dicts."""
    for key, value in list(vars(module).items()):
        if key in _STORES or "hook" in key:
            continue
        tree = _with_refs(f"{prefix}{key}", value, collector)
        if tree is not None:
            yield Site(module, "__dict__", key, tree)


def _with_refs(label: str, value: Any, collector: Collector) -> Any:
    """``value`` with refs for its tensors, or None if it holds none."""
    found = 0

    def take(item: Any) -> Any:
        nonlocal found
        if not isinstance(item, Tensor):
            return item
        found += 1
        suffix = "" if item is value else f".{found - 1}"
        return collector.add(f"{label}{suffix}", Role.STATE, item)

    tree = rebuilt(value, take) if isinstance(value, (Tensor, list, tuple, dict)) else None
    return tree if found else None


@contextlib.contextmanager
def installed(model: nn.Module, sites: list[Site], tensors: Sequence[Tensor]) -> Iterator[None]:
    """Within, the model holds ``tensors``; after it, every attribute is what it was before.

    So nothing that forward assigns (counters, hidden states) outlives a call.
    """
    saved = [
        (store, dict(store))
        for module in model.modules()
        for store in (vars(module), *(vars(module)[name] for name in _STORES))
    ]
    for site in sites:
        site.put(tensors)
    try:
        yield
    finally:
        for store, content in saved:
            store.clear()
            store.update(content)
