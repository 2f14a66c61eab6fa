"""Matrix products, convolutions and attention in CUDA: every recipe is a kernel.

What needs a GPU (right answers, speed) is checked there; here templates render, ideas change the
code, and the compiler accepts what they make.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from operators.catalogue.render import TUNABLE, Recipe, read, render
from tests.operators.cuda_workbench import (
    Case,
    compile_errors,
    idle_ideas,
    kernel,
    needs_nvcc,
    random_recipe,
)


def named(names: str, *shapes: tuple[int, ...]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """As many of the one-letter names as there are shapes."""
    return tuple(zip(names, shapes, strict=False))


def product(
    m: int, n: int, k: int, dtype: str, *, turned: bool = False, bias: bool = False
) -> Case:
    sizes = {"batch": 1, "m": m, "n": n, "k": k, "trans_a": False, "trans_b": turned}
    names = {"a": "a", "b": "b", "bias": "c" if bias else None, "out": "out", "dtype": dtype}
    shapes = ((m, k), (n, k) if turned else (k, n), *(((n,),) if bias else ()))
    return Case("matmul", {**sizes, **names}, named("abc", *shapes), (m, n))


def convolution(pooled: bool, dtype: str = "float32", stride: int = 4) -> Case:
    side = (224 + 4 - 11) // stride + 1
    problem = {
        **{"x": "a", "weight": "b", "bias": "c", "out": "out", "dtype": dtype},
        **{"n": 2, "c": 3, "h": 224, "w": 224, "filters": 96, "kh": 11, "kw": 11},
        **{"oh": side, "ow": side, "pad_h": 2, "pad_w": 2, "stride_h": stride, "stride_w": stride},
    }
    tensors = named("abc", (2, 3, 224, 224), (96, 3, 11, 11), (96,))
    if not pooled:
        return Case("conv", problem, tensors, (2, 96, side, side))
    side = (side - 3) // 2 + 1
    pool = {
        "pool_h": 3,
        "pool_w": 3,
        "pool_stride_h": 2,
        "pool_stride_w": 2,
        "ph": side,
        "pw": side,
    }
    return Case("conv_block", {**problem, **pool}, tensors, (2, 96, side, side))


def attention(head: int, dtype: str, causal: bool = False) -> Case:
    problem = {
        **{"q": "q", "k": "k", "v": "v", "out": "out", "dtype": dtype, "heads": 3, "q_len": 200},
        **{"kv_len": 200, "head": head, "head_v": head, "scale": "0.125f", "causal": causal},
    }
    return Case("attention", problem, named("qkv", *((3, 200, head),) * 3), (3, 200, head))


CASES = {
    "matmul": product(4096, 4096, 4096, "float32"),
    "matmul half": product(4096, 4096, 4096, "float16"),
    "linear": product(100, 130, 2000, "float32", turned=True, bias=True),
    "uneven half": product(129, 70, 333, "float16"),
    "conv": convolution(pooled=False),
    "conv half": convolution(pooled=False, dtype="float16"),
    "conv of stride 1": convolution(pooled=False, stride=1),
    "conv block": convolution(pooled=True),
    "attention": attention(64, "float16"),
    "causal attention": attention(40, "float16", causal=True),
    "attention of floats": attention(64, "float32"),
}

BEST = {
    "matmul": "block_order split_warpgroups",
    "conv block": "async_copy vector_patch split_half occupancy",
    "attention": "lazy_rescale warpgroups",
}


@pytest.mark.parametrize("name", CASES)
def test_every_idea_changes_the_code(name: str) -> None:
    case = CASES[name]
    assert len(case.match.applicable()) >= 6
    assert idle_ideas(case) == []


@pytest.mark.parametrize("name", CASES)
def test_random_recipes_are_read_back_with_their_tunables(name: str) -> None:
    case, rng = CASES[name], random.Random(name)
    for _ in range(20):
        keys = list(case.match.applicable())
        rng.shuffle(keys)
        plain = kernel(case, keys[: rng.randrange(len(keys) + 1)])
        choices = {
            n: tail.split("tune:")[1].split() for _, n, _, tail in TUNABLE.findall(plain.source)
        }
        recipe = read(case.match, plain)
        assert recipe is not None
        assert choices
        values = {n: rng.choice(all_) for n, all_ in choices.items()}
        tuned = render(case.match, case.signature, Recipe(recipe.keys, values))
        again = read(case.match, tuned)
        assert again is not None
        assert again.keys == recipe.keys
        assert dict(again.values) == values


def test_depth_is_cut_only_where_the_result_is_too_small_to_fill_a_device() -> None:
    assert "split_k" in CASES["linear"].match.applicable()
    assert "split_k" not in CASES["matmul"].match.applicable()


def test_reduced_precision_is_never_offered_to_half_operands() -> None:
    for name in ("matmul half", "conv half"):
        assert not {"tf32", "tf32x3", "split_half"} & set(CASES[name].match.applicable())


@needs_nvcc
@pytest.mark.parametrize("name", BEST)
def test_the_best_recipes_compile(name: str, tmp_path: Path) -> None:
    source = kernel(CASES[name], BEST[name].split()).source
    assert compile_errors(CASES[name], source, tmp_path, "90a") == ""


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("arch", ["80", "89", "90a"])
@pytest.mark.parametrize("name", CASES)
def test_random_recipes_compile(name: str, arch: str, tmp_path: Path) -> None:
    case, rng = CASES[name], random.Random(f"{name}{arch}")
    keys, values = random_recipe(case, rng)
    source = kernel(case, keys, values).source
    assert compile_errors(case, source, tmp_path, arch) == "", (keys, values)
