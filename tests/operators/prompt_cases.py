"""Fixed states of a search, and the prompts that are asked in them, which tests pin in full.

``python -m tests.operators.prompt_cases`` writes the prompts as they are now to ``pinned/``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Resources, Status
from cuda_sandbox.signature import Role, TensorSpec
from fitness.bottleneck import Bottleneck, Occupancy, Stall
from fitness.description import Node, TaskDescription
from fitness.evaluation import Demand, Evaluation, Interval, Precision, Tier
from fitness.hardware import Ceilings
from operators.author import Branch, Brief, Specimen, Tried
from operators.idea import Category, Idea
from operators.llm import Prompt
from operators.writing import request
from tests.operators.workbench import ref, task

PINNED = Path(__file__).parent / "pinned"
TASKS = Path(__file__).parents[2] / "configs" / "tasks"

H200 = (
    "NVIDIA H200, compute capability 9.0 (sm_90a)",
    "132 SMs, 64 K registers each",
    "227 KB shared memory per block",
    "60 MiB L2 cache",
    "139 GiB device memory",
)
L40S = (
    "NVIDIA L40S, compute capability 8.9 (sm_89)",
    "142 SMs, 64 K registers each",
    "99 KB shared memory per block",
    "96 MiB L2 cache",
    "44 GiB device memory",
)
CPU = ("AMD EPYC, 2 threads", "32 MiB last-level cache", "vector extensions: avx, avx2, f16c, fma")
H200_PEAK = Ceilings(4.917e12, 60 << 20, 66.9e12, 535e12, 1070e12)
L40S_PEAK = Ceilings(0.864e12, 96 << 20, 91.6e12, 183e12, 366e12)


def _spec(name: str, shape: tuple[int, ...], role: Role = Role.INPUT) -> TensorSpec:
    return TensorSpec(name, "float32", shape, role)


def _described(name: str, found: TaskDescription, flops: int) -> TaskDescription:
    source = (TASKS / f"{name}.py").read_text(encoding="utf-8")
    return replace(found, source=source, flops=flops)


def softmax_task(name: str = "softmax", shape: tuple[int, int] = (4096, 65536)) -> TaskDescription:
    node = Node("y", "aten.softmax.int", (ref("x"), 1), (), shape, "float32")
    return _described(name, task([_spec("x", shape)], [node], name), 6 * shape[0] * shape[1])


def conv_task() -> TaskDescription:
    leaves = [
        _spec("x", (100, 3, 224, 224)),
        _spec("conv_weight", (96, 3, 11, 11), Role.PARAMETER),
        _spec("conv_bias", (96,), Role.PARAMETER),
    ]
    operands = tuple(ref(leaf.name) for leaf in leaves)
    grid, pooled = (100, 96, 55, 55), (100, 96, 27, 27)
    nodes = [
        Node("c", "aten.conv2d.default", (*operands, [4, 4], [2, 2]), (), grid, "float32"),
        Node("r", "aten.relu.default", (ref("c"),), (), grid, "float32"),
        Node("p", "aten.max_pool2d.default", (ref("r"), [3, 3], [2, 2]), (), pooled, "float32"),
    ]
    return _described("conv_block", task(leaves, nodes, "conv_block"), 21_141_120_000)


def brief(
    found: TaskDescription, language: str, facts: tuple[str, ...], arch: str, peak: Ceilings | None
) -> Brief:
    return Brief(found, language, Demand(), found.signature.header(language), facts, arch, peak)


SOFTMAX = brief(softmax_task(), "cuda", H200, "sm_90a", H200_PEAK)
CONV = brief(conv_task(), "cuda", H200, "sm_90a", H200_PEAK)
CONV_L40S = replace(
    brief(conv_task(), "cuda", L40S, "sm_89", L40S_PEAK), demand=Demand(tier=None, tolerance=1e-2)
)
ON_CPU = brief(softmax_task("softmax_cpu", (512, 4096)), "cpp", CPU, "native", None)

PLAIN = Idea("replace the operation with a plain CUDA kernel", Category.COMPUTE, "llm", "o3")
LOADS = Idea(
    "Vectorised loads: read x as float4 so that each thread issues 16-byte accesses",
    Category.MEMORY,
    "llm",
    "o3",
)
CLUSTER = Idea(
    "Row in a cluster of two blocks: 32 registers a thread hold it, one exchange by st.async",
    Category.PARALLELISM,
    "llm",
    "gemini-2.5-pro",
)
UNROLL = Idea("Unroll the sum by four", Category.CONTROL, "llm", "o3")

SOURCE = """\
#define THREADS 256  // tune: 128 256 512

__global__ void softmax(const float* __restrict__ x, float* __restrict__ out) {
    // one block for a row
}

