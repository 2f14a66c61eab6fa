"""One tensor of a kernel's interface: its type, shape and role."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """Where an argument of the kernel comes from."""

    INPUT = "input"  # a tensor of get_inputs()
    PARAMETER = "parameter"
    BUFFER = "buffer"
    STATE = "state"  # a tensor the model keeps as a plain attribute
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class DType:
    """A tensor's element type: its size and its C++ spelling in each language."""

    name: str
    bytes: int
    spelling: dict[str, str]


DTYPES: dict[str, DType] = {
    name: DType(name, size, {"cpp": cpp, "cuda": cuda})
    for name, size, cpp, cuda in [
        ("float64", 8, "double", "double"),
        ("float32", 4, "float", "float"),
        ("float16", 2, "_Float16", "__half"),
        ("bfloat16", 2, "uint16_t", "__nv_bfloat16"),
        ("int64", 8, "int64_t", "int64_t"),
        ("int32", 4, "int32_t", "int32_t"),
        ("uint8", 1, "uint8_t", "uint8_t"),
        ("bool", 1, "bool", "bool"),
    ]
}


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One contiguous tensor of the interface; ``shape`` in elements, ``dtype`` a key of DTYPES."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: Role

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(
                f"tensor {self.name!r} has dtype {self.dtype}; "
                f"a kernel can take {', '.join(DTYPES)}"
            )

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.numel * DTYPES[self.dtype].bytes
