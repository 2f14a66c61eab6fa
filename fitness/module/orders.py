"""What a module's process is told of a task: how to make the module and how to call it.

Constructor arguments, names, types and shapes; no reference, no values of inputs, no seeds.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from cuda_sandbox.tensor import Role, TensorSpec
from fitness.errors import TaskError
from fitness.leaves import Ref, Site
from fitness.loaded import LoadedTask
from fitness.module.runner.orders import CONSTRUCTOR, KERNEL, ORDERS
from fitness.module.runner.outputs import flat
from fitness.module.runner.owed import owed
from fitness.module.runner.stage import GIVEN

_owing: WeakKeyDictionary[LoadedTask, list[list[str]]] = WeakKeyDictionary()


def contents(task: LoadedTask, source: str) -> dict[str, bytes]:
    """The files of a module's folder. Raises TaskError where an argument cannot be handed over."""
    names = leaf_names(task)
    told = {
        "leaves": [_spec(spec, names[spec.name]) for spec in task.signature.arguments],
        "outputs": [
            _spec(spec, spec.name, owes)
            for spec, owes in zip(task.signature.outputs, owing(task), strict=True)
        ],
        "forward": [_tree(argument) for argument in task.reference.arguments.tree],
    }
    return {
        KERNEL: source.encode(),
        ORDERS: json.dumps(told, indent=1).encode(),
        CONSTRUCTOR: _constructor(task),
    }


def owing(task: LoadedTask) -> list[list[str]]:
    """The ways in which each of the reference's own outputs owes work: called once per task."""
    if task not in _owing:
        leaves: list[Tensor] = []

        def noted(leaf: Tensor) -> Tensor:
            leaves.append(leaf)
            return leaf

        with task.prepared(place=noted) as call:
            outputs = list(flat(call()))
        roles = (str(spec.role.value) for spec in task.signature.arguments)
        given = [leaf for leaf, role in zip(leaves, roles, strict=True) if role in GIVEN]
        plain = torch.empty(0, device=task.device)
        _owing[task] = [list(owed(output, plain, given)) for output in outputs]
    return _owing[task]


def leaf_names(task: LoadedTask) -> dict[str, str]:
    """The names of leaves in the model, dots and all, by their names in the signature."""
    model, specs = task.model, task.signature.arguments
    registered = {
        Role.PARAMETER: iter(_distinct(model.named_parameters())),
        Role.BUFFER: iter(_distinct(model.named_buffers())),
    }
    states = _state_names(model, task.reference.sites)
    found = {}
    for position, spec in enumerate(specs):
        if spec.role in registered:
            found[spec.name] = next(registered[spec.role])
        else:
            found[spec.name] = states.get(position, spec.name)
    return found


def _distinct(named: Iterable[tuple[str, Any]]) -> list[str]:
    return list({id(tensor): name for name, tensor in reversed(list(named))}.values())[::-1]


def _state_names(model: nn.Module, sites: list[Site]) -> dict[int, str]:
    """Names of the tensors that modules keep as plain attributes, by position."""
    prefixes = {id(module): prefix for prefix, module in model.named_modules()}
    found: dict[int, str] = {}
    for site in sites:
        if site.store == "__dict__":
            prefix = prefixes.get(id(site.module), "")
            label = f"{prefix}.{site.key}" if prefix else site.key
            for position, name in _refs(label, site.tree):
                found.setdefault(position, name)
    return found


def _refs(label: str, tree: Any) -> Iterator[tuple[int, str]]:
    if isinstance(tree, Ref):
        yield tree.position, label
    elif isinstance(tree, (list, tuple, dict)):
        items = tree.values() if isinstance(tree, dict) else tree
        for index, item in enumerate(items):
            yield from _refs(f"{label}.{index}", item)


def _spec(spec: TensorSpec, name: str, owes: Sequence[str] = ()) -> list[Any]:
    return [name, str(spec.role.value), spec.dtype, list(spec.shape), list(owes)]


def _tree(value: Any) -> Any:
    """Forward's argument: a leaf by its position, a plain value, or a list of such."""
    if isinstance(value, Ref):
        return {"leaf": value.position}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_tree(item) for item in value]}
    return {"value": value}


def _constructor(task: LoadedTask) -> bytes:
    file = task.reference.file
    try:
        pickled = pickle.dumps(file.init_arguments())
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TaskError(
            f"{file.path}: constructor arguments cannot be handed over: {error}"
        ) from error
    if file.module.__name__.encode() in pickled:
        raise TaskError(
            f"{file.path}: a constructor argument is of a class of the task's own file, which a "
            "module's process does not have; hand plain values over"
        )
    return pickled
