"""Which devices a run gets."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from cuda_sandbox import devices, driver
from cuda_sandbox.driver import CudaDevice
from cuda_sandbox.errors import UserError
from evo import machine
from evo.machine import DeviceMissing, survey

H200 = CudaDevice(
    0,
    "NVIDIA H200",
    "GPU-1",
    9,
    0,
    132,
    60 << 20,
    227 << 10,
    139 << 30,
    driver="580.65.06",
    clock_khz=1_980_000,
    memory_clock_khz=3_201_000,
    bus_bits=6144,
)
L40S = CudaDevice(
    0, "NVIDIA L40S", "GPU-2", 8, 9, 142, 96 << 20, 99 << 10, 44 << 30, driver="580.65.06"
)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> list[CudaDevice]:
    there: list[CudaDevice] = []
    monkeypatch.setattr(machine, "gpus", lambda: tuple(there))
    return there


def test_auto_is_every_gpu_and_else_the_cpu(gpus: list[CudaDevice]) -> None:
    assert survey("auto", None, None).language == "cpp"
    gpus += [H200, H200]
    found = survey("auto", None, None)
    assert (found.devices, found.language) == (("cuda:0", "cuda:1"), "cuda")
    assert (found.hardware, found.arch) == ("NVIDIA H200", "sm_90a")
    assert "132 SMs, 64 K registers each" in found.facts
    assert "NVIDIA H200, compute capability 9.0 (sm_90a)" in found.facts
    assert "227 KB shared memory per block" in found.facts


def test_peaks_follow_from_clocks_and_widths(gpus: list[CudaDevice]) -> None:
    gpus.append(H200)
    peak = survey("auto", None, None).peak
    assert peak
    assert peak.bytes_per_s == pytest.approx(4.92e12, rel=0.01)
    assert peak.fp32 == pytest.approx(66.9e12, rel=0.01)  # the data sheet says 67
    assert peak.half == pytest.approx(989e12, rel=0.09)  # at the lower clock of the data sheet
    gpus[0] = L40S  # whose clocks we were not told
    assert survey("auto", None, None).peak is None
    assert survey("cpu", None, None).peak is None


def test_the_cpus_name_says_how_many_threads_kernels_get(monkeypatch: pytest.MonkeyPatch) -> None:
    four = replace(devices.cpu(), cores=4)
    monkeypatch.setattr(devices, "cpu", lambda: four)
    found = survey("cpu", None, 3)
    assert found.hardware.endswith(", 3 threads")
    assert (found.threads, found.arch) == (3, "native")
    assert survey(["cpu"], None, 1).hardware.endswith(", 1 thread")
    with pytest.raises(UserError, match=r"cpu.threads: 999: this process may use 4 cores; write"):
        survey("cpu", None, 999)


def test_a_device_that_is_not_here_is_waited_for(gpus: list[CudaDevice]) -> None:
    gpus.append(H200)
    with pytest.raises(DeviceMissing, match=r"cuda:1 is not here; .* has cuda:0 \(NVIDIA H200\)"):
        survey(["cuda:0", "cuda:1"], None, None)
    assert DeviceMissing.exit_code == 4


def test_another_gpu_than_the_required_is_refused_with_the_way_round(
    gpus: list[CudaDevice],
) -> None:
    with pytest.raises(DeviceMissing, match="require: L40S: this machine has no GPU"):
        survey("auto", "L40S", None)
    gpus.append(H200)
    with pytest.raises(DeviceMissing, match=r"cuda:0 is NVIDIA H200. .* --set require=null"):
        survey("auto", "L40S", None)
    gpus[:] = [L40S]
    assert survey("auto", "l40s", None).arch == "sm_89"


def test_a_required_gpu_is_not_forgotten_on_the_cpu() -> None:
    with pytest.raises(UserError, match=r"require: L40S: .* devices is cpu"):
        survey("cpu", "L40S", None)


def test_devices_of_several_kinds_are_not_mixed(gpus: list[CudaDevice]) -> None:
    gpus += [H200, L40S]
    with pytest.raises(UserError, match="take devices of one kind"):
        survey("auto", None, None)
    assert survey("cuda:1", None, None).hardware == "NVIDIA L40S"


def test_a_machine_shows_as_many_gpus_as_its_driver_counts() -> None:
    assert len(machine.gpus()) == driver.count()


def test_a_driver_that_fails_is_a_message_and_not_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(UserError, match="the CUDA driver cannot be asked"):
        machine.gpus()
