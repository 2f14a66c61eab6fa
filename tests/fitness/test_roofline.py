from cuda_sandbox.signature import Role, Signature, TensorSpec
from fitness.evaluation import Tier
from fitness.hardware import Ceilings
from fitness.roofline import compulsory_bytes, impossible, roofline

MIB = 1 << 20
COPY = Signature(
    "copy",
    (TensorSpec("x", "float32", (64 * MIB,), Role.INPUT),),
    (TensorSpec("out", "float32", (64 * MIB,), Role.OUTPUT),),
)
GPU = Ceilings(bytes_per_s=4e12, cache_bytes=50 * MIB, fp32=50e12, tf32=360e12, half=700e12)


def test_each_argument_and_output_must_move_once():
    assert compulsory_bytes(COPY) == 512 * MIB


def test_a_memory_bound_task_is_held_against_the_bandwidth():
    line = roofline(COPY, 10, Tier.FP32, GPU)

    assert line.ceiling == "memory 4e+03 GB/s"
    assert line.share(2 * line.floor_ms) == 0.5


def test_a_compute_bound_task_names_the_fastest_unit_of_its_tier():
    flops = 10**15

    assert "half tensor cores / 3" in roofline(COPY, flops, Tier.FP32, GPU).ceiling
    assert "tf32 tensor cores" in roofline(COPY, flops, Tier.TF32, GPU).ceiling
    assert "half tensor cores" in roofline(COPY, flops, Tier.HALF, GPU).ceiling


def test_without_tensor_cores_every_tier_is_held_against_plain_arithmetic():
    cpu = Ceilings(bytes_per_s=1e10, cache_bytes=MIB, fp32=1e11)

    assert all("fp32" in roofline(COPY, 10**12, tier, cpu).ceiling for tier in Tier)


def test_a_time_below_what_moving_the_bytes_takes_is_named_a_cheat():
    assert "physics" in (impossible(COPY, 0.001, GPU) or "")


def test_a_time_that_the_cache_explains_is_possible():
    small = Signature("s", (TensorSpec("x", "float32", (MIB,), Role.INPUT),), ())

    assert impossible(small, 1e-6, GPU) is None


def test_an_honest_time_at_the_bandwidth_is_possible():
    assert impossible(COPY, 512 * MIB / 4e12 * 1e3, GPU) is None
