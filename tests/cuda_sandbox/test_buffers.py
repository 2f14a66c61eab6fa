from __future__ import annotations

import mmap
import os

import numpy as np
import pytest

from cuda_sandbox.buffers import HostBuffers
from cuda_sandbox.signature import Role, TensorSpec

TENSORS = (
    TensorSpec("x", "float32", (3, 5), Role.INPUT),
    TensorSpec("empty", "float32", (0, 4), Role.PARAMETER),
    TensorSpec("out", "float16", (1000,), Role.OUTPUT),
)


@pytest.fixture
def buffers():
    made = HostBuffers(TENSORS)
    yield made
    made.close()


def test_regions_are_the_tensors_bytes_aligned_and_writable(buffers) -> None:
    for tensor in TENSORS:
        array = np.asarray(buffers.region(tensor.name))
        assert array.shape == (tensor.nbytes,)
        assert array.ctypes.data % 256 == 0
        array[:] = 7
    assert buffers.damaged() == ()
    assert buffers.nbytes == 60 + 0 + 2000


def test_what_is_written_beside_a_tensor_is_found_and_repaired(buffers) -> None:
    before, after = buffers.guards("out")
    np.asarray(after)[0] ^= 1
    assert buffers.damaged() == ("out",)
    assert buffers.damaged() == ()
    np.asarray(before)[-1] ^= 1
    assert buffers.damaged() == ("out",)


def test_every_tensor_has_canaries_before_and_its_page_ends_soon_after(buffers) -> None:
    before, after = buffers.guards("x")
    assert before.nbytes >= 256
    assert after.nbytes < 256


def test_the_workspace_takes_the_size_that_is_asked_for(buffers) -> None:
    buffers.set_workspace(5000)
    np.asarray(buffers.region("workspace"))[:] = 1
    assert buffers.region("workspace").nbytes == 5000
    buffers.set_workspace(0)
    assert buffers.region("workspace").nbytes == 0


def test_only_outputs_and_the_workspace_can_be_mapped_for_writing(buffers) -> None:
    for handover, writable in zip(buffers.handovers(), (False, False, True, True), strict=True):
        assert handover.descriptor is not None
        if writable:
            mmap.mmap(handover.descriptor, mmap.PAGESIZE).close()
        else:
            with pytest.raises(PermissionError):
                mmap.mmap(handover.descriptor, mmap.PAGESIZE)
            with pytest.raises(PermissionError):
                os.pwrite(handover.descriptor, b"x", 0)


def test_nobody_can_shrink_what_the_judge_looks_at(buffers) -> None:
    descriptor = buffers.handovers()[2].descriptor
    with pytest.raises(PermissionError):
        os.ftruncate(descriptor, 0)


def test_an_array_outlives_the_buffers(buffers) -> None:
    array = np.asarray(buffers.region("x"))
    array[:] = 3
    buffers.close()
    assert array.sum() == 180


def test_an_unknown_tensor_is_a_key_error(buffers) -> None:
    with pytest.raises(KeyError):
        buffers.region("y")
