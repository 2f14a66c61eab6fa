"""Whether others are at work on a GPU, by what its driver tells."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from cuda_sandbox.nvml import NvmlError
from fitness import neighbours


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The rests that were taken."""
    rests: list[float] = []
    monkeypatch.setattr(neighbours.time, "sleep", rests.append)
    properties = SimpleNamespace(uuid="1")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    return rests


def seen(processes: int | None, shares: list[float | None]) -> bool:
    told = iter(shares)
    gpu = SimpleNamespace(processes=lambda: processes, busy=lambda: next(told))
    return neighbours.at_work(torch.device("cuda:0"), lambda _: gpu)  # type: ignore[arg-type]


def test_a_gpu_that_we_alone_have_open_needs_no_second_look(waited: list[float]) -> None:
    assert not seen(1, [])
    assert not waited


@pytest.mark.parametrize("processes", [2, 0, None])
def test_work_that_is_not_ours_is_seen_also_where_it_comes_and_goes(waited, processes) -> None:
    assert seen(processes, [0.0, 0.0, 0.3, 0.0])
    assert not seen(processes, [0.0, 0.0, 0.0, 0.0])
    assert waited[0] > 1.0, "our own work must have left the driver's last second"


def test_where_nothing_is_told_nobody_is_suspected(waited: list[float]) -> None:
    def missing(_: str) -> None:
        raise NvmlError("no NVML")

    assert not seen(None, [None] * 4)
    assert not neighbours.at_work(torch.device("cuda:0"), missing)  # type: ignore[arg-type]
