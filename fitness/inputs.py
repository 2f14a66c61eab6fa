"""Inputs that a kernel cannot know: several distributions, within the domain of the operator.

Every draw is a function of (secret seed, distribution, index, rung) and is made on the device.
A *rung* is a milder form of a distribution, for references that overflow on the first one; the
last rungs draw positive numbers only, and integers and bools as the task has them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor

from cuda_sandbox.signature import Role, TensorSpec
from fitness.domains import Domain, Kind, find_domain
from fitness.loaded import LoadedTask

_HALF_NORMAL = 6.1e-5  # the smallest float16 with all its bits

Shape = tuple[int, ...]
Draw = Callable[[Shape, torch.Generator], Tensor]


def _normal(
    shape: Shape, rng: torch.Generator, mean: float = 0.0, deviation: float = 1.0
) -> Tensor:
    drawn = torch.randn(shape, generator=rng, device=rng.device)
    return drawn.mul_(deviation).add_(mean)


def _rows(shape: Shape, rng: torch.Generator) -> Tensor:
    """Each item of the first dimension constant (everything, where there is one dimension)."""
    return _normal(_heads(shape), rng).expand(shape).contiguous()


def _heads(shape: Shape) -> Shape:
    return (shape[0], *(1 for _ in shape[1:])) if len(shape) > 1 else tuple(1 for _ in shape)


def _outliers(shape: Shape, rng: torch.Generator, factor: float) -> Tensor:
    """Normal, with about one value in a thousand ``factor`` times as large."""
    drawn = _normal(shape, rng)
    chance = max(1e-3, 2.0 / max(1, drawn.numel()))
    chosen = torch.rand(shape, generator=rng, device=rng.device) < chance
    return torch.where(chosen, drawn * factor, drawn)


_RUNGS: Mapping[str, tuple[Draw, ...]] = {
    "own": (),
    "normal": (_normal,),
    "shifted": tuple(
        partial(_normal, mean=mean, deviation=deviation)
        for mean, deviation in ((1000.0, 0.1), (10.0, 1.0), (1.0, 0.5))
    ),
    "large": tuple(partial(_normal, deviation=size) for size in (1e4, 1e2, 10.0)),
    "tiny": (partial(_normal, deviation=1e-6),),
    "rows": (_rows,),
    "outliers": tuple(partial(_outliers, factor=factor) for factor in (1e3, 30.0)),
}

DISTRIBUTIONS: tuple[str, ...] = tuple(_RUNGS)
"""``own`` is the task's: get_inputs() and the model's weights. The others draw both."""


def _spread(shape: Shape, rng: torch.Generator) -> Tensor:
    """Signed, magnitudes from 1e-4 to 1e4, each decade as likely."""
    sizes = torch.rand(shape, generator=rng, device=rng.device).mul_(8).sub_(4)
    return torch.pow(10.0, sizes).copysign_(_normal(shape, rng))


_FURTHER: Mapping[str, tuple[Draw, ...]] = {
    "redrawn": (),
    "spread": (_spread,),
    "huge": tuple(partial(_normal, deviation=size) for size in (1e8, 1e6)),
    "free": (_normal,),
}

REINFORCEMENTS: tuple[str, ...] = tuple(_FURTHER)
"""For tasks on which lazy answers pass all of the others. ``redrawn`` are the task's own inputs
with parameters drawn; ``free`` are real numbers also where the task draws probabilities or labels.
"""

_FORMS = {**_RUNGS, **_FURTHER}
_BOUND = (Kind.UNIT, Kind.SIMPLEX, Kind.CATEGORY)


def rungs(distribution: str) -> int:
    """How many forms of ``distribution`` there are, the mildest last."""
    return max(1, 2 * len(_FORMS[distribution]))


class Inputs:
    """Draws leaves for a task. ``secret`` must never reach a candidate's process."""

    def __init__(self, task: LoadedTask, secret: int) -> None:
        self.task = task
        self._secret = secret

    def draw(self, distribution: str, index: int = 0, rung: int = 0) -> dict[str, Tensor]:
        """All leaves by name, contiguous, on the task's device, for the kernel and the reference.

        Raises TaskError if get_inputs() fails.
        """
        forms = _FORMS[distribution]
        if not forms:
            return self._as_the_task_has_them(distribution, index)
        form, positive = forms[rung % len(forms)], rung >= len(forms)
        leaves = {}
        for spec in self.task.signature.arguments:
            rng = torch.Generator(self.task.device)
            rng.manual_seed(self._seed(distribution, index, spec.name))
            domain = self._domain(spec, distribution)
            kind = "" if positive else distribution
            leaves[spec.name] = _leaf(_Order(spec, domain, form, rng, kind), positive)
        return leaves

    def _as_the_task_has_them(self, distribution: str, index: int) -> dict[str, Tensor]:
        leaves = self.task.own(self._seed(distribution, index, "") % 2**62)
        if distribution == "redrawn":
            drawn = self.draw("normal", index)
            for spec in self.task.signature.arguments:
                if spec.role is Role.PARAMETER:
                    leaves[spec.name] = drawn[spec.name]
        return leaves

    def _domain(self, spec: TensorSpec, distribution: str) -> Domain:
        domain = self.domains[spec.name]
        return Domain(Kind.REAL) if distribution == "free" and domain.kind in _BOUND else domain

    @cached_property
    def domains(self) -> dict[str, Domain]:
        """What values each leaf may take."""
        first, second = (self.task.own(self._seed("domain", i, "") % 2**62) for i in range(2))
        return {
            spec.name: find_domain(
                spec.name, spec.role, first[spec.name], second[spec.name], self.task.description
            )
            for spec in self.task.signature.arguments
        }

    def _seed(self, distribution: str, index: int, leaf: str) -> int:
        text = f"{self._secret}/{distribution}/{index}/{leaf}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


