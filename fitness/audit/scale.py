"""Large tasks made smaller for an audit: constants that get_inputs() reads are set lower.

What an audit looks for (an output that does not depend on an input, an answer that costs no work)
is there at a batch of 8 as at one of 4096. The file itself is left alone: a copy gets lines at its
end that set the constants anew, which get_inputs() reads when it is called.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fitness.describe import describe_here
from fitness.description import TaskDescription
from fitness.errors import TaskError
from fitness.taskfile import TaskFile

_LEAST = 2  # a batch of 1 is a case of its own: some normalisations refuse it


@dataclass(frozen=True, slots=True)
class Limits:
    """What an audit may take: bytes of all tensors of the signature, operations of one call."""

    tensor_bytes: int
    flops: float

    def allow(self, description: TaskDescription) -> bool:
        """Whether a task of that description is small enough."""
        return self.excess(description) <= 1

    def excess(self, description: TaskDescription) -> float:
        """How many times too large it is."""
        size = tensor_bytes(description) / self.tensor_bytes
        return max(size, (description.flops or 0) / self.flops)


def tensor_bytes(description: TaskDescription) -> int:
    """Bytes of all inputs, parameters and outputs."""
    return sum(spec.nbytes for spec in description.signature.tensors)


@dataclass(frozen=True)
class Smaller:
    """A smaller copy of a task. ``sizes`` say what was set, as ``rows = 8 of 512``."""

    path: Path
    description: TaskDescription
    sizes: tuple[str, ...]


def smaller(
    path: Path, description: TaskDescription, limits: Limits, folder: Path
) -> Smaller | None:
    """A copy in ``folder`` within ``limits``; None if its constants do not lead there."""
    source = description.source
    found = description
    values = _constants(path)
    chosen: dict[str, int] = {}
    copy = folder / path.name
    for name, value in values.items():
        for less in _candidates(value, limits.excess(found)):
            copy.write_text(source + _lines({**chosen, name: less}), encoding="utf-8")
            with contextlib.suppress(TaskError):
                tried = describe_here(copy)
                if limits.excess(tried) < limits.excess(found):
                    chosen[name], found = less, tried
            if limits.allow(found):
                break
        if limits.allow(found):
            copy.write_text(source + _lines(chosen), encoding="utf-8")
            said = tuple(f"{key} = {chosen[key]} of {values[key]}" for key in chosen)
            return Smaller(copy, found, said)
    return None


def _lines(values: dict[str, int]) -> str:
    return "\n\n" + "".join(f"{name} = {value}\n" for name, value in values.items())


def _candidates(value: int, excess: float) -> Iterator[int]:
    """Powers of two that serve if the cost grows as its cube, its square, and as itself."""
    for root in (3, 2, 1):
        less = int(value / excess ** (1 / root))
        if less < value:
            yield max(_LEAST, 1 << max(0, less.bit_length() - 1))


def _constants(path: Path) -> dict[str, int]:
    """The module's whole numbers that get_inputs() reads; those that the model needs too, last."""
    module = TaskFile.read(path).module
    names = _names(getattr(module, "get_inputs", None))
    shared = set(_names(getattr(module, "get_init_inputs", None)))
    order = [name for name in names if name not in shared] + [n for n in names if n in shared]
    values = {name: getattr(module, name, None) for name in order}
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, int) and not isinstance(value, bool) and value > _LEAST
    }


def _names(function: object) -> tuple[str, ...]:
    code = getattr(function, "__code__", None)
    return code.co_names if isinstance(code, types.CodeType) else ()
