"""The kernel's signature: which tensors it gets, in which order, and the header that says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cuda_sandbox.header import identifiers, parameters, render
from cuda_sandbox.tensor import DTYPES, DType, Role, TensorSpec

__all__ = ["DTYPES", "DType", "Role", "Signature", "TensorSpec"]


@dataclass(frozen=True, slots=True)
class Signature:
    """A task's kernel interface: arguments in call order, then outputs.

    ``defines`` are ``(NAME, C literal)`` for Python numbers among the inputs; the dimensions'
    ``X_D0`` macros are made by the header itself. ``notes`` are comment lines for the header:
    the constructor's arguments and the modules' numeric settings.
    """

    title: str
    arguments: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    defines: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [tensor.name for tensor in self.tensors]
        double = sorted({name for name in names if names.count(name) > 1})
        if double:
            raise ValueError(
                f"two tensors of the signature are called {double[0]!r}; "
                "make their names differ with cuda_sandbox.header.identifiers()"
            )

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """Arguments, then outputs."""
        return self.arguments + self.outputs

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The C names of ``tensors`` in the header, in the same order."""
        return identifiers(tensor.name for tensor in self.tensors)

    def header(self, language: str) -> str:
        """The C++ text that is included before a candidate in ``language``.

        Raises:
            ValueError: ``language`` has no spelling of the tensors' types.
        """
        return render(self.title, self.tensors, language, self.defines, self.notes)

    def parameters(self, language: str) -> list[str]:
        """The parameters of ``launch`` as the header declares them."""
        return parameters(self.tensors, language)

    def to_dict(self) -> dict[str, Any]:
        """The signature as JSON values; ``from_dict`` reads them back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Signature:
        """A signature from what ``to_dict`` made, also after a trip through JSON."""
        return cls(
            title=data["title"],
            arguments=_specs(data["arguments"]),
            outputs=_specs(data["outputs"]),
            defines=tuple((name, literal) for name, literal in data["defines"]),
            notes=tuple(data["notes"]),
        )


def _specs(items: Iterable[Mapping[str, Any]]) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(item["name"], item["dtype"], tuple(item["shape"]), Role(item["role"]))
        for item in items
    )
