"""This machine's devices as a run needs them, found without PyTorch.

CUDA's driver is asked in a process of its own: once loaded it would stay in the engine's memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from cuda_sandbox import devices as host
from cuda_sandbox.children import environment
from cuda_sandbox.driver import CudaDevice
from cuda_sandbox.errors import UserError
from fitness.hardware import Ceilings


class DeviceMissing(UserError):
    """A device that the run needs is not here."""

    exit_code = 4


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a run's kernels are judged.

    ``hardware`` is the name that figures carry, ``arch`` what the compiler builds for, ``facts``
    are lines for authors, ``peak`` what clocks and widths allow at most, if known; ``threads`` is
    what CPU kernels get.
    """

    devices: tuple[str, ...]
    language: str
    hardware: str
    arch: str
    facts: tuple[str, ...]
    threads: int | None = None
    peak: Ceilings | None = None


# FLOP that one SM ends in a clock: fp32 FMA, and dense half products summed in fp32
_FLOP_PER_CLOCK = {
    (8, 0): (128, 2048),
    (8, 6): (256, 1024),
    (8, 9): (256, 1024),
    (9, 0): (256, 4096),
    (10, 0): (256, 8192),
    (12, 0): (256, 1024),
}


def survey(devices: str | Sequence[str], require: str | None, threads: int | None) -> Machine:
    """The machine with the ``devices`` of a configuration (``auto``: every GPU, else the CPU).

    ``require`` must be a part of each GPU's name. Raises DeviceMissing, and UserError where the
    devices are of several kinds, where it is the CPU that is to be a GPU, or has too few cores.
    """
    wanted = [devices] if isinstance(devices, str) else list(devices)
    if wanted == ["cpu"]:
        if require:
            raise UserError(f"require: {require}: that is a GPU's, and devices is cpu: drop one")
        return _cpu(threads)
    found = gpus()
    if wanted == ["auto"]:
        if not found and require:
            raise DeviceMissing(f"require: {require}: this machine has no GPU")
        wanted = [f"cuda:{index}" for index in range(len(found))]
    return _gpus(wanted, found, require) if wanted else _cpu(threads)


def _cpu(threads: int | None) -> Machine:
    cpu = host.cpu()
    if threads is not None and threads > cpu.cores:
        raise UserError(
            f"cpu.threads: {threads}: this process may use {cpu.cores} cores; write "
            f"{cpu.cores} or less, or null for all of them (--set cpu.threads=null)"
        )
    count = threads or cpu.cores
    hardware = cpu.described(count)
    facts = (
        hardware,
        f"{cpu.cache_bytes >> 20} MiB last-level cache",
        f"vector extensions: {', '.join(cpu.simd) or 'none'}",
    )
    return Machine(("cpu",), "cpp", hardware, "native", facts, count)


def _gpus(wanted: Sequence[str], found: Sequence[CudaDevice], require: str | None) -> Machine:
    numbered = [name if ":" in name else f"{name}:0" for name in wanted]
    chosen = []
    for name in numbered:
        index = int(name.partition(":")[2])
        if index >= len(found):
            there = ", ".join(f"cuda:{i} ({gpu.name})" for i, gpu in enumerate(found))
            raise DeviceMissing(f"{name} is not here; this machine has {there or 'no GPU'}")
        chosen.append(found[index])
        if require and require.lower() not in found[index].name.lower():
            raise DeviceMissing(
                f"require: {require}: {name} is {found[index].name}. To run on it all the same: "
                f"--set require=null"
            )
    if len({gpu.name for gpu in chosen}) > 1:
        names = ", ".join(
            f"{name} ({gpu.name})" for name, gpu in zip(numbered, chosen, strict=True)
        )
        raise UserError(f"a run's times must be comparable: take devices of one kind, not {names}")
    gpu = chosen[0]
    return Machine(tuple(numbered), "cuda", gpu.name, gpu.arch, _facts(gpu), peak=peak(gpu))


def _facts(gpu: CudaDevice) -> tuple[str, ...]:
    """What an author should know of a GPU, a line each."""
    return (
        f"{gpu.name}, compute capability {gpu.major}.{gpu.minor} ({gpu.arch})",
        f"{gpu.sms} SMs, 64 K registers each",
        f"{gpu.shared_bytes >> 10} KB shared memory per block",
        f"{gpu.l2_bytes >> 20} MiB L2 cache",
        f"{gpu.memory_bytes >> 30} GiB device memory",
    )


def peak(gpu: CudaDevice) -> Ceilings | None:
    """What a GPU's clocks and widths allow at most; None for one that we have no figures of."""
    per_clock = _FLOP_PER_CLOCK.get((gpu.major, gpu.minor))
    if per_clock is None or not gpu.clock_khz or not gpu.memory_clock_khz:
        return None
    clocks = gpu.sms * gpu.clock_khz * 1e3
    fp32, half = (clocks * flop for flop in per_clock)
    # two transfers in a clock, as the driver counts clocks
    bytes_per_s = 2e3 * gpu.memory_clock_khz * gpu.bus_bits / 8
    return Ceilings(bytes_per_s, gpu.l2_bytes, fp32, tf32=half / 2, half=half)


def gpus() -> tuple[CudaDevice, ...]:
    """The CUDA devices that the driver shows; none without a driver."""
    command = [sys.executable, "-P", "-m", "cuda_sandbox.driver"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=True, env=environment()
        )
    except subprocess.CalledProcessError as error:
        raise UserError(f"the CUDA driver cannot be asked: {error.stderr.strip()}") from error
    except subprocess.TimeoutExpired as error:
        raise UserError("the CUDA driver cannot be asked: no answer within 60 s") from error
    return tuple(CudaDevice(**gpu) for gpu in json.loads(done.stdout))
