"""What a certificate says of clocks and throttling."""

from __future__ import annotations

import torch

from cuda_sandbox.nvml import Limits, NvmlError, Reading
from fitness import conditions
from fitness.conditions import Conditions, on_record


def reading(sm_mhz, *reasons):
    return Reading(sm_mhz, 3201, 50, 400.0, reasons)


def test_on_a_cpu_the_record_says_why_it_is_empty():
    with on_record(torch.device("cpu")) as found:
        pass

    assert found.as_json() == {"summary": "not run: a CPU's clocks are not read"}


def test_steady_clocks_are_called_steady():
    found = Conditions(limits={"sm_mhz": 1980}, during=[reading(1980, "idle"), reading(1965)])

    assert found.summary() == "SM clock 1965 to 1980 MHz of 1980, steady, nothing held it down"


def test_what_held_the_clock_down_is_named():
    found = Conditions(during=[reading(1980), reading(1200, "software power cap", "idle")])

    assert found.summary() == "SM clock 1200 to 1980 MHz, held down by: software power cap"


class StandIn:
    """A GPU whose clock falls at each look."""

    def __init__(self, uuid):
        self.clock = 2000

    def limits(self):
        return Limits(2000, 3201, 700.0, "580.65.06")

    def read(self):
        self.clock -= 10
        return reading(self.clock)


def test_a_sitting_is_read_before_during_and_after(monkeypatch):
    monkeypatch.setattr(conditions, "_gpu", lambda device, gpu: gpu("GPU-1"))
    with on_record(torch.device("cuda"), StandIn) as found:
        pass

    told = found.as_json()
    assert told["before"]["sm_mhz"] == 1990
    assert told["during"]["readings"] >= 1
    assert told["after"]["sm_mhz"] < told["during"]["sm_mhz"][0] < 1990
    assert told["limits"]["driver"] == "580.65.06"


def test_a_machine_without_nvml_is_timed_all_the_same(monkeypatch):
    def refuses(device, gpu):
        raise NvmlError("no NVML: libnvidia-ml.so.1 is missing")

    monkeypatch.setattr(conditions, "_gpu", refuses)
    with on_record(torch.device("cuda")) as found:
        pass

    assert found.as_json()["summary"].startswith("not run: no NVML")
