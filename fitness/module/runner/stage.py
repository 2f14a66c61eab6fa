"""Where a module is called: what both devices have in common."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from cuda_sandbox.protocol import Flag, Request
from fitness.module.runner.candidate import blamed
from fitness.module.runner.jail import Jail
from fitness.module.runner.orders import Orders, Spec, filled
from fitness.module.runner.outputs import Outputs, blank
from fitness.module.runner.weights import PARAMETER, Placing, place

GIVEN = ("input", PARAMETER)
"""Roles of leaves that forward only reads."""


class Stage(ABC):
    """Holds the model and the sets of tensors that the judge shares; makes and times the calls.

    Times are this process's own: evidence for the judge, who has a clock of his own. ``captures``:
    a call is to be captured into a CUDA graph.
    """

    def __init__(
        self, model: nn.Module, orders: Orders, device: torch.device, *, captures: bool
    ) -> None:
        self.model = model
        self.orders = orders
        self.device = device
        self.captures = captures
        self.placing: Placing = place(model, orders.leaves)
        self.outputs = Outputs(orders.outputs, device)
        self._sets: list[list[Callable[[], Tensor]]] = [[]]
        self._blank: tuple[Tensor, ...] | None = None
        for one in self.placing.places:
            if one is not None:
                one.tensor.requires_grad_(False)

    @abstractmethod
    def view(
        self, request: Request, descriptor: int, spec: Spec, jail: Jail
    ) -> Callable[[], Tensor]:
        """What makes a fresh tensor over shared memory."""

    @abstractmethod
    def run(self, request: Request) -> list[float]:
        """Call the model; the time of each call in ms."""

    @abstractmethod
    def run_empty(self, request: Request) -> list[float]:
        """Everything that `run` does, but for the call of the model."""

    @abstractmethod
    def settle(self) -> None:
        """Return when the device has done all that was asked of it."""

    @abstractmethod
    def trace(self) -> dict[str, Any]:
        """One call that is watched: what ran."""

    @property
    def mode(self) -> str:
        """How the model is called: ``calls``, or ``graph`` where a CUDA graph is replayed."""
        return "calls"

    def add(self, request: Request, descriptor: int, jail: Jail) -> None:
        """Take one more shared tensor; what lies beyond the outputs is no module's business."""
        specs = (*self.orders.leaves, *self.orders.outputs)
        if request.index < len(specs):
            view = self.view(request, descriptor, specs[request.index], jail)
            self._sets[-1].append(view)
        elif descriptor >= 0:
            os.close(descriptor)

    def bind(self) -> None:
        """A set of shared tensors is complete."""
        self._sets.append([])

    def shared(self, index: int) -> tuple[list[Tensor], list[Tensor]]:
        """Fresh tensors over set ``index``, in a circle: the leaves, and the outputs."""
        tensors = [view() for view in self._sets[index % (len(self._sets) - 1)]]
        count = len(self.orders.leaves)
        return tensors[:count], tensors[count:]

    def blank(self) -> tuple[Tensor, ...]:
        """What a call of nothing returns."""
        if self._blank is None:
            self._blank = blank(self.orders.outputs, self.device)
        return self._blank

    def arguments(self, leaves: Sequence[Tensor]) -> list[Any]:
        """The arguments of forward; parameters and states are put in their places beside."""
        self.put_parameters(leaves)
        self.put_states(leaves)
        return [filled(argument, leaves) for argument in self.orders.forward]

    def given(self, leaves: Sequence[Tensor]) -> list[Tensor]:
        """Those of ``leaves`` that forward must not change, nor hand out as its own work."""
        pairs = zip(leaves, self.orders.leaves, strict=True)
        return [leaf for leaf, spec in pairs if spec.role in GIVEN]

    def blamed(self) -> AbstractContextManager[None]:
        """Within, what is raised is the fault of the model's forward."""
        return blamed(self.orders.source, "forward")

    def put_states(self, leaves: Sequence[Tensor]) -> None:
        """Buffers and states as the judge has them: the model may change its own."""
        for one, spec, leaf in zip(self.placing.places, self.orders.leaves, leaves, strict=True):
            if one is not None and spec.role != PARAMETER:
                one.restore()
                one.tensor.copy_(leaf)

    def put_parameters(self, leaves: Sequence[Tensor]) -> None:
        """Parameters are the judge's own memory, without a copy: a cached one is a stale one."""
        for one, spec, leaf in zip(self.placing.places, self.orders.leaves, leaves, strict=True):
            if one is not None and spec.role == PARAMETER:
                one.restore()
                one.tensor.data = leaf


def flushes(request: Request) -> bool:
    """Whether the caches are to be emptied before each call: a call that is timed."""
    return bool(request.flags & Flag.FLUSH)
