"""What the exported module must know of the kernel's interface, as JSON values."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

from cuda_sandbox.signature import Signature, TensorSpec
from fitness.description import TaskDescription
from fitness.evaluation import Demand, Evaluation

MODES = re.compile(r"batch_?norm|instance_?norm|rrelu|\btraining\b", re.IGNORECASE)
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def interface(
    task: TaskDescription, demand: Demand, verdict: Evaluation, flags: tuple[str, ...]
) -> dict[str, Any]:
    """Tensors in call order, numbers compiled in, the shape of the result, the error allowed.

    ``returns`` is ``tensor``, or ``structure`` where the module has to learn from one call of the
    original what its outputs are packed in. ``mode_matters``: eval mode would compute otherwise.
    """
    signature = task.signature
    return {
        "title": signature.title,
        "arguments": [_spec(each) for each in signature.arguments],
        "outputs": [_spec(each) for each in signature.outputs],
        "numbers": [[name, number(literal)] for name, literal in signature.defines],
        "returns": "tensor" if returns_tensor(task) else "structure",
        "mode_matters": bool(MODES.search(task.source)),
        "limit": limit(signature, demand, verdict),
        "flags": list(flags),
    }


def _spec(tensor: TensorSpec) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "role": str(tensor.role),
    }


def number(literal: str) -> int | float | bool:
    """The Python number behind a C literal of the header. Raises ValueError for anything else."""
    text = literal.strip("()")
    sign = -1 if text.startswith("-") else 1
    if text in ("true", "false"):
        return text == "true"
    if "__builtin_nan" in text:
        return math.nan
    if "__builtin_inf" in text:
        return sign * math.inf
    if re.fullmatch(r"-?\d+(LL)?", text):
        return int(text.removesuffix("LL"))
    return float(text.removesuffix("f"))


def returns_tensor(task: TaskDescription) -> bool:
    """Whether forward returns a bare tensor: one output, and no tuple or list around it."""
    if len(task.signature.outputs) != 1:
        return False
    nodes = list(ast.walk(ast.parse(task.source)))
    forwards = [n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == "forward"]
    parts = [part for forward in forwards for part in ast.walk(forward)]
    returned = [part.value for part in parts if isinstance(part, ast.Return)]
    return not any(isinstance(value, ast.Tuple | ast.List) for value in returned)


def limit(signature: Signature, demand: Demand, verdict: Evaluation) -> float:
    """The error ``max|y-t|/rms(t)`` that the self check allows on inputs that were never judged.

    The demanded tolerance, else four times what was measured; never below 4 ulp of the output.
    """
    floor = max((4 * EPSILON.get(each.dtype, 0.0) for each in signature.outputs), default=0.0)
    if demand.tolerance is not None:
        return max(demand.tolerance, floor)
    measured = verdict.precision.error if verdict.precision else 0.0
    return max(4 * measured, floor)
