"""What is said of a task beside its signature: notes in the header, remarks to the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from cuda_sandbox.signature import Role
from fitness.errors import TaskError
from fitness.leaves import dtype_name
from fitness.reference import Reference
from fitness.taskfile import TaskFile

_HOUSEKEEPING = frozenset({"training", "call_super_init", "dump_patches"})


def notes(file: TaskFile, model: nn.Module) -> list[str]:
    """Lines on the constructor's arguments and the modules' numeric settings."""
    given = ", ".join(f"{key}={_brief(value)}" for key, value in file.init_names().items())
    lines = [f"Model({given})"] if given else []
    for name, module in model.named_modules():
        settings = ", ".join(f"{key}={value!r}" for key, value in _settings(module))
        if settings:
            lines.append(f"{name or 'self'}: {type(module).__name__}({settings})")
    return lines


def _settings(module: nn.Module) -> list[tuple[str, Any]]:
    return [
        (key, value)
        for key, value in vars(module).items()
        if not key.startswith("_") and key not in _HOUSEKEEPING and _is_setting(value)
    ]


def _is_setting(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(_is_setting(item) for item in value)
    return isinstance(value, (bool, int, float, str))


def _brief(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"tensor {dtype_name(value)}{list(value.shape)}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def remarks(reference: Reference) -> list[str]:
    """What a user should know of how the task is judged."""
    changed = reference.changed or frozenset()
    arguments = reference.arguments
    kinds = {role: [leaf.name for leaf in reference.leaves if leaf.role is role] for role in Role}
    said = [
        (
            [name for name in kinds[Role.BUFFER] if name in changed],
            "forward updates buffers ({}): they are restored before each call, "
            "and the updates are not judged",
        ),
        (
            kinds[Role.STATE],
            "tensors kept as attributes ({}) are inputs of the kernel, restored before each call",
        ),
        (
            [name for name in kinds[Role.INPUT] if name in changed],
            "forward writes to its inputs ({}): only what it returns is judged",
        ),
        (list(arguments.dropped), "inputs that are None ({}) are no arguments of the kernel"),
        (list(arguments.strided), "strided inputs ({}) are contiguous for both sides"),
        (_idle_dropouts(reference.model), "dropout with p = 0 ({}) does nothing"),
    ]
    return [text.format(_listed(names)) for names, text in said if names]


def _listed(names: list[str]) -> str:
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{rest}"


def _idle_dropouts(model: nn.Module) -> list[str]:
    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.modules.dropout._DropoutNd) and module.training and module.p == 0
    ]


def narrow_truth(
    reference: Reference, outputs: tuple[Tensor, ...], leaves: Mapping[str, Tensor]
) -> list[str]:
    """A remark where the reference does not run in float64."""
    try:
        wide = reference.run64(leaves)
    except TaskError as error:
        return [f"no float64 truth, the task's own types stand in: {error}"]
    narrow = [
        str(i)
        for i, (output, other) in enumerate(zip(outputs, wide, strict=True))
        if output.is_floating_point() and other.dtype is not torch.float64
    ]
    return [f"truth of output {', '.join(narrow)} is not float64 throughout"] if narrow else []
