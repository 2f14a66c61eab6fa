"""NVML through a stand-in for its library: what is read, what is missing, what is told."""

from __future__ import annotations

import pytest

from cuda_sandbox.nvml import Gpu, NvmlError, Watch


class Library:
    """Answers like libnvidia-ml; ``old``: of a driver before the reasons were renamed."""

    def __init__(self, reasons=0, old=False, known=True):
        self._reasons, self._known = reasons, known
        name = "Throttle" if old else "Event"
        setattr(self, f"nvmlDeviceGetCurrentClocks{name}Reasons", self._give(reasons))

    @staticmethod
    def _give(value):
        def call(_handle, *arguments):
            arguments[-1]._obj.value = value
            return 0

        return call

    def nvmlDeviceGetHandleByUUID(self, uuid, handle):  # noqa: N802  # NVML's names
        return 0 if self._known else 6

    def nvmlDeviceGetClockInfo(self, handle, kind, value):  # noqa: N802
        value._obj.value = {1: 1980, 2: 3201}[kind.value]
        return 0

    def nvmlDeviceGetPowerUsage(self, handle, value):  # noqa: N802
        value._obj.value = 431_500
        return 0

    def nvmlDeviceGetTemperature(self, handle, sensor, value):  # noqa: N802
        return 3  # not supported

    def nvmlDeviceGetMaxClockInfo(self, handle, kind, value):  # noqa: N802
        value._obj.value = {1: 1980, 2: 3201}[kind.value]
        return 0

    def nvmlDeviceGetEnforcedPowerLimit(self, handle, value):  # noqa: N802
        value._obj.value = 700_000
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle, count, infos):  # noqa: N802
        count._obj.value = 3
        return 7  # there is no room for what would be told of each

    def nvmlDeviceGetUtilizationRates(self, handle, shares):  # noqa: N802
        shares._obj[:] = [42, 7]
        return 0

    def nvmlSystemGetDriverVersion(self, text, size):  # noqa: N802
        text.value = b"580.65.06"
        return 0


@pytest.mark.parametrize("old", [False, True])
def test_clocks_power_and_what_holds_them_down_are_read(old):
    reading = Gpu("GPU-1", lambda: Library(reasons=0x4 | 0x40, old=old)).read()

    assert (reading.sm_mhz, reading.memory_mhz, reading.power_w) == (1980, 3201, 431.5)
    assert reading.reasons == ("software power cap", "hardware thermal slowdown")


def test_a_figure_that_the_gpu_does_not_tell_is_none_and_the_others_stand():
    gpu = Gpu("GPU-1", Library)

    assert gpu.read().temperature_c is None
    assert gpu.limits().sm_mhz == 1980
    assert gpu.limits().driver == "580.65.06"


def test_who_else_has_the_gpu_open_and_how_busy_it_is_are_told():
    gpu = Gpu("GPU-1", Library)

    assert gpu.processes() == 3
    assert gpu.busy() == 0.42


def test_a_gpu_that_nobody_has_open_and_one_that_does_not_tell_are_told_apart(monkeypatch):
    name = "nvmlDeviceGetComputeRunningProcesses_v3"
    monkeypatch.setattr(Library, name, lambda *_: 0)
    assert Gpu("GPU-1", Library).processes() == 0

    monkeypatch.setattr(Library, name, lambda *_: 3)
    monkeypatch.setattr(Library, "nvmlDeviceGetUtilizationRates", lambda *_: 3)
    assert Gpu("GPU-1", Library).processes() is None
    assert Gpu("GPU-1", Library).busy() is None


def test_a_gpu_that_is_not_there_is_told_with_the_call_that_failed():
    with pytest.raises(NvmlError, match=r"nvmlDeviceGetHandleByUUID failed: 6"):
        Gpu("GPU-2", lambda: Library(known=False))


def test_without_a_driver_the_reason_is_told():
    with pytest.raises(NvmlError, match="NVML"):
        Gpu("GPU-of-nobody")


def test_a_watch_reads_at_least_once_and_stops_with_its_block():
    watch = Watch(Gpu("GPU-1", Library), period_s=0.001)

    with watch.running():
        pass
    seen = len(watch.readings)

    assert seen >= 1
    assert len(watch.readings) == seen
