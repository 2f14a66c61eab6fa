"""The bottleneck report: what a kernel is bound by, in words that fit into a prompt."""

from __future__ import annotations

import pytest

from cuda_sandbox.profiler import Launch, Profile
from cuda_sandbox.report import Status
from fitness.bottleneck import Bottleneck, bound_by
from fitness.evaluation import Evaluation, Interval
from fitness.profile import boiled_down
from fitness.roofline import Roofline

LINE = Roofline(0.5, "memory 4120 GB/s")
VERDICT = Evaluation(Status.OK, time_ms=Interval(1.0, 1.0, 1.0), roofline_share=0.5)


def launch(name="rows", ms=0.9, **busy):
    stalls = {"long_scoreboard": 61.0, "wait": 20.0, "barrier": 10.0, "membar": 1.0}
    return Launch(name, ms, busy, stalls, (62.0, 75.0), "registers")


def test_the_report_in_full():
    rows = launch(dram=91.0, l2=48.0, sm=31.0)
    profile = Profile((rows, launch("sums", 0.1, dram=5.0)))

    assert boiled_down(profile, LINE, VERDICT, 2_000_000_000).lines() == [
        "bound by dram (rows, 90% of the time)",
        "% of peak: dram 91, l2 48, sm 31",
        "occupancy: 62% of 75% possible (limited by registers)",
        "warps wait for: long scoreboard 61% (global or local memory), "
        "wait 20% (fixed latency of arithmetic), barrier 10% (__syncthreads)",
        "roofline: 50% of memory 4120 GB/s",
        "2000 MB must move: 2000 GB/s as it is; floor 0.5 ms of 1 ms",
        "other functions: sums 10%",
    ]


@pytest.mark.parametrize(
    ("busy", "bound"),
    [
        ({"dram": 80.0, "tensor": 30.0}, "dram"),
        ({"dram": 62.0, "l2": 73.0}, "dram"),
        ({"dram": 20.0, "tensor": 75.0}, "tensor"),
        ({"shared": 88.0, "l2": 62.0}, "shared"),
        ({"dram": 40.0, "fma": 35.0, "sm": 90.0}, "latency"),
        ({}, "latency"),
    ],
)
def test_a_kernel_is_bound_by_its_busiest_unit_if_that_is_busy(busy, bound):
    assert bound_by(busy) == bound


def test_launches_of_one_function_are_weighed_by_their_time():
    profile = Profile((launch(ms=3.0, dram=90.0), launch(ms=1.0, dram=50.0)))

    assert boiled_down(profile, LINE, VERDICT, 0).busy == {"dram": 80.0}


def test_where_there_is_no_profile_the_roofline_stands_and_the_reason_is_told():
    found = boiled_down(Profile(missing="no CUDA device"), LINE, VERDICT, 0)

    assert found.bound == ""
    assert found.lines() == [
        "roofline: 50% of memory 4120 GB/s",
        "profile not run: no CUDA device",
    ]


def test_a_report_is_never_longer_than_ten_lines():
    assert len(Bottleneck(bound="dram", notes=tuple("abcdefghijklmnop")).lines()) == 10
