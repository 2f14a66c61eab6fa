"""The reference as a function of its leaves, in its own types and in float64."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from cuda_sandbox.signature import Role
from fitness.dispatch import Mode
from fitness.errors import TaskError
from fitness.leaves import Arguments, Collector, Leaf, check, filled, find_sites, installed, named
from fitness.taskfile import TaskFile, blamed

Leaves = Mapping[str, Tensor]
_NARROW = (torch.float32, torch.float16, torch.bfloat16)


class Reference:
    """A task's model with named leaves.

    ``leaves`` are those that the file made, in the signature's order. No call changes the leaves
    it was given or what the model holds.
    """

    def __init__(self, file: TaskFile, model: nn.Module, values: tuple[Any, ...]) -> None:
        collector = Collector()
        self.file = file
        self.model = model
        try:
            self.arguments = Arguments.read(model, values, collector)
            self.sites = find_sites(model, collector)
        except TaskError as error:
            raise TaskError(f"{file.path}: {error}") from error
        self.leaves = collector.leaves()
        self._elsewhere = file.elsewhere
        self._roles = {leaf.name: leaf.role for leaf in self.leaves}
        self.changed: frozenset[str] | None = None  # inputs that forward writes to; None: unknown

    def forget_inputs(self) -> None:
        """Let go of the inputs' data, which may be gigabytes; their types and shapes stay."""
        self.leaves = tuple(
            replace(leaf, tensor=leaf.tensor.to("meta")) if leaf.role is Role.INPUT else leaf
            for leaf in self.leaves
        )

    def run(self, leaves: Leaves) -> tuple[Tensor, ...]:
        """The outputs for ``leaves``, contiguous, in the task's own types. Raises TaskError."""
        given = {name: self._protected(name, tensor) for name, tensor in leaves.items()}
        before = {name: tensor._version for name, tensor in given.items()}
        outputs = self.call(given)
        if self.changed is None:
            self.changed = frozenset(
                name for name, tensor in given.items() if tensor._version != before[name]
            )
        return outputs

    def run64(self, leaves: Leaves) -> tuple[Tensor, ...]:
        """The outputs computed in float64: leaves upcast, and every cast to a narrower float too.

        Raises TaskError where some operation has no float64 version.
        """
        with widened():
            return self.run({name: upcast(tensor) for name, tensor in leaves.items()})

    def call(self, leaves: Leaves) -> tuple[Tensor, ...]:
        """As `run`, on these very tensors: what forward writes to is changed."""
        tensors = [leaves[leaf.name] for leaf in self.leaves]
        arguments = filled(self.arguments.tree, tensors)
        with (
            blamed(self.file.path, "forward"),
            self._elsewhere,
            torch.no_grad(),
            installed(self.model, self.sites, tensors),
        ):
            result = self.model(*arguments)
        return tuple(output.contiguous() for output in self._outputs(result))

    def _protected(self, name: str, tensor: Tensor) -> Tensor:
        """An alias, or a copy where forward may write to it (or re-lay it, as RNNs do)."""
        spared = self._roles[name] in (Role.BUFFER, Role.STATE)
        if spared or self.changed is None or name in self.changed:
            return tensor.detach().clone()
        return tensor.detach()

    def _outputs(self, result: Any) -> list[Tensor]:
        """The tensors that forward returned, nested ones flattened."""
        if isinstance(result, Tensor):
            return [result]
        if isinstance(result, (list, tuple)):
            return [output for item in result if item is not None for output in self._outputs(item)]
        raise TaskError(
            f"{self.file.path}: forward returns {type(result).__name__}; "
            "it must return a tensor, or a tuple or list of tensors"
        )


def output_leaves(reference: Reference, outputs: tuple[Tensor, ...]) -> tuple[Leaf, ...]:
    """The outputs named ``out``, or ``out0``, ``out1``, ... Raises TaskError on other types."""
    if not outputs:
        raise TaskError("forward returns no tensor")
    labels = ["out"] if len(outputs) == 1 else [f"out{i}" for i in range(len(outputs))]
    for label, output in zip(labels, outputs, strict=True):
        check(label, output)
    found = [
        Leaf(label, Role.OUTPUT, output) for label, output in zip(labels, outputs, strict=True)
    ]
    return named([*reference.leaves, *found])[len(reference.leaves) :]


def upcast(tensor: Tensor) -> Tensor:
    """Floats as float64, anything else as it is."""
    return tensor.double() if tensor.dtype in _NARROW else tensor


class _Widen(Mode):
    """Every operation that asks for a narrower float gets float64."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if kwargs.get("dtype") in _NARROW:
            kwargs["dtype"] = torch.float64
        return func(*args, **kwargs)


@contextlib.contextmanager
def widened() -> Iterator[None]:
    """Within, new tensors and casts are float64 wherever a narrower float is asked for."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Widen():  # type: ignore[no-untyped-call]  # torch has no types here
            yield
    finally:
        torch.set_default_dtype(default)


@contextlib.contextmanager
def exact() -> Iterator[None]:
    """Within, float32 means float32: no TF32, no sums in half precision."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    flags = [
        (matmul, "allow_tf32"),
        (matmul, "allow_fp16_reduced_precision_reduction"),
        (matmul, "allow_bf16_reduced_precision_reduction"),
        (cudnn, "allow_tf32"),
    ]
    saved = [getattr(owner, flag) for owner, flag in flags]
    for owner, flag in flags:
        setattr(owner, flag, False)
    try:
        yield
    finally:
        for (owner, flag), value in zip(flags, saved, strict=True):
            setattr(owner, flag, value)
