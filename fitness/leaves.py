"""A task's tensors by name: which they are, where they sit, how they are put in place.

A *leaf* is a tensor that the kernel gets: an input, parameter, buffer, or a tensor that a module
keeps as a plain attribute. `Ref` stands for a leaf inside the structure it was found in.
"""

from __future__ import annotations

import contextlib
import inspect
import keyword
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from cuda_sandbox.signature import DTYPES, Role, TensorSpec
from fitness.task import TaskError

# C++ keywords and what the header itself or the compiler defines
_WORDS = """
    alignas alignof and asm auto bitand bitor bool break case catch char class compl concept
    const consteval constexpr constinit continue decltype default delete do double else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new
    noexcept not nullptr operator or private protected public register requires return short
    signed sizeof static struct switch template this throw true try typedef typeid typename union
    unsigned using virtual void volatile while xor linux unix half launch workspace
    workspace_bytes stream main size_t null eof nan infinity assert errno signbit
"""
_RESERVED = frozenset(_WORDS.split())


@dataclass(frozen=True, slots=True)
class Ref:
    """Stands for the leaf ``name``."""

    name: str


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


@dataclass
class Names:
    """Gives C identifiers, each once: macros are upper case, so case does not tell names apart."""

    taken: set[str] = field(default_factory=set)

    def give(self, wanted: str) -> str:
        """``wanted`` made an identifier; a collision or keyword gets trailing underscores."""
        name = re.sub(r"\W", "_", wanted, flags=re.ASCII)
        if not name or name[0].isdigit():
            name = f"p_{name}"
        while name.lower() in self.taken or name.lower() in _RESERVED or keyword.iskeyword(name):
            name += "_"
        self.taken.add(name.lower())
        return name


def dtype_name(tensor: Tensor) -> str:
    """``float32`` and the like."""
    return str(tensor.dtype).removeprefix("torch.")


def replace(value: Any, how: Callable[[Any], Any]) -> Any:
    """``value`` rebuilt with ``how`` applied to everything that is no list, tuple or dict."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(replace(item, how) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(replace(item, how) for item in value)
    if isinstance(value, dict):
        return {key: replace(item, how) for key, item in value.items()}
    return how(value)


def filled(tree: Any, leaves: Mapping[str, Tensor]) -> Any:
    """``tree`` with the leaves in place of their refs."""
    return replace(tree, lambda item: leaves[item.name] if isinstance(item, Ref) else item)


@dataclass(frozen=True)
class Arguments:
    """Forward's positional arguments: ``tree`` with refs; the numbers among them by name."""

    tree: tuple[Any, ...]
    leaves: tuple[Leaf, ...]
    scalars: tuple[tuple[str, int | float | bool], ...]
    dropped: tuple[str, ...]
    strided: tuple[str, ...]

    @classmethod
    def read(cls, model: nn.Module, values: tuple[Any, ...], names: Names) -> Arguments:
        """Name what ``get_inputs()`` gave. Raises TaskError on types that no kernel can take."""
        reader = _Reader(names)
        labels = _parameter_names(model, len(values))
        tree = tuple(reader.take(label, value) for label, value in zip(labels, values, strict=True))
        return cls(
            tree,
            tuple(reader.leaves),
            tuple(reader.scalars),
            tuple(reader.dropped),
            tuple(reader.strided),
        )


class _Reader:
    """Walks the inputs and notes what it finds."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.leaves: list[Leaf] = []
        self.scalars: list[tuple[str, int | float | bool]] = []
        self.dropped: list[str] = []
        self.strided: list[str] = []
        self._seen: dict[int, str] = {}

    def take(self, label: str, value: Any) -> Any:
        """The value with its tensors replaced by refs."""
        if isinstance(value, Tensor):
            return self._tensor(label, value)
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

    def _tensor(self, label: str, value: Tensor) -> Ref:
        if id(value) in self._seen:
            return Ref(self._seen[id(value)])
        check(label, value)
        if not value.is_contiguous():
            self.strided.append(label)
        leaf = Leaf(self.names.give(label), Role.INPUT, value)
        self.leaves.append(leaf)
        self._seen[id(value)] = leaf.name
        return Ref(leaf.name)


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

    def put(self, leaves: Mapping[str, Tensor]) -> None:
        """Put the leaves in place."""
        getattr(self.module, self.store)[self.key] = filled(self.tree, leaves)


_STORES = ("_parameters", "_buffers", "_modules")


def find_sites(model: nn.Module, names: Names) -> tuple[list[Leaf], list[Site]]:
    """The model's own leaves (parameters, buffers, states, in this order) and where they sit."""
    leaves: dict[int, Leaf] = {}
    for name, parameter in model.named_parameters():
        _add(leaves, names, name, Role.PARAMETER, parameter)
    for name, buffer in model.named_buffers():
        _add(leaves, names, name, Role.BUFFER, buffer)
    sites = []
    for prefix, module in model.named_modules():
        for store in ("_parameters", "_buffers"):
            for key, value in getattr(module, store).items():
                if value is not None:
                    sites.append(Site(module, store, key, Ref(leaves[id(value)].name)))
        sites += _attribute_sites(module, prefix, leaves, names)
    return list(leaves.values()), sites


def _add(leaves: dict[int, Leaf], names: Names, name: str, role: Role, tensor: Tensor) -> None:
    if id(tensor) not in leaves:
        check(name, tensor)
        leaves[id(tensor)] = Leaf(names.give(name.replace(".", "_")), role, tensor)


def _attribute_sites(
    module: nn.Module, prefix: str, leaves: dict[int, Leaf], names: Names
) -> Iterator[Site]:
    """Sites of tensors that a module keeps as plain attributes, alone or in lists and dicts."""
    for key, value in list(vars(module).items()):
        if key in _STORES or "hook" in key:
            continue
        label = f"{prefix}.{key}" if prefix else key
        tree = _with_refs(label, value, leaves, names)
        if tree is not None:
            yield Site(module, "__dict__", key, tree)


def _with_refs(label: str, value: Any, leaves: dict[int, Leaf], names: Names) -> Any:
    """``value`` with refs for its tensors, or None if it holds none."""
    found = 0

    def take(item: Any) -> Any:
        nonlocal found
        if not isinstance(item, Tensor):
            return item
        found += 1
        suffix = "" if item is value else f".{found - 1}"
        _add(leaves, names, f"{label}{suffix}", Role.STATE, item)
        return Ref(leaves[id(item)].name)

    tree = replace(value, take) if isinstance(value, (Tensor, list, tuple, dict)) else None
    return tree if found else None


@contextlib.contextmanager
def installed(model: nn.Module, sites: list[Site], leaves: Mapping[str, Tensor]) -> Iterator[None]:
    """Within, the model holds ``leaves``; after it, every attribute is what it was before.

    So nothing that forward assigns (counters, hidden states) outlives a call.
    """
    saved = [
        (store, dict(store))
        for module in model.modules()
        for store in (vars(module), *(vars(module)[name] for name in _STORES))
    ]
    for site in sites:
        site.put(leaves)
    try:
        yield
    finally:
        for store, content in saved:
            store.clear()
            store.update(content)
