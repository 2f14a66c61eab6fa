"""Engine and store alone: an instant author, instant verdicts, kernels of about 3 kB.

    python benchmarks/engine.py [--candidates 10000] [--save engine]

Prints ms per candidate around the 100th, 1,000th and 10,000th (elapsed, and the processor's share,
which other work on the machine moves less), bytes on disk per candidate (all, and beyond sources,
prompts and replies), and the peak memory of the controller.
"""

# ruff: noqa: ARG002  # the fakes answer without looking at what they are asked
from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common import processor, publish, report, versions

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Resources, Status
from evo.executor import Job
from evo.individual import Individual
from evo.watch import Watch
from fitness.evaluation import Evaluation
from operators.author import Branch, Brief, Desk, Draft, Specimen, Tried
from operators.idea import Category, Idea
from tests.evo.fakes import IDEAS, FakeAuthor, FakeExecutor, Sitting, configuration, timed

LINE = "    acc[{n}] = fmaf(x[row * X_D1 + lane + {n} * 32], scale, acc[{n}]);  // term {n}"
BODY = "\n".join(LINE.format(n=n) for n in range(36))
FIRST = Branch(0, 1)
TUNABLES = "#define TILE 64  // tune: 8 16 32 64 128\n#define ROWS 1  // tune: 1 2 4\n"


class InstantAuthor(FakeAuthor):
    """Writes kernels of a constant size that differ in a few numbers."""

    def _kernel(self, rng: random.Random) -> Kernel:
        numbers = " ".join(f"constexpr int n{i} = {rng.randrange(10**9)};" for i in range(4))
        return Kernel(f"{TUNABLES}{numbers}\nvoid body() {{\n{BODY}\n}}\n", "cpp")

    async def port(self, brief: Brief, branch: Branch, desk: Desk) -> Draft | None:
        return self._written(Idea("a plain kernel", Category.COMPUTE, self.name), desk, branch)

    async def ideate(
        self, brief: Brief, parent: Specimen, tried: Sequence[Tried], count: int, desk: Desk
    ) -> list[Idea]:
        rng = desk.rng
        texts = [f"{rng.choice(IDEAS)}, variant {rng.randrange(10**6)}" for _ in range(count)]
        return [Idea(text, rng.choice(list(Category)), self.name) for text in texts]

    async def implement(
        self, brief: Brief, parent: Specimen, idea: Idea, branch: Branch, desk: Desk
    ) -> Draft | None:
        return self._written(idea, desk, branch)

    async def cross(
        self, brief: Brief, parents: tuple[Specimen, Specimen], branch: Branch, desk: Desk
    ) -> Draft | None:
        return self._written(Idea("join both", Category.COMPUTE, self.name), desk, branch)

    async def repair(self, brief: Brief, failed: Specimen, desk: Desk) -> Draft | None:
        return self._written(failed.ancestry[-1], desk)

    def _written(self, idea: Idea, desk: Desk, branch: Branch = FIRST) -> Draft:
        for _ in range(branch.number):  # the branches of a question draw the same chances
            desk.rng.random()
        return Draft(self._kernel(desk.rng), idea)


class InstantExecutor(FakeExecutor):
    """Verdicts as full as real ones, a fifth of them failures."""

    def judge(self, job: Job) -> Evaluation:
        chance = random.Random(job.kernel.source)
        if chance.random() < 0.2:
            reason = "error 3.1e-02 on constant rows, allowed 4.8e-07 (PyTorch's own 1.2e-07)"
            return Evaluation(Status.INCORRECT, reason, device="fake")
        found = timed(chance.uniform(1, 10))
        return Evaluation(
            Status.OK,
            time_ms=found.time_ms,
            baselines=dict.fromkeys(("eager", "graph", "compile"), found.baselines["eager"]),
            speedup=dict.fromkeys(("eager", "graph", "compile", "best"), found.speedup["eager"]),
            roofline_share=0.5,
            roofline_ceiling="memory bandwidth",
            device="fake",
            resources=tuple(Resources(f"kernel_{n}", 40, 1024, 0, 0) for n in range(2)),
        )

    def submit(self, job: Job):  # type: ignore[no-untyped-def]
        future = super().submit(job)
        self.jobs.clear()
        return future


class Clock(Watch):
    """Notes when each candidate had its verdict."""

    def __init__(self) -> None:
        self.ticks = [(time.perf_counter(), time.process_time())]

    def judged(self, individual: Individual) -> None:
        self.ticks.append((time.perf_counter(), time.process_time()))

    def ms_per_candidate(self, around: int) -> tuple[float, float]:
        """Wall clock and processor time, mean over the last tenth (at least 50) before it.

        Around the 100th the run's own start is not in it.
        """
        window = max(50, around // 10)
        pairs = zip(self.ticks[around], self.ticks[around - window], strict=True)
        wall, busy = (1e3 * (after - before) / window for after, before in pairs)
        return wall, busy


def bytes_per_candidate(file: Path, candidates: int) -> tuple[float, float]:
    """On disk, all in all and beyond the texts that had to be kept."""
    with sqlite3.connect(file) as db:
        (texts,) = db.execute("select total(length(data)) from blobs").fetchone()
    size = file.stat().st_size
    return size / candidates, (size - texts) / candidates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--save", metavar="NAME", help="write benchmarks/results/NAME.md")
    options = parser.parse_args()
    candidates = options.candidates
    config = configuration(
        population={"size": 16},
        budget={"generations": None, "hours": None, "evaluations": candidates},
    )
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        sitting = Sitting(Path(folder), config, InstantAuthor(), InstantExecutor(), clock)
        recorder = sitting.recorder()
        asyncio.run(sitting.engine(recorder).run())
        recorder.close()
        on_disk, beyond = bytes_per_candidate(Path(folder) / "run.sqlite", len(clock.ticks) - 1)
    rows = []
    for around in (100, 1_000, 10_000):
        if around < len(clock.ticks):
            wall, busy = clock.ms_per_candidate(around)
            figures = f"{wall:.2f} ms, {busy:.2f} ms of it computing"
            rows.append((f"a candidate, around number {around}", figures))
    rows.append(("disk for a candidate", f"{on_disk:.0f} bytes, {beyond:.0f} beyond its texts"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows.append(("the controller's peak memory", f"{peak:.0f} MB"))
    load = f"{os.getloadavg()[0]:.1f} (1 minute)"
    facts = {"device": processor(), "versions": versions("deap", "pydantic"), "load": load}
    title = "Engine and store with an instant author and instant verdicts"
    publish(report(title, rows, facts), options.save)


if __name__ == "__main__":
    main()
