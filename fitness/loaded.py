"""A task with its real model, in a judge's process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cuda_sandbox.signature import Role, Signature
from fitness.description import TaskDescription
from fitness.errors import TaskError
from fitness.leaves import Arguments, Collector, filled, find_sites, installed
from fitness.reference import Leaves, Reference
from fitness.taskfile import TaskFile

_OWN_SEED = 42


class LoadedTask:
    """The reference on a device, as a function of leaves named as in the signature.

    ``scalars`` are the Python numbers among the inputs, by forward's names.
    """

    def __init__(
        self, reference: Reference, description: TaskDescription, device: torch.device
    ) -> None:
        self.reference = reference
        self.description = description
        self.device = device
        self.scalars = dict(reference.arguments.scalars)

    @classmethod
    def load(
        cls, path: Path, description: TaskDescription, device: str | torch.device, seed: int
    ) -> LoadedTask:
        """Run the file at ``path``. Raises TaskError, also if it no longer fits ``description``."""
        place = torch.device(device)
        file = TaskFile.read(path, place)
        model = _model(file, place, seed)
        reference = Reference(file, model, _inputs(file, place, _OWN_SEED))
        task = cls(reference, description, place)
        if tuple(leaf.spec for leaf in reference.leaves) != task.signature.arguments:
            raise TaskError(
                f"{path}: its tensors differ from run to run or from device to device; "
                "a kernel is compiled for fixed names, types and shapes"
            )
        reference.forget_inputs()
        return task

    @property
    def signature(self) -> Signature:
        """The kernel's signature."""
        return self.description.signature

    @property
    def model(self) -> nn.Module:
        """The reference itself, with its own parameters."""
        return self.reference.model

    def run(self, leaves: Leaves) -> tuple[Tensor, ...]:
        """The outputs for ``leaves``, which stay as they are; nothing outlives the call."""
        return self.reference.run(leaves)

    def run64(self, leaves: Leaves) -> tuple[Tensor, ...]:
        """As `run`, in float64. Raises TaskError where some operation has no float64 version."""
        return self.reference.run64(leaves)

    def own(self, seed: int) -> dict[str, Tensor]:
        """The task's own leaves: inputs as ``get_inputs()`` draws them under ``seed``.

        Parameters, buffers and states are the model's (not copied).
        """
        values = _inputs(self.reference.file, self.device, seed)
        collector = Collector()
        Arguments.read(self.model, values, collector)
        held = {leaf.name: leaf.tensor for leaf in self.reference.leaves}
        expected = [leaf for leaf in self.reference.leaves if leaf.role is Role.INPUT]
        for leaf, ours in zip(collector.leaves(), expected, strict=True):
            if leaf.tensor.shape != ours.tensor.shape or leaf.tensor.dtype != ours.tensor.dtype:
                raise TaskError(
                    f"{self.reference.file.path}: {ours.name} varies in shape or type from call "
                    "to call of get_inputs(); a kernel is compiled for fixed ones"
                )
            held[ours.name] = leaf.tensor
        return {name: tensor.detach().contiguous() for name, tensor in held.items()}

    @contextlib.contextmanager
    def prepared(
        self,
        wrap: Callable[[nn.Module], Callable[..., object]] | None = None,
        place: Callable[[Tensor], Tensor] | None = None,
    ) -> Iterator[Callable[[], object]]:
        """A call of the model itself, on its own parameters and inputs, with nothing around it.

        For timing. ``wrap`` may compile the model, ``place`` lays each input out beforehand. State
        that the calls change is put back after.
        """
        leaves = list(self.own(_OWN_SEED).values())
        arguments = filled(
            self.reference.arguments.tree, [place(x) for x in leaves] if place else leaves
        )
        changing = [leaf.tensor for leaf in self.reference.leaves if _is_changing(leaf.role)]
        saved = [tensor.clone() for tensor in changing]
        function = wrap(self.model) if wrap else self.model
        elsewhere = self.reference.file.elsewhere
        with torch.no_grad(), elsewhere, installed(self.model, [], []):
            try:
                yield lambda: function(*arguments)
            finally:
                for tensor, value in zip(changing, saved, strict=True):
                    tensor.copy_(value)


def _is_changing(role: Role) -> bool:
    return role in (Role.BUFFER, Role.STATE)


def _model(file: TaskFile, device: torch.device, seed: int) -> nn.Module:
    """The model on ``device``, drawn there where its constructor allows."""
    try:
        with device:
            model = file.build(seed)
    except TaskError:
        if device.type == "cpu":
            raise
        model = file.build(seed)
    model.to(device)
    collector = Collector()
    sites = find_sites(model, collector)
    placed = [_placed(leaf.tensor, device) for leaf in collector.leaves()]
    for site in sites:
        if site.store == "__dict__":
            site.put(placed)
    return model


def _placed(tensor: Tensor, device: torch.device) -> Tensor:
    """The very tensor if it lies on ``device`` already."""
    on_device = tensor.device.type == device.type
    return tensor if on_device else tensor.detach().to(device)


def _inputs(file: TaskFile, device: torch.device, seed: int) -> tuple[Any, ...]:
    """``get_inputs()`` run on ``device`` where it can be, else moved there."""
    try:
        with device:
            values = file.inputs(seed)
    except TaskError:
        if device.type == "cpu":
            raise
        values = file.inputs(seed)
    return tuple(_moved(value, device) for value in values)


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return value.detach().to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(item, device) for item in value)
    return value
