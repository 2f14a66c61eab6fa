"""The building blocks that prompts give away: kernels made of them are right on the chip."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from cuda_sandbox.compiler import Compiler
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from evo.requests.draft import variants
from fitness.evaluation import Demand
from fitness.judge import Judge
from operators.prompts import knowledge

HERE = Path(__file__).parent
TASKS = HERE.parents[1] / "configs" / "tasks"


def composed(name: str) -> str:
    """A kernel with the prompt's building blocks before it."""
    kinds = dict.fromkeys(("products", "convolves", "attends", "reduces"), True)
    told = knowledge("cuda", "sm_90a", {**kinds, "in_flight": "", "simd": ""})
    blocks = "".join(re.findall(r"```cuda\n(.*?)```", told, re.DOTALL))
    return blocks + (HERE / "kernels" / f"{name}_hopper.cu").read_text(encoding="utf-8")


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "task", "demand"),
    [
        ("softmax", "softmax", Demand()),
        ("matmul", "matmul_fp16", Demand()),
        ("conv_block", "conv_block", Demand(None, 1e-2)),
    ],
)
def test_a_kernel_of_the_prompts_blocks_is_accepted_in_all_its_tunings(
    name: str, task: str, demand: Demand
) -> None:
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("the blocks are for Hopper")
    kernel = Kernel(composed(name), "cuda")
    with Compiler() as compiler:
        judge = Judge(TASKS / f"{task}.py", demand, "cuda:0", compiler=compiler)
        try:
            failed = {}
            for words, variant in variants(kernel).items():
                compiled = compiler.submit(variant, judge.signature, judge.arch).result()
                found = judge.evaluate(variant, compiled)
                time = f"{found.time_ms.median:.4f} ms" if found.time_ms else found.reason
                print(f"{name} {words}: {found.status} {time} {found.speedup} {compiled.log}")
                if found.status is not Status.OK or "C75" in compiled.log:
                    failed[words] = f"{found.status}: {found.reason} {compiled.log}"
        finally:
            judge.close()
    assert failed == {}
