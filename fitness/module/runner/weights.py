"""Give a ``ModelNew`` the weights that the judge holds, after it was made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from cuda_sandbox.protocol import Failure
from fitness.module.runner.orders import Refused, Spec

PARAMETER, BUFFER, STATE = "parameter", "buffer", "state"
_STORES = ("_parameters", "_buffers", "_modules")


@dataclass(frozen=True)
class Held:
    """A tensor that a model holds. ``restore`` puts the very object back where forward replaced
    it."""

    name: str
    role: str
    tensor: Tensor
    restore: Callable[[], None]

    def fits(self, spec: Spec) -> bool:
        """Whether shape and type are those of ``spec``."""
        dtype = str(self.tensor.dtype).removeprefix("torch.")
        return tuple(self.tensor.shape) == spec.shape and dtype == spec.dtype

    @property
    def said(self) -> str:
        """For messages, as `Spec.said`."""
        dtype = str(self.tensor.dtype).removeprefix("torch.")
        return f"{self.name} {dtype}[{', '.join(map(str, self.tensor.shape))}]"


@dataclass(frozen=True)
class Placing:
    """Where each leaf goes (None: inputs, and what the model has no place for).

    ``own`` are the tensors that the model holds and nobody gives it: made in its constructor.
    ``how``: by name, by order, or both.
    """

    places: tuple[Held | None, ...]
    own: tuple[Held, ...]
    how: str


def held(model: nn.Module) -> list[Held]:
    """All tensors of a model, each once: parameters, buffers, then plain attributes."""
    seen: set[int] = set()
    found: list[Held] = []
    for one in (*_registered(model), *_attributes(model)):
        if id(one.tensor) not in seen:
            seen.add(id(one.tensor))
            found.append(one)
    return found


def _registered(model: nn.Module) -> Iterator[Held]:
    for role, store in ((PARAMETER, "_parameters"), (BUFFER, "_buffers")):
        for prefix, module in model.named_modules():
            for key, tensor in getattr(module, store).items():
                if isinstance(tensor, Tensor):
                    name = f"{prefix}.{key}" if prefix else key
                    yield Held(name, role, tensor, _putter(getattr(module, store), key, tensor))


def _attributes(model: nn.Module) -> Iterator[Held]:
    for prefix, module in model.named_modules():
        for key, value in list(vars(module).items()):
            if key not in _STORES and "hook" not in key:
                yield from _inside(f"{prefix}.{key}" if prefix else key, vars(module), key, value)


def _inside(name: str, store: Any, key: Any, value: Any) -> Iterator[Held]:
    if isinstance(value, Tensor):
        yield Held(name, STATE, value, _putter(store, key, value))
    elif isinstance(value, (list, dict)):
        items = list(value.items() if isinstance(value, dict) else enumerate(value))
        for index, (inner, item) in enumerate(items):
            yield from _inside(f"{name}.{index}", value, inner, item)


def _putter(store: Any, key: Any, tensor: Tensor) -> Callable[[], None]:
    def put() -> None:
        if store[key] is not tensor:
            store[key] = tensor

    return put


def place(model: nn.Module, leaves: Sequence[Spec]) -> Placing:
    """Find the tensor of ``model`` for each leaf: by name, else in the order of equal shapes.

    Raises Refused where a parameter of either side has no counterpart.
    """
    free = held(model)
    places: list[Held | None] = [None] * len(leaves)
    for index, spec in enumerate(leaves):
        named = [one for one in free if one.name == spec.name and one.fits(spec)]
        if named and spec.role in (PARAMETER, BUFFER, STATE):
            places[index] = named[0]
            free.remove(named[0])
    by_name = any(places)
    by_order = _place_by_order(leaves, places, free)
    _require_all(leaves, places, free)
    hows = [how for how, used in (("by name", by_name), ("by order of shapes", by_order)) if used]
    return Placing(tuple(places), tuple(free), " and ".join(hows) or "none")


def _place_by_order(leaves: Sequence[Spec], places: list[Held | None], free: list[Held]) -> bool:
    """Parameters first, into parameters if there are any of that shape; whether any was placed."""
    some = False
    for role in (PARAMETER, BUFFER, STATE):
        for index, spec in enumerate(leaves):
            if spec.role != role or places[index] is not None:
                continue
            fitting = sorted(
                (one for one in free if one.fits(spec)), key=lambda one: one.role != PARAMETER
            )
            if fitting and (role == PARAMETER or fitting[0].role != PARAMETER):
                places[index] = fitting[0]
                free.remove(fitting[0])
                some = True
    return some


def _require_all(
    leaves: Sequence[Spec], places: Sequence[Held | None], free: Sequence[Held]
) -> None:
    lacking = [
        spec.said
        for spec, found in zip(leaves, places, strict=True)
        if spec.role == PARAMETER and found is None
    ]
    spare = [one.said for one in free if one.role == PARAMETER]
    if lacking:
        has = ", ".join(one.said for one in free) or "nothing else"
        raise Refused(
            Failure.BAD_OBJECT,
            f"weights: ModelNew has no place for {', '.join(lacking)} (it has {has}); give it "
            "parameters of the names and shapes that Model has: the judge fills them",
        )
    if spare:
        raise Refused(
            Failure.BAD_OBJECT,
            f"weights: ModelNew's {', '.join(spare)} is no parameter of Model; weights of a "
            "module's own are not judged: keep a constant with register_buffer",
        )
