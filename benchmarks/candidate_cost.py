"""What one candidate costs, from source to verdict, beside torch's load_inline of the same kernel.

    python benchmarks/candidate_cost.py cpu  [--repetitions 5] [--save candidate_cost_cpu]
    python benchmarks/candidate_cost.py cuda [--minutes 5]     [--save candidate_cost_cuda]

Where kernelevo is not installed: PYTHONPATH=. python3 benchmarks/candidate_cost.py ...

Ours is compiled and judged in full (every distribution, every timed call checked) by a judge that
is warm, as it is for all candidates of a run but the first. load_inline is given the benefit: its
time ends with one call whose output is compared once. Every repetition is new source to both.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import torch
from common import compiler as compiler_version
from common import publish, report, spread, versions
from torch.utils.cpp_extension import load_inline

from cuda_sandbox.compiler import Compiler
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CompileReport
from fitness.evaluation import Demand
from fitness.judge import Judge

HERE = Path(__file__).parent
SUBJECTS = {
    "cpu": ("cpp", HERE / "kernels/softmax.cpp", HERE.parent / "configs/tasks/softmax_cpu.py"),
    "cuda": ("cuda", HERE / "kernels/softmax.cu", HERE.parent / "configs/tasks/softmax.py"),
}
BINDING = """
torch::Tensor forward(torch::Tensor x) {{
    auto out = torch::empty_like(x);
    launch(x.data_ptr<float>(), out.data_ptr<float>(), nullptr{stream});
    return out;
}}
"""


@dataclass(frozen=True)
class Bench:
    """A warm judge, its compiler and an endless supply of new kernels."""

    judge: Judge
    compiler: Compiler
    kernels: Iterator[Kernel]

    def compile(self, kernel: Kernel) -> Future[CompileReport]:
        """Start a compilation."""
        return self.compiler.submit(kernel, self.judge.signature, self.judge.arch)

    def verdict(self, kernel: Kernel, compiled: CompileReport) -> float:
        """Wall-clock seconds of one verdict; raises if the kernel is not accepted."""
        started = time.perf_counter()
        found = self.judge.evaluate(kernel, compiled)
        if not found.correct:
            raise RuntimeError(f"{found.status}: {found.reason}\n{compiled.log}")
        return time.perf_counter() - started


def new_kernels(language: str, path: Path) -> Iterator[Kernel]:
    """The same kernel over and over with a constant that makes each one new to every cache."""
    source = path.read_text(encoding="utf-8")
    for number in itertools.count():
        yield Kernel(f"{source}\nextern const int benchmark_{number} = {number};\n", language)


def one_by_one(bench: Bench, repetitions: int) -> tuple[list[float], list[float]]:
    """Seconds of compiling and of judging, one candidate after the other."""
    compiling, judging = [], []
    for kernel in itertools.islice(bench.kernels, repetitions):
        started = time.perf_counter()
        compiled = bench.compile(kernel).result()
        compiling.append(time.perf_counter() - started)
        judging.append(bench.verdict(kernel, compiled))
    return compiling, judging


def sustained(bench: Bench, minutes: float, ahead: int = 32) -> tuple[int, float]:
    """Candidates judged and seconds taken while the pool compiles ``ahead`` of the judge."""
    started = time.perf_counter()
    waiting = [(kernel, bench.compile(kernel)) for kernel in itertools.islice(bench.kernels, ahead)]
    judged = 0
    while time.perf_counter() - started < 60 * minutes:
        kernel, compiled = waiting.pop(0)
        bench.verdict(kernel, compiled.result())
        judged += 1
        following = next(bench.kernels)
        waiting.append((following, bench.compile(following)))
    return judged, time.perf_counter() - started


def load_inline_seconds(bench: Bench, language: str, number: int) -> float:
    """Seconds from source to one compared output, by torch's own extension builder."""
    kernel = next(bench.kernels)
    includes = "#include <torch/extension.h>\n"
    stream = ""
    if language == "cuda":
        includes += "#include <ATen/cuda/CUDAContext.h>\n"
        stream = ", at::cuda::getCurrentCUDAStream()"
    code = includes + bench.judge.signature.header(language) + kernel.source
    code += BINDING.format(stream=stream)
    declared = "torch::Tensor forward(torch::Tensor x);"
    sources = {"cpp_sources": code, "extra_cflags": ["-O3", "-march=native", "-fopenmp"]}
    if language == "cuda":
        sources = {"cpp_sources": declared, "cuda_sources": code}
    shape = bench.judge.signature.arguments[0].shape
    x = torch.randn(shape, device=bench.judge.device)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        module = load_inline(
            f"softmax_{number}", functions=["forward"], build_directory=folder, **sources
        )
        assert torch.allclose(module.forward(x), torch.softmax(x, dim=1), atol=1e-5)
        return time.perf_counter() - started