extern "C" int launch(const float* x, float* out, void* workspace, cudaStream_t stream) {
    softmax<<<X_D0, THREADS, 0, stream>>>(x, out);
    return cudaGetLastError();
}
"""
VERDICT = Evaluation(
    Status.OK,
    precision=Precision(Tier.FP32, 3.1e-7, 2e-7, 2.9e-7, 2e-7, "shifted"),
    time_ms=Interval(0.912, 0.909, 0.915),
    speedup={"eager": 1.154, "graph": 1.15, "compile": 0.926, "best": 0.926},
    roofline_share=0.554,
    roofline_ceiling="memory 4250 GB/s",
    device="NVIDIA H200",
    resources=(Resources("softmax", 40, 1024, 0, 16),),
    log="kernel.cu(4): warning #177-D: variable was declared but never referenced",
    bottleneck=Bottleneck(
        bound="latency",
        function="softmax",
        busy={"dram": 55.0, "l2": 31.0, "shared": 4.0, "tensor": 0.0, "fma": 7.0},
        occupancy=Occupancy(71.0, 75.0, "registers"),
        stalls=(Stall("long_scoreboard", 64.0), Stall("barrier", 21.0)),
    ),
)
TUNED = (("THREADS 256 -> 512", 1.131), ("THREADS 256 -> 128", None))
PARENT = Specimen("0-2-5", Kernel(SOURCE, "cuda"), VERDICT, (PLAIN, LOADS, LOADS), TUNED)
FATHER = Specimen(
    "1-2-0",
    Kernel(SOURCE.replace("256  //", "512  //"), "cuda", ("--maxrregcount=64",)),
    replace(VERDICT, time_ms=Interval(0.8, 0.79, 0.81), bottleneck=None, resources=(), log=""),
    (PLAIN, CLUSTER),
)
TRIED = (
    Tried(UNROLL, "ok", 1.004),
    Tried(
        Idea("Stage the row in shared memory", Category.MEMORY, "llm", "o3"),
        "launch_error: launch returned 1 (invalid argument)",
        None,
    ),
    Tried(LOADS, "ok", 1.62, here=False),
    Tried(CLUSTER, "ok", 1.37, here=False),
    Tried(Idea("Half of the columns in half", Category.PRECISION, "llm"), "hack", None, here=False),
    Tried(Idea("evict-first loads", Category.MEMORY, "catalogue"), "ok", 0.95, here=False),
)
FAILED = Specimen(
    "0-3-1",
    Kernel(SOURCE, "cuda"),
    Evaluation(
        Status.COMPILE_ERROR,
        'kernel.cu(4): error: identifier "y" is undefined',
        log='kernel.cu(4): error: identifier "y" is undefined\n      y = 1;\n      ^\n\n'
        "/usr/local/cuda/include/cuda_fp16.h(12): note: declared here\n",
    ),
    (PLAIN, CLUSTER),
)
WRONG = replace(
    FAILED,
    evaluation=Evaluation(
        Status.INCORRECT,
        "tier: fp32 is demanded, it reaches half: error 3.2e-04 of rms, fp32 allows 1.2e-06: "
        "out[17, 4095] is 0.0114, should be 0.0117 on shifted",
    ),
    origin=Kernel(SOURCE.replace("256  //", "128  //"), "cuda"),
)
UNCERTIFIED = replace(
    FAILED,
    evaluation=Evaluation(
        Status.INCORRECT,
        "certification: synccheck failed: Barrier error detected. Missing wait.",
        time_ms=Interval(0.61, 0.6, 0.62),
        certificate={
            "checks": {
                "memcheck": "passed",
                "racecheck": "passed",
                "synccheck": "failed: Barrier error detected. Missing wait. at softmax+0x40a0 in "
                "kernel.cu:6 by thread (32,0,0) in block (0,0,0)",
            }
        },
    ),
)
CPU_PARENT = Specimen(
    "0-1-0",
    Kernel("// a plain kernel\n", "cpp", ("-ffast-math",)),
    Evaluation(
        Status.OK,
        time_ms=Interval(2.1, 2.0, 2.2),
        speedup={"eager": 0.3},
        roofline_share=0.81,
        roofline_ceiling="memory 11.2 GB/s",
    ),
    (PLAIN,),
)


def cases() -> dict[str, Prompt]:
    """A prompt of every purpose, on every kind of device that has a text of its own."""
    asked = request.ideas(SOFTMAX, PARENT, TRIED, 3)
    return {
        "port_h200_softmax": request.port(SOFTMAX, Branch(0, 2)),
        "port_cpu_softmax": request.port(ON_CPU, Branch(1, 2)),
        "ideas_h200_softmax": asked,
        "ideas_again_h200_softmax": request.ideas_again(asked, [CLUSTER], [(UNROLL, LOADS)], 2),
        "ideas_cpu_softmax": request.ideas(ON_CPU, CPU_PARENT, (), 1),
        "kernel_h200_softmax": request.kernel(SOFTMAX, PARENT, CLUSTER, Branch(1, 2)),
        "kernel_h200_conv": request.kernel(CONV, PARENT, CLUSTER, Branch(0, 1)),
        "kernel_l40s_conv": request.kernel(CONV_L40S, PARENT, CLUSTER, Branch(2, 3)),
        "crossover_h200_softmax": request.crossover(SOFTMAX, (PARENT, FATHER), Branch(0, 2)),
        "repair_h200_softmax": request.repair(SOFTMAX, FAILED),
        "repair_wrong_h200_softmax": request.repair(SOFTMAX, WRONG),
        "repair_uncertified_h200_softmax": request.repair(SOFTMAX, UNCERTIFIED),
    }


def written(prompt: Prompt) -> str:
    """A prompt as a file."""
    return f"{prompt.system}\n\n{'=' * 80}\n\n{prompt.text}\n"


if __name__ == "__main__":
    PINNED.mkdir(exist_ok=True)
    for old in PINNED.glob("*.txt"):
        old.unlink()
    for name, prompt in cases().items():
        (PINNED / f"{name}.txt").write_text(written(prompt), encoding="utf-8")
