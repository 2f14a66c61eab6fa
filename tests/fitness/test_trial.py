"""A trial on a device that is still busy when the kernel has answered."""

import random

import pytest
import torch

from cuda_sandbox.report import CandidateFailure, Status
from fitness.pulse import DeviceShared
from fitness.trial import Trial


class Worker:
    closed = False

    def close(self):
        self.closed = True


class Arena:
    device = torch.device("cuda:0")


class Pulse:
    """Disturbed while ``worker`` lives, or always."""

    def __init__(self, worker, always):
        self.worker = worker
        self.always = always

    def disturbed(self):
        return self.always or not self.worker.closed


def look(always):
    worker = Worker()
    trial = Trial(worker, Arena(), random.Random(1), 1, Pulse(worker, always))
    for _ in range(100):
        trial._look_at_device()


def test_a_device_that_is_busy_with_the_kernel_gives_it_away():
    with pytest.raises(CandidateFailure, match="still at work after launch's work") as caught:
        look(always=False)
    assert caught.value.status is Status.HACK


def test_a_device_that_others_use_says_nothing_about_the_kernel():
    with pytest.raises(DeviceShared, match="cuda:0 is kept busy by something else"):
        look(always=True)
