"""Under what conditions something was timed: clocks, heat and throttling, on record."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from cuda_sandbox.nvml import HARMLESS, Gpu, NvmlError, Reading, Watch

if TYPE_CHECKING:
    import torch

_STEADY = 0.98
"""The lowest clock under load as a share of the highest, from which on they count as steady."""


@dataclass(slots=True)
class Conditions:
    """Readings before, during and after a sitting; ``missing`` says why there are none."""

    missing: str = ""
    limits: dict[str, Any] = field(default_factory=dict)
    before: Reading | None = None
    during: Sequence[Reading] = ()
    after: Reading | None = None

    def as_json(self) -> dict[str, Any]:
        """For a certificate; ``summary`` is a line for people."""
        if self.missing:
            return {"summary": f"not run: {self.missing}"}
        return {
            "summary": self.summary(),
            "limits": self.limits,
            "before": _plain(self.before),
            "during": _spans(self.during),
            "after": _plain(self.after),
        }

    def summary(self) -> str:
        """The SM clock under load, and what held it down."""
        clocks = [one.sm_mhz for one in self.during if one.sm_mhz]
        if not clocks:
            return "not run: this GPU does not tell its clocks"
        span = f"{min(clocks)}" if min(clocks) == max(clocks) else f"{min(clocks)} to {max(clocks)}"
        most = self.limits.get("sm_mhz")
        text = f"SM clock {span} MHz" + (f" of {most}" if most else "")
        causes = sorted({why for one in self.during for why in one.reasons} - HARMLESS)
        if causes:
            return f"{text}, held down by: {', '.join(causes)}"
        steady = min(clocks) >= _STEADY * max(clocks)
        return f"{text}, {'steady' if steady else 'not steady'}, nothing held it down"


@contextlib.contextmanager
def on_record(device: torch.device, gpu: Callable[[str], Gpu] = Gpu) -> Iterator[Conditions]:
    """Within, the device is watched; afterwards the record is complete."""
    found = Conditions()
    try:
        watched = _gpu(device, gpu)
    except NvmlError as error:
        found.missing = str(error)
        yield found
        return
    found.limits = asdict(watched.limits())
    found.before = watched.read()
    with Watch(watched).running() as watch:
        yield found
    found.during = tuple(watch.readings)
    found.after = watched.read()


def _gpu(device: torch.device, gpu: Callable[[str], Gpu]) -> Gpu:
    import torch

    if device.type != "cuda":
        raise NvmlError("a CPU's clocks are not read")
    return gpu(f"GPU-{torch.cuda.get_device_properties(device).uuid}")


def _plain(reading: Reading | None) -> dict[str, Any] | None:
    return None if reading is None else {**asdict(reading), "reasons": list(reading.reasons)}


def _spans(readings: Sequence[Reading]) -> dict[str, Any]:
    """Lowest and highest of each figure, and every reason that was seen."""
    found: dict[str, Any] = {"readings": len(readings)}
    for name in ("sm_mhz", "memory_mhz", "temperature_c", "power_w"):
        values = [value for one in readings if (value := getattr(one, name)) is not None]
        found[name] = [min(values), max(values)] if values else None
    found["reasons"] = sorted({reason for one in readings for reason in one.reasons})
    return found
