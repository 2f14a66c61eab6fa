from dataclasses import replace

from cuda_sandbox.signature import Role, Signature, TensorSpec
from fitness.description import Node, TaskDescription
from fitness.evaluation import Tier
from fitness.hardware import Ceilings
from fitness.roofline import compulsory_bytes, impossible, roofline

MIB = 1 << 20


def copy_of(elements, op="aten.clone.default", flops=0, dtype="float32"):
    x = TensorSpec("x", dtype, (elements,), Role.INPUT)
    out = TensorSpec("out", "float32", (elements,), Role.OUTPUT)
    graph = (Node("x", "input"), Node("y", op, ({"node": "x"},)))
    return TaskDescription("copy", "", Signature("copy", (x,), (out,)), graph, flops)


COPY = copy_of(64 * MIB)
GPU = Ceilings(bytes_per_s=4e12, cache_bytes=50 * MIB, fp32=50e12, tf32=360e12, half=700e12)


def test_each_argument_and_output_must_move_once():
    assert compulsory_bytes(COPY) == 512 * MIB


def test_a_memory_bound_task_is_held_against_the_bandwidth():
    line = roofline(COPY, Tier.FP32, GPU)

    assert line.ceiling == "memory 4000 GB/s"
    assert line.share(2 * line.floor_ms) == 0.5


def test_a_compute_bound_task_names_the_fastest_unit_of_its_tier():
    task = copy_of(64 * MIB, flops=10**15)

    assert "half tensor cores / 3" in roofline(task, Tier.FP32, GPU).ceiling
    assert roofline(task, Tier.TF32, GPU).ceiling.startswith("half tensor cores 7")
    assert "half tensor cores" in roofline(task, Tier.HALF, GPU).ceiling


def test_without_tensor_cores_every_tier_is_held_against_plain_arithmetic():
    cpu = Ceilings(bytes_per_s=1e10, cache_bytes=MIB, fp32=1e11)

    task = copy_of(64 * MIB, flops=10**12)

    assert all("fp32" in roofline(task, tier, cpu).ceiling for tier in Tier)


def test_a_time_below_what_moving_the_bytes_takes_is_named_a_cheat():
    assert "physics" in (impossible(COPY, 0.001, GPU) or "")


def test_a_time_that_the_cache_explains_is_possible():
    assert impossible(copy_of(MIB), 1e-6, GPU) is None


CPU = Ceilings(
    bytes_per_s=2e10, cache_bytes=32 * MIB, fp32=1e11, cold_bytes_per_s=3e10, private_bytes=MIB
)


def test_what_was_given_comes_from_memory_even_where_a_cache_could_hold_all_of_it():
    assert "3145728 compulsory bytes" in (impossible(copy_of(MIB), 0.05, CPU) or "")
    assert impossible(copy_of(MIB), 0.1, CPU) is None, "the output may stay in the cache"


def test_what_the_cores_own_caches_may_hold_is_not_held_against_anybody():
    assert impossible(copy_of(MIB // 4), 1e-6, CPU) is None


def test_states_are_put_in_their_places_right_before_a_call_and_are_warm():
    given = copy_of(MIB)
    state = TensorSpec("x", "float32", (MIB,), Role.STATE)
    warm = replace(given, signature=Signature("copy", (state,), given.signature.outputs))

    assert impossible(warm, 0.01, CPU) is None


def test_a_part_of_a_view_is_a_part():
    view = Node("y", "aten.view.default", ({"node": "x"}, [-1]))
    part = Node("z", "aten.slice.Tensor", ({"node": "y"}, 0, 0, 9))
    task = replace(copy_of(64 * MIB), graph=(Node("x", "input"), view, part))
    whole = replace(task, graph=(*task.graph[:2], Node("out", "output", ({"node": "y"},))))

    assert compulsory_bytes(task) == 256 * MIB
    assert compulsory_bytes(whole) == 512 * MIB


def test_a_table_that_is_only_looked_up_need_not_be_read_whole():
    lookup = copy_of(64 * MIB, op="aten.embedding.default")

    assert compulsory_bytes(lookup) == 256 * MIB


def test_an_honest_time_at_the_bandwidth_is_possible():
    assert impossible(COPY, 512 * MIB / 4e12 * 1e3, GPU) is None


def test_a_half_precision_task_is_held_against_half_products_whatever_the_tier_is_called():
    task = copy_of(64 * MIB, flops=10**15, dtype="float16")

    assert roofline(task, Tier.FP32, GPU).ceiling == "half tensor cores 700 TFLOP/s"
