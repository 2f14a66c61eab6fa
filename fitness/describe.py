"""The child that describes a task: ``python -m fitness.describe TASK ANSWER DEADLINE_S PARENT``.

It runs the file under fake tensors, so that nothing is allocated; where the file reads values,
step by step for real, on limited memory. The answer is a JSON file: a description, or ``error``.
"""

from __future__ import annotations

import faulthandler
import json
import math
import resource
import sys
import time
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from cuda_sandbox.children import die_with
from cuda_sandbox.signature import Role, Signature
from fitness.description import Node, TaskDescription, to_json
from fitness.errors import TaskError
from fitness.leaves import Leaf
from fitness.reference import Reference, output_leaves
from fitness.remarks import narrow_truth, notes, remarks
from fitness.rnn import unrolled_at_once
from fitness.taskfile import TaskFile
from fitness.trace import FlopCount, trace

_REAL_MEMORY = 4 << 30  # bytes that a file which reads values may allocate
_PATIENCE_S = 6.0  # one call that takes longer is not repeated for mere remarks
_INT32 = range(-(2**31), 2**31)


@dataclass(frozen=True)
class Reality:
    """Which steps run on real tensors, and how that is called in a message."""

    model: bool
    inputs: bool
    forward: bool

    def describe(self, file: TaskFile) -> TaskDescription:
        """Describe the task this way. Raises TaskError."""
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        with nullcontext() if self.model else mode:
            model = file.build(seed=0)
        with nullcontext() if self.inputs else mode:
            first, second = file.inputs(seed=0), file.inputs(seed=1)
        reference = Reference(file, model, first)
        _refuse_varying(file, reference, second)
        if self.forward:
            leaves = {leaf.name: leaf.tensor.contiguous() for leaf in reference.leaves}
            return _describe(file, reference, leaves)
        leaves = {leaf.name: _fake(mode, leaf.tensor) for leaf in reference.leaves}
        with mode, unrolled_at_once():
            return _describe(file, reference, leaves)


_REALITIES = (
    Reality(model=False, inputs=False, forward=False),
    Reality(model=True, inputs=False, forward=False),
    Reality(model=True, inputs=True, forward=False),
    Reality(model=True, inputs=True, forward=True),
)


def describe_here(path: Path) -> TaskDescription:
    """The task's description, made in this process. Raises TaskError."""
    before = set(sys.modules)
    described = _describe_here(path)
    return replace(described, beside=_beside(path, set(sys.modules) - before))


def _beside(path: Path, modules: set[str]) -> tuple[str, ...]:
    """Files of ``modules`` that lie in the task's folder, by their names in it."""
    folder, ours = path.resolve().parent, Path(__file__).resolve().parents[1]
    kept = [Path(sys.prefix).resolve(), *(ours / name for name in ("fitness", "cuda_sandbox"))]
    places = [getattr(sys.modules.get(name), "__file__", None) for name in modules]
    files = {Path(place).resolve() for place in places if place} - {path.resolve()}
    found = [
        file.relative_to(folder)
        for file in files
        if file.is_relative_to(folder) and not any(map(file.is_relative_to, kept))
    ]
    return tuple(sorted(map(str, found)))


def _describe_here(path: Path) -> TaskDescription:
    file = TaskFile.read(path)
    failures: list[TaskError] = []
    for reality in _REALITIES:
        if reality.model and len(failures) == 1:
            _limit_memory()
        try:
            return reality.describe(file)
        except TaskError as error:
            if error.__cause__ is None or isinstance(error.__cause__, TaskError):
                raise  # the file's fault under any reality
            failures.append(error)
    if _is_shortage(failures[-1]):
        raise TaskError(
            f"{failures[0]} (on tensors without data; on real ones it needs more than "
            f"{_REAL_MEMORY >> 30} GiB)"
        )
    raise failures[-1]