@dataclass(frozen=True)
class _Order:
    """What is to be drawn: one leaf, in one form of a distribution.

    ``distribution`` gives integers and bools a form too; empty: as the task has them.
    """

    spec: TensorSpec
    domain: Domain
    form: Draw
    rng: torch.Generator
    distribution: str = ""

    def uniform(self) -> Tensor:
        return torch.rand(self.spec.shape, generator=self.rng, device=self.rng.device)

    def integers(self, low: int, high: int) -> Tensor:
        """From ``low`` to ``high``, both included; the same along a row on ``rows``."""
        shape = self.spec.shape
        if self.distribution == "rows":
            shape = _heads(shape)
        drawn = torch.randint(low, high + 1, shape, generator=self.rng, device=self.rng.device)
        return drawn.expand(self.spec.shape).contiguous()


def _leaf(order: _Order, positive: bool) -> Tensor:
    spec, domain = order.spec, order.domain
    drawn = _KINDS[domain.kind](order)
    if domain.kind is Kind.REAL:
        if positive or spec.name.endswith("running_var"):
            drawn = drawn.abs() + 1e-3
        drawn = _structured(drawn, domain)
    return drawn.to(getattr(torch, spec.dtype)).contiguous()


def _structured(drawn: Tensor, domain: Domain) -> Tensor:
    if domain.symmetric:
        drawn = torch.triu(drawn) + torch.triu(drawn, 1).mT
    return drawn if domain.pattern is None else drawn * domain.pattern


def _real(order: _Order) -> Tensor:
    if order.spec.role is Role.INPUT:
        drawn = order.form(order.spec.shape, order.rng)
        if order.spec.dtype == "float16" and bool(drawn.abs().max() < _HALF_NORMAL):
            drawn *= 1e3  # the type has hardly a bit left for smaller numbers
        return drawn
    return _normal(order.spec.shape, order.rng, order.domain.mean, order.domain.deviation)


def _unit(order: _Order) -> Tensor:
    return torch.sigmoid(order.form(order.spec.shape, order.rng))


def _simplex(order: _Order) -> Tensor:
    return torch.softmax(order.form(order.spec.shape, order.rng), dim=order.domain.dim)


def _category(order: _Order) -> Tensor:
    values = torch.tensor(order.domain.values, device=order.rng.device)
    return values[order.integers(0, len(values) - 1)]


def _integer(order: _Order) -> Tensor:
    low, high = _range(order.domain, order.distribution)
    drawn = order.integers(low, high)
    return drawn.sort(dim=-1).values if order.domain.ordered else drawn


def _range(domain: Domain, distribution: str) -> tuple[int, int]:
    """The highest quarter of the domain for ``large``, the lowest for ``tiny``."""
    quarter = (domain.high - domain.low) // 4
    if distribution == "large":
        return domain.high - quarter, domain.high
    if distribution == "tiny":
        return domain.low, domain.low + quarter
    return domain.low, domain.high


def _permutation(order: _Order) -> Tensor:
    return order.uniform().argsort(dim=-1) + order.domain.low


_CHANCES = {"tiny": 0.05, "large": 0.95}


def _bool(order: _Order) -> Tensor:
    chance = _CHANCES.get(order.distribution, order.domain.mean)
    return order.uniform() < min(0.95, max(0.05, chance))


def _fixed(order: _Order) -> Tensor:
    assert order.domain.sample is not None
    return order.domain.sample


_KINDS: Mapping[Kind, Callable[[_Order], Tensor]] = {
    Kind.REAL: _real,
    Kind.UNIT: _unit,
    Kind.SIMPLEX: _simplex,
    Kind.CATEGORY: _category,
    Kind.INTEGER: _integer,
    Kind.PERMUTATION: _permutation,
    Kind.BOOL: _bool,
    Kind.FIXED: _fixed,
}


def poison(tensor: Tensor) -> None:
    """Fill with what no kernel would write: NaN for floats, a sentinel for other types.

    Bytes (a workspace) become 0xFF, which reads as NaN in every float type.
    """
    if tensor.is_floating_point():
        tensor.fill_(float("nan"))
    elif tensor.dtype is torch.uint8:
        tensor.fill_(0xFF)
    else:
        tensor.view(-1).view(torch.uint8).fill_(0xA5)
