"""A device's pulse, on a device that is made up."""

import pytest
import torch

from fitness.pulse import DeviceSick, Pulse, _expected


class Made(Pulse):
    """Beats take what they are told to, the last of it again and again."""

    def __init__(self, *times_ms, answer=None):
        self._device = torch.device("cuda:0")
        self._rounds = 3
        self._times = list(times_ms)
        self._answer = answer
        self.usual_ms = 5.0

    def _run(self):
        if self._times[0] is None:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        elapsed = self._times.pop(0) if len(self._times) > 1 else self._times[0]
        return elapsed, _expected(3) if self._answer is None else self._answer


def test_the_answer_known_on_the_host_is_that_of_the_work():
    work = torch.arange(8 << 20, dtype=torch.int32)
    for _ in range(3):
        work.mul_(1664525).add_(1013904223)

    assert int(work.sum(dtype=torch.int64)) == _expected(3)


def test_a_device_that_is_as_it_was_is_neither_sick_nor_disturbed():
    pulse = Made(5.1, 30.0, 5.0)
    pulse.prove()
    assert not pulse.disturbed()


def test_one_slow_beat_says_nothing_but_slow_ones_again_and_again_do():
    assert not Made(11.0, 5.0).disturbed()
    assert Made(11.0).disturbed()


def test_a_device_that_became_slow_is_sick():
    with pytest.raises(DeviceSick, match="known work takes 9 ms, before 5 ms"):
        Made(9.0).prove()
    with pytest.raises(DeviceSick, match="before 3 ms"):
        Made(5.0).prove(usual_ms=3.0)


def test_a_device_that_computes_wrongly_or_fails_is_sick():
    with pytest.raises(DeviceSick, match="cuda:0 computes wrongly"):
        Made(5.0, answer=41).prove()
    with pytest.raises(DeviceSick, match=r"fails on work of ours: .*illegal memory access"):
        Made(None).prove()