def _limit_memory() -> None:
    """Bound what the task may allocate from now on."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    wanted = used + _REAL_MEMORY
    limit = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _is_shortage(error: TaskError) -> bool:
    cause = error.__cause__
    return isinstance(cause, MemoryError) or "allocate" in str(cause)


def _fake(mode: FakeTensorMode, tensor: Tensor) -> Tensor:
    """``tensor`` without its data, contiguous."""
    with mode:
        fake = tensor if isinstance(tensor, FakeTensor) else mode.from_tensor(tensor.detach())
        return fake.detach().contiguous()


def _refuse_varying(file: TaskFile, reference: Reference, values: tuple[Any, ...]) -> None:
    """Raises TaskError if a second call of get_inputs() gives other numbers or shapes."""
    numbers, shapes = _look(values)
    for (name, value), other in zip(reference.arguments.scalars, numbers, strict=False):
        if value != other and not (value != value and other != other):
            raise TaskError(
                f"{file.path}: the number {name!r} varies from call to call of get_inputs() "
                f"({value}, then {other}); a kernel is compiled for fixed numbers: make it a "
                "constant, or a tensor"
            )
    ours = [leaf.tensor.shape for leaf in reference.leaves if leaf.role is Role.INPUT]
    if ours != shapes:
        raise TaskError(
            f"{file.path}: the shapes vary from call to call of get_inputs(); "
            "a kernel is compiled for fixed shapes"
        )


def _look(values: Any) -> tuple[list[Any], list[torch.Size]]:
    """The numbers among the inputs, and the shapes of the (distinct) tensors."""
    numbers: list[Any] = []
    tensors: dict[int, Tensor] = {}

    def look(value: Any) -> None:
        if isinstance(value, Tensor):
            tensors[id(value)] = value
        elif isinstance(value, (list, tuple)):
            for item in value:
                look(item)
        elif value is not None:
            numbers.append(value)

    look(values)
    return numbers, [tensor.shape for tensor in tensors.values()]


def _describe(
    file: TaskFile, reference: Reference, leaves: Mapping[str, Tensor]
) -> TaskDescription:
    started = time.monotonic()
    with FlopCount() as count:
        outputs = reference.run(leaves)
    seconds = time.monotonic() - started
    try:
        named = output_leaves(reference, outputs)
    except TaskError as error:
        raise TaskError(f"{file.path}: {error}") from error
    said = remarks(reference)
    if seconds < _PATIENCE_S:
        said += narrow_truth(reference, outputs, leaves)
    graph, trouble = _graph(file, reference, leaves, seconds)
    return TaskDescription(
        name=file.path.stem,
        source=file.path.read_text(),
        signature=_signature(file, reference, named),
        graph=graph,
        flops=count.flops if count.known else None,
        remarks=(*said, *trouble),
    )


def _graph(
    file: TaskFile, reference: Reference, leaves: Mapping[str, Tensor], seconds: float
) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """The traced graph, or nothing and the reason. Raises TaskError if the reference is random.

    ``seconds`` is what one call takes.
    """
    if seconds > 2 * _PATIENCE_S:
        return (), (f"not traced: one call on tensors without data takes {seconds:.0f} s already",)
    try:
        return trace(reference, leaves), ()
    except TaskError as error:
        if error.__cause__ is None:
            raise type(error)(f"{file.path}: {error}") from error
        return (), (_untraceable(error.__cause__),)
    except Exception as error:  # noqa: BLE001  # torch's tracer fails in many ways
        return (), (_untraceable(error),)


def _untraceable(error: BaseException) -> str:
    text = str(error).partition("\n")[0]
    return f"forward cannot be traced: {type(error).__name__}: {text[:200]}"


def _signature(file: TaskFile, reference: Reference, outputs: tuple[Leaf, ...]) -> Signature:
    tensors = [leaf.spec for leaf in reference.leaves]
    wide = any(spec.dtype == "float64" for spec in tensors)
    defines = tuple(
        (label.upper(), literal(value, wide)) for label, value in reference.arguments.scalars
    )
    return Signature(
        title=file.path.stem,
        arguments=tuple(tensors),
        outputs=tuple(leaf.spec for leaf in outputs),
        defines=defines,
        notes=tuple(notes(file, reference.model)),
    )


def literal(value: int | float | bool, wide: bool) -> str:
    """``value`` as a C literal; floats are ``float`` unless ``wide``."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value) if value in _INT32 else f"{value}LL"
    suffix = "" if wide else "f"
    if math.isfinite(value):
        return f"{value!r}{suffix}"
    text = f'__builtin_nan{suffix}("")' if math.isnan(value) else f"__builtin_inf{suffix}()"
    return f"(-{text})" if value < 0 else text


def main() -> None:
    """Describe the task named on the command line and write the answer."""
    path, answer, deadline_s = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    die_with(parent=int(sys.argv[4]))
    faulthandler.dump_traceback_later(deadline_s, exit=True)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    try:
        data = to_json(describe_here(path))
    except TaskError as error:
        data = {"error": str(error)}
    part = answer.with_suffix(".part")
    part.write_text(json.dumps(data))
    part.replace(answer)
    sys.stderr.flush()


if __name__ == "__main__":
    main()