def cpu_rows(bench: Bench, options: argparse.Namespace) -> list[tuple[str, str]]:
    """Ours and theirs in turns, so that other load on the machine meets both."""
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(options.repetitions):
        compiling, judging = one_by_one(bench, 2)
        ours += [sum(pair) for pair in zip(compiling, judging, strict=True)]
        theirs.append(load_inline_seconds(bench, "cpp", number))
    ratio = statistics.median(theirs) / statistics.median(ours)
    return [
        (f"kernelevo, source to verdict, {len(ours)} kernels", spread(ours)),
        (f"load_inline, source to one compared call, {len(theirs)} kernels", spread(theirs)),
        ("ratio of the medians", f"{ratio:.1f}"),
    ]


def cuda_rows(bench: Bench, options: argparse.Namespace) -> list[tuple[str, str]]:
    """Compile, verdict, throughput, and load_inline once."""
    compiling, judging = one_by_one(bench, 2 * options.repetitions)
    judged, seconds = sustained(bench, options.minutes)
    rows = [
        (f"compile, {len(compiling)} kernels", spread(compiling)),
        (f"verdict by a warm judge, {len(judging)} kernels", spread(judging)),
        (
            "candidates per hour, compiled and judged",
            f"{3600 * judged / seconds:.0f} ({judged} in {seconds:.0f} s)",
        ),
    ]
    if options.load_inline:
        theirs = load_inline_seconds(bench, "cuda", 0)
        rows.append(("load_inline, source to one compared call, once", f"{theirs:.1f} s"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device", choices=SUBJECTS)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=5.0, help="of sustained work (cuda)")
    parser.add_argument("--no-load-inline", dest="load_inline", action="store_false")
    parser.add_argument("--save", metavar="NAME", help="write benchmarks/results/NAME.md")
    options = parser.parse_args()
    language, kernel, task = SUBJECTS[options.device]
    measure: dict[str, Callable[[Bench, argparse.Namespace], list[tuple[str, str]]]]
    measure = {"cpu": cpu_rows, "cuda": cuda_rows}
    with tempfile.TemporaryDirectory() as cache, Compiler(Path(cache)) as compiler:
        judge = Judge(task, Demand(), options.device, compiler=compiler)
        bench = Bench(judge, compiler, new_kernels(language, kernel))
        one_by_one(bench, 1)  # baselines, our own worker program: once for each machine or run
        rows = measure[options.device](bench, options)
        judge.close()
    facts = {
        "device": judge.name,
        "kernel": f"`{kernel.relative_to(HERE.parent)}`, task `{task.relative_to(HERE.parent)}`",
        "versions": f"{versions('torch')}, {compiler_version('g++')}"
        + (f", {compiler_version('nvcc')}" if language == "cuda" else ""),
        "repetitions": f"{options.repetitions}; median (minimum to maximum)",
    }
    publish(report(f"Cost of a candidate, {options.device}", rows, facts), options.save)


if __name__ == "__main__":
    main()
