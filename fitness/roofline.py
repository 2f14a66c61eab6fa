"""What physics allows: compulsory bytes and operations over the ceilings of the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cuda_sandbox.tensor import Role, TensorSpec
from fitness.description import Node, TaskDescription
from fitness.evaluation import Tier
from fitness.hardware import Ceilings

_HONEST_MARGIN = 0.8
"""A one-way stream can beat the copy rate a little; below this share of the floor it is a cheat."""

_LOOK_UPS = frozenset(
    f"aten.{name}"
    for name in (
        "embedding.default",
        "embedding_bag.default",
        "gather.default",
        "index.Tensor",
        "index_select.default",
        "select.int",
        "slice.Tensor",
        "narrow.default",
        *("triu.default", "tril.default", "diagonal.default", "searchsorted.Tensor"),
        *("any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims"),
    )
)
"""Operations that need not read all of what they are given."""

_VIEWS = frozenset(
    f"aten.{name}"
    for name in (
        *("view.default", "_unsafe_view.default", "reshape.default", "flatten.using_ints"),
        *("permute.default", "transpose.int", "t.default", "unsqueeze.default"),
        *("squeeze.default", "squeeze.dim", "expand.default", "detach.default", "alias.default"),
    )
)
"""Operations that read nothing themselves."""

_COLD = (Role.INPUT, Role.PARAMETER)
"""Arguments that nobody has touched since the caches were emptied; states are put in place."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """The fastest that a kernel of one tier can be, in ms, and the ceiling that says so."""

    floor_ms: float
    ceiling: str

    def share(self, time_ms: float) -> float:
        """Floor / time: 1 is at the ceiling."""
        return self.floor_ms / time_ms


def compulsory_bytes(task: TaskDescription) -> int:
    """Bytes that must move: each output written once, each argument read once.

    Arguments that the reference does not use, or only looks up parts of, do not count; without a
    traced graph none does.
    """
    return sum(spec.nbytes for spec in (*_arguments(task), *task.signature.outputs))


def _arguments(task: TaskDescription) -> Iterator[TensorSpec]:
    read: set[str] = set()
    for node in reversed(task.graph):
        if node.op not in _LOOK_UPS and (node.op not in _VIEWS or node.name in read):
            read.update(_operands(node))
    return (spec for spec in task.signature.arguments if spec.name in read)


def _operands(node: Node) -> Iterator[str]:
    values: list[Any] = [*node.args, *(value for _, value in node.kwargs)]
    while values:
        value = values.pop()
        if isinstance(value, dict) and "node" in value:
            yield value["node"]
        elif isinstance(value, list | tuple):
            values += value


def roofline(task: TaskDescription, tier: Tier, ceilings: Ceilings) -> Roofline:
    """The larger of the memory floor and the arithmetic floor for ``tier``.

    The arithmetic ceiling is that of the fastest honest unit of the tier: for fp32 the better of
    plain FMA and three split tensor-core products; for a 16-bit task, whose tier fp32 means its own
    type, that of half products.
    """
    memory_ms = compulsory_bytes(task) / ceilings.bytes_per_s * 1e3
    memory = Roofline(memory_ms, f"memory {ceilings.bytes_per_s / 1e9:.0f} GB/s")
    if not task.flops:
        return memory
    unit, rate = ceilings.fastest(Tier.HALF if _is_half(task) else tier)
    compute = Roofline(task.flops / rate * 1e3, f"{unit} {rate / 1e12:.3g} TFLOP/s")
    return max(memory, compute, key=lambda line: line.floor_ms)


def _is_half(task: TaskDescription) -> bool:
    floats = {s.dtype for s in task.signature.arguments if "float" in s.dtype}
    return bool(floats) and floats <= {"float16", "bfloat16"}


def impossible(task: TaskDescription, time_ms: float, ceilings: Ceilings) -> str | None:
    """Why ``time_ms`` cannot be: below the compulsory bytes beyond the cache over the bandwidth.

    Outputs may be left in the cache, but where it is known how fast arguments come out of cold
    caches, nothing is faster than that. Returns None where the time is possible.
    """
    beyond = compulsory_bytes(task) - ceilings.cache_bytes
    floors = [(beyond, ceilings.bytes_per_s)]
    if ceilings.cold_bytes_per_s:
        given = sum(spec.nbytes for spec in _arguments(task) if spec.role in _COLD)
        floors.append((given - ceilings.private_bytes, ceilings.cold_bytes_per_s))
    moved, rate = max(floors, key=lambda floor: floor[0] / floor[1])
    floor_ms = moved / rate * 1e3
    if time_ms >= _HONEST_MARGIN * floor_ms:
        return None
    return (
        f"physics: {time_ms:.4g} ms is less than the {floor_ms:.4g} ms that moving {moved} "
        f"compulsory bytes takes at the measured {rate / 1e9:.0f} GB/s"
    )
