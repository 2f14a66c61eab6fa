"""Which devices a run gets."""

from __future__ import annotations

import pytest

from cuda_sandbox.errors import UserError
from evo import machine
from evo.machine import DeviceMissing, Gpu, survey

H200 = Gpu("NVIDIA H200", 9, 0, 132, 227 << 10, 60 << 20, 139 << 30)
L40S = Gpu("NVIDIA L40S", 8, 9, 142, 99 << 10, 96 << 20, 44 << 30)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> list[Gpu]:
    there: list[Gpu] = []
    monkeypatch.setattr(machine, "gpus", lambda: tuple(there))
    return there


def test_auto_is_every_gpu_and_else_the_cpu(gpus: list[Gpu]) -> None:
    assert survey("auto", None, None).language == "cpp"
    gpus += [H200, H200]
    found = survey("auto", None, None)
    assert (found.devices, found.language) == (("cuda:0", "cuda:1"), "cuda")
    assert (found.hardware, found.arch) == ("NVIDIA H200", "sm_90a")
    assert "132 SMs, 64 K registers each" in found.facts


def test_the_cpus_name_says_how_many_threads_kernels_get() -> None:
    found = survey("cpu", None, 3)
    assert found.hardware.endswith(", 3 threads")
    assert (found.threads, found.arch) == (3, "native")
    assert survey(["cpu"], None, 1).hardware.endswith(", 1 thread")


def test_a_device_that_is_not_here_is_waited_for(gpus: list[Gpu]) -> None:
    gpus.append(H200)
    with pytest.raises(DeviceMissing, match=r"cuda:1 is not here; .* has cuda:0 \(NVIDIA H200\)"):
        survey(["cuda:0", "cuda:1"], None, None)
    assert DeviceMissing.exit_code == 4


def test_another_gpu_than_the_required_is_refused_with_the_way_round(gpus: list[Gpu]) -> None:
    with pytest.raises(DeviceMissing, match="require: L40S: this machine has no GPU"):
        survey("auto", "L40S", None)
    gpus.append(H200)
    with pytest.raises(DeviceMissing, match=r"cuda:0 is NVIDIA H200. .* --set require=null"):
        survey("auto", "L40S", None)
    gpus[:] = [L40S]
    assert survey("auto", "l40s", None).arch == "sm_89"


def test_devices_of_several_kinds_are_not_mixed(gpus: list[Gpu]) -> None:
    gpus += [H200, L40S]
    with pytest.raises(UserError, match="take devices of one kind"):
        survey("auto", None, None)
    assert survey("cuda:1", None, None).hardware == "NVIDIA L40S"


def test_a_machine_is_asked_without_a_driver() -> None:
    assert isinstance(machine.gpus(), tuple)
