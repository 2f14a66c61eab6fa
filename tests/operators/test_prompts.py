"""The prompts: in full for fixed states, and what must never and always be in one."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from fitness.evaluation import Demand, Evaluation, Interval, Tier
from operators.author import Specimen, Tried
from operators.idea import Category, Idea
from operators.prompts import HERE, knowledge
from operators.writing import request, wording
from tests.operators import prompt_cases as cases
from tests.operators.prompt_cases import CONV, CONV_L40S, ON_CPU, PARENT, SOFTMAX

CASES = cases.cases()


@pytest.mark.parametrize("name", CASES)
def test_prompts_are_word_for_word_what_is_pinned(name: str) -> None:
    pinned = (cases.PINNED / f"{name}.txt").read_text(encoding="utf-8")
    hint = "if that is meant: python -m tests.operators.prompt_cases, and read the difference"
    assert cases.written(CASES[name]) == pinned, hint


def test_every_pinned_file_is_asked_somewhere() -> None:
    assert {path.stem for path in cases.PINNED.glob("*.txt")} == set(CASES)


def test_what_stays_the_same_comes_first_in_the_same_words() -> None:
    of_softmax = [prompt for name, prompt in CASES.items() if name.endswith("h200_softmax")]
    assert len({prompt.system for prompt in of_softmax}) == 1
    assert len({prompt.parts[:2] for prompt in of_softmax}) == 1
    about_parent = [CASES[f"{name}_h200_softmax"] for name in ("ideas", "kernel", "crossover")]
    assert len({prompt.parts[:3] for prompt in about_parent}) == 1


def test_no_prompt_holds_a_key_a_path_or_a_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    log = f"{tmp_path}/kernel.cu(3): error: no\n/opt/cuda-13.0/include/cuda.h(1): note: here\n"
    reason = f"cannot read {Path.home()}/secret/kernel.cu on /mnt/shared/x.so"
    failed = Specimen(
        "0-3-1",
        cases.FAILED.kernel,
        Evaluation(Status.COMPILE_ERROR, reason, log=log),
        cases.FAILED.ancestry,
    )
    chatty = replace(PARENT, evaluation=replace(PARENT.evaluation, log=log))
    tried = [Tried(cases.UNROLL, f"crashed: {reason}", None)]
    texts = [
        request.repair(SOFTMAX, failed).text,
        request.ideas(SOFTMAX, chatty, tried, 1).text,
        *(f"{prompt.system}{prompt.text}" for prompt in CASES.values()),
    ]
    for text in texts:
        assert "sk-planted" not in text
        assert socket.gethostname() not in text
        for folder in (str(tmp_path), str(Path.home()), "/opt", "/mnt", "/usr", "/home", "/tmp"):
            assert f"{folder}/" not in text
    assert "kernel.cu(3): error: no" in texts[0]


def test_a_cheat_is_not_told_how_it_was_found_out() -> None:
    text = CASES["ideas_h200_softmax"].text
    assert "Half of the columns in half -> failed: hack\n" in text


def test_what_is_in_the_kernel_is_told_once_with_its_gain() -> None:
    text = CASES["ideas_h200_softmax"].text
    assert text.count("Vectorised loads") == 1
    line = next(line for line in text.splitlines() if "Vectorised loads" in line)
    assert line.endswith("-> gained, 1.62x")


def test_neglected_categories_are_named() -> None:
    tried = [Tried(Idea("x", Category.MEMORY, "llm"), "ok", 1.0) for _ in range(3)]
    tried += [Tried(Idea("y", Category.CONTROL, "llm"), "ok", 1.0)]
    bare = replace(PARENT, ancestry=())
    assert wording.neglected(bare, tried) == [Category.ASYNCHRONY, Category.PRECISION]
    every = [Tried(Idea("x", category, "llm"), "ok", 1.0) for category in Category]
    assert wording.neglected(bare, every) == []


def test_outcomes_are_told_in_words() -> None:
    def told(outcome: str, gain: float | None) -> str:
        return wording.attempt(Tried(cases.UNROLL, outcome, gain)).partition(" -> ")[2]

    assert told("ok", 1.321) == "gained, 1.32x"
    assert told("ok", 1.01) == "no difference"
    assert told("ok", 0.85) == "lost, 0.85x"
    assert told("ok", None) == "worked"
    assert told("timeout: 12 s", None) == "failed: timeout: 12 s"


def test_of_many_ideas_elsewhere_the_best_and_the_latest_are_told() -> None:
    many = [
        Tried(Idea(f"idea number {n}", Category.MEMORY, "llm"), "ok", 0.5 + n / 100, here=False)
        for n in range(100)
    ]
    text = request.ideas(SOFTMAX, PARENT, many, 1).text
    told = [int(number) for number in re.findall(r"idea number (\d+) ->", text)]
    assert len(told) == request.ELSEWHERE
    assert told[:12] == list(range(99, 87, -1))
    assert told[12:] == list(range(12))


@pytest.mark.parametrize(
    ("demand", "words"),
    [
        (Demand(), "Tier fp32"),
        (Demand(Tier.TF32), "Tier tf32"),
        (Demand(Tier.HALF), "Tier half"),
        (Demand(None, 1e-2), "must be at most 0.01"),
        (Demand(None, 1e-5), "That is tight"),
    ],
)
def test_the_demand_is_told_in_words(demand: Demand, words: str) -> None:
    assert words in wording.demand(demand, SOFTMAX.task)


def test_floors_are_told_for_the_units_that_the_demand_allows() -> None:
    memory, arithmetic = wording.floors(SOFTMAX)
    assert memory.startswith("2.15 GB")
    assert memory.endswith("0.437 ms at the peak")
    assert "memory that limits" in arithmetic
    strict, loose = wording.floors(CONV)[1], wording.floors(CONV_L40S)[1]
    assert "0.316 ms on the fp32 pipes" in strict
    assert "0.0593 ms as three half products" in strict
    assert "TF32" not in strict
    assert "as TF32" in loose
    assert "three" not in loose
    assert "ms" not in "".join(wording.floors(ON_CPU))


def test_what_is_told_fits_the_task() -> None:
    def told(name: str) -> str:
        return CASES[name].parts[1]

    assert "Softmax" in told("kernel_h200_softmax")
    assert "setmaxnreg" not in told("kernel_h200_softmax")
    assert "m64n128k16" in told("kernel_h200_conv")
    assert "E[x^2]" not in told("kernel_h200_conv")
    assert "space to depth" in told("kernel_h200_conv")
    assert "space to depth" not in told("kernel_h200_softmax")
    assert "mma.sync" in told("kernel_l40s_conv")
    assert "_mm256_stream_ps" in told("port_cpu_softmax")


def test_a_share_of_the_roofline_calls_for_ideas_of_its_kind() -> None:
    def asked(share: float | None) -> str:
        found = replace(PARENT.evaluation, roofline_share=share)
        return request.ideas(SOFTMAX, replace(PARENT, evaluation=found), (), 1).parts[-1]

    assert "its structure is wrong" in asked(0.1)
    assert "not overlapped" in asked(0.6)
    assert "what is left" in asked(0.9)
    assert "of what the hardware allows:" not in asked(None)


def test_a_sanitizers_report_goes_back() -> None:
    said = "failed: Potential WAR hazard detected at softmax in /srv/eve/kernel.cu:41"
    checks = {"hidden inputs": "passed on 7 distributions", "racecheck": said}
    found = Evaluation(Status.INCORRECT, "certification: racecheck", certificate={"checks": checks})
    text = request.repair(SOFTMAX, replace(cases.FAILED, evaluation=found)).parts[-1]
    assert "racecheck: failed: Potential WAR hazard detected at softmax in kernel.cu:41" in text
    assert "\npassed: hidden inputs\n" in text
    assert "only on some distributions" not in text


def test_what_fails_on_hidden_inputs_is_told_of_distributions_not_of_races() -> None:
    checks = {"hidden inputs": "failed: out[3] is 1 on shifted", "racecheck": "passed"}
    found = Evaluation(Status.INCORRECT, "certification", certificate={"checks": checks})
    text = request.repair(SOFTMAX, replace(cases.FAILED, evaluation=found)).parts[-1]
    assert "hidden inputs: failed: out[3] is 1 on shifted" in text
    assert "only on some distributions" in text
    assert "__syncwarp()` must stand" not in text


def test_a_huge_log_is_cut() -> None:
    log = "".join(f"kernel.cu({n}): error: nonsense number {n}\n" for n in range(10_000))
    failed = replace(cases.FAILED, evaluation=Evaluation(Status.COMPILE_ERROR, "x", log=log))
    text = request.repair(SOFTMAX, failed).parts[-1]
    assert "nonsense number 0\n" in text
    assert len(text) < 6000


def test_building_a_prompt_takes_milliseconds() -> None:
    request.ideas(SOFTMAX, PARENT, cases.TRIED, 3)
    times = []
    for _ in range(5):
        started = time.perf_counter()
        request.ideas(SOFTMAX, PARENT, cases.TRIED * 12, 3)
        times.append(time.perf_counter() - started)
    assert min(times) < 0.02


# ---------------------------------------------------------------- the code in the prompts

USES = {
    "sm_90a": """
        __global__ void use(uint64_t* g, const __grid_constant__ CUtensorMap map) {
            __shared__ alignas(1024) uint64_t s[4096];
            __shared__ uint64_t bar;
            if (threadIdx.x == 0) { barrier_init(&bar, 1); fence_init(); }
            __syncthreads();
            barrier_expect(&bar, 64);
            bulk_load(s, g, 64, &bar);
            tile_load(s, &map, 0, 0, &bar);
            barrier_wait(&bar, 0);
            barrier_arrive(&bar);
            publish();
            bulk_store(g, s, 64);
            bulk_stores_read<0>();
            store_async(in_block(s, cluster_rank() ^ 1), 1, in_block(&bar, 0));
            cluster_wait(&bar, 1);
            cluster_barrier();
            float c[64] = {};
            products_begin();
            for (int i = 0; i < 4; ++i)
                multiply<0, 1>(c, describe(s) + 2 * i, describe(s, 4096), 1);
            products_commit();
            products_wait<0>();
            float total = 0;
            for (int i = 0; i < 64; ++i) total += c[i];
            g[threadIdx.x] = total;
        }
        __global__ void __launch_bounds__(384, 1) registers(float* g) {
            if (threadIdx.x < 128) { give_registers<40>(); return; }
            take_registers<232>();
            g[threadIdx.x] = 1;
        }""",
    "sm_89": """
        __global__ void use(float* g) {
            __shared__ uint4 s[64];
            copy16(s, g, true);
            commit_copies();
            wait_copies<0>();
            uint32_t r[4];
            ldmatrix4(r, s);
            float c[4] = {};
            mma(c, r, r[0], r[1]);
            g[threadIdx.x] = c[0];
        }""",
}


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("arch", USES)
def test_the_building_blocks_compile_without_a_message(arch: str, tmp_path: Path) -> None:
    blocks = "\n".join(re.findall(r"```cuda\n(.*?)```", _told(arch), re.DOTALL))
    head = "#include <stdint.h>\n#include <cuda.h>\n#include <cuda_fp16.h>\n"
    (tmp_path / "blocks.cu").write_text(f"{head}{blocks}{USES[arch]}\n", encoding="utf-8")
    command = ["nvcc", "-std=c++17", "-O3", "-cubin", f"-arch={arch}", "blocks.cu", "-o", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_every_text_on_a_chip_has_its_compile_test() -> None:
    chips = {path.stem for path in (HERE / "knowledge").glob("sm_*.j2")}
    assert chips == set(USES)


def test_every_building_block_is_used_there() -> None:
    for arch, uses in USES.items():
        blocks = "".join(re.findall(r"```cuda\n(.*?)```", _told(arch), re.DOTALL))
        for name in re.findall(r"__forceinline__ \w+ (\w+)\(", blocks):
            assert name in uses or blocks.count(name) > 1, name


ALL = {
    **dict.fromkeys(("products", "convolves", "attends", "reduces"), True),
    **dict.fromkeys(("in_flight", "simd"), ""),
}


def _told(arch: str) -> str:
    return knowledge("cuda", arch, ALL)


def test_who_mends_a_kernel_sees_what_was_changed_unless_that_is_most_of_it() -> None:
    lines = [f"int a{number};" for number in range(200)]
    works = Kernel("\n".join(lines), "cuda")
    failed = Specimen("0-0-1", Kernel("\n".join(["int b;", *lines]), "cuda"), Evaluation(Status.OK))

    assert "+int b;" in wording.changes(replace(failed, origin=works))
    assert wording.changes(replace(failed, origin=Kernel("int c;", "cuda"))) == ""
    assert wording.changes(failed) == ""


def test_a_verdict_without_figures_leaves_the_paragraph_out() -> None:
    bare = Specimen("0-0-0", Kernel("int a;\n", "cuda"), Evaluation(Status.OK))
    assert "Measured" not in request.ideas(SOFTMAX, bare, (), 1).text
    timed = Evaluation(Status.OK, time_ms=Interval(1.0, 0.9, 1.1))
    measured = request.ideas(SOFTMAX, replace(bare, evaluation=timed), (), 1).text
    assert "- time 1 ms (95% interval 0.9 to 1.1)" in measured
