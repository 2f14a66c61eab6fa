"""What physics allows: compulsory bytes and operations over the ceilings of the device."""

from __future__ import annotations

from dataclasses import dataclass

from cuda_sandbox.signature import Signature
from fitness.evaluation import Tier
from fitness.hardware import Ceilings

_HONEST_MARGIN = 0.8
"""A one-way stream can beat the copy rate a little; below this share of the floor it is a cheat."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """The fastest that a kernel of one tier can be, in ms, and the ceiling that says so."""

    floor_ms: float
    ceiling: str

    def share(self, time_ms: float) -> float:
        """Floor / time: 1 is at the ceiling."""
        return self.floor_ms / time_ms


def compulsory_bytes(signature: Signature) -> int:
    """Bytes that must move: each argument read once, each output written once."""
    return sum(spec.nbytes for spec in signature.tensors)


def roofline(signature: Signature, flops: int | None, tier: Tier, ceilings: Ceilings) -> Roofline:
    """The larger of the memory floor and the arithmetic floor for ``tier``.

    ``flops`` counts multiply and add apart. The arithmetic ceiling is that of the fastest honest
    unit of the tier: for fp32 the better of plain FMA and three split tensor-core products.
    """
    memory_ms = compulsory_bytes(signature) / ceilings.bytes_per_s * 1e3
    memory = Roofline(memory_ms, f"memory {ceilings.bytes_per_s / 1e9:.3g} GB/s")
    if not flops:
        return memory
    unit, rate = ceilings.fastest(tier)
    compute = Roofline(flops / rate * 1e3, f"{unit} {rate / 1e12:.3g} TFLOP/s")
    return max(memory, compute, key=lambda line: line.floor_ms)


def impossible(signature: Signature, time_ms: float, ceilings: Ceilings) -> str | None:
    """Why ``time_ms`` cannot be: below the compulsory bytes beyond the cache over the bandwidth.

    Returns None where the time is possible.
    """
    moved = max(0, compulsory_bytes(signature) - ceilings.cache_bytes)
    floor_ms = moved / ceilings.bytes_per_s * 1e3
    if time_ms >= _HONEST_MARGIN * floor_ms:
        return None
    return (
        f"physics: {time_ms:.4g} ms is less than the {floor_ms:.4g} ms that moving {moved} "
        f"compulsory bytes takes at the measured {ceilings.bytes_per_s / 1e9:.0f} GB/s"
    )
