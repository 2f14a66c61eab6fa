"""Do authors keep the judge busy? A run with a slow model: 4 islands, 2 s for each answer.

    python benchmarks/authors_overlap.py [--seconds 240] [--latency 2] [--save authors_overlap]
    python benchmarks/authors_overlap.py --real-judge

The model is a server on this machine that speaks OpenAI's Responses API and writes kernels that
are right; its prompts, the libraries, the engine, the store and the compiler are the product's. The
judge is one that takes 1 s for each kernel, whatever else the machine does; or, as told, the real
one. Counted from a minute after the first kernel until the budget of hours is spent:

    busy       a candidate is in the judge, or one is compiled or waits for that (the two share the
               cores, so one is held for the other)
    in judge   a candidate is in the judge
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import yaml
from common import processor, publish, report, versions

from cuda_sandbox.compiler import Compiler
from cuda_sandbox.signature import Signature
from evo.config import RunConfig
from evo.executor import Executor, Job, Purpose
from evo.executors.local import LocalExecutor
from evo.machine import Machine
from evo.plan import plan
from evo.sitting import run
from evo.watch import Watch
from fitness.description import TaskDescription
from fitness.evaluation import Evaluation, Seconds
from tests.evo.fakes import timed
from tests.evo.pen import idea
from tests.loopback import Asked, Loopback, Said

ROOT = Path(__file__).resolve().parents[1]
WARM_UP_S = 60.0
EVALUATION_S = 1.0
SOURCE = (ROOT / "benchmarks" / "kernels" / "softmax.cpp").read_text(encoding="utf-8")
Span = tuple[float, float]


def write(asked: Asked) -> Said:
    """Ideas, or a kernel that no one wrote before and that is right."""
    chance = random.Random(f"{asked.text}{time.monotonic_ns()}")
    if "ideas" in (asked.schema or {}).get("properties", {}):
        ideas = [idea(chance) for _ in range(3)]
        return Said(json.dumps({"analysis": "it waits for memory", "ideas": ideas}), 500)
    number = f"#define SCHEDULE {chance.randrange(10**9)}"
    return Said(f"Idea: another schedule\n\n```cpp\n{number}\n{SOURCE}\n```\n", 2_000)


def configuration(server: Loopback, seconds: float) -> dict[str, object]:
    """Four islands, mutation by a model alone; what is not written is the default."""
    model = {
        "name": "loopback",
        "provider": "openai",
        "base_url": server.openai_url,
        "price": {"input": 2, "output": 8},
        "concurrency": 32,
    }
    return {
        "name": "overlap",
        "task": str(ROOT / "configs" / "tasks" / "softmax_cpu.py"),
        "devices": "cpu",
        "population": {"size": 4, "offspring": 8, "elite": 1, "islands": 4},
        "variation": {"rates": {"mutation": 0.8, "crossover": 0.2}, "ideas": 2, "branches": 2},
        "authors": [{"name": "llm", "models": [model]}],
        "budget": {
            "generations": None,
            "evaluations": None,
            "hours": seconds / 3600,
            "tokens": None,
            "dollars": None,
        },
    }


class Meter:
    """When jobs came in and when their verdicts went out; when a candidate was in the judge."""

    def __init__(self) -> None:
        self.outstanding: list[Span] = []
        self.judged: list[Span] = []

    def follow(self, job: Job, future: Future[Evaluation]) -> Future[Evaluation]:
        """Note a job of the search."""
        if job.purpose is not Purpose.CERTIFY:
            future.add_done_callback(partial(self._done, time.monotonic()))
        return future

    def _done(self, begun: float, future: Future[Evaluation]) -> None:
        ended = time.monotonic()
        self.outstanding.append((begun, ended))
        if not future.cancelled() and not future.exception():
            seconds = future.result().seconds.evaluate
            if seconds is not None:
                self.judged.append((ended - seconds, ended))


class RealJudge(LocalExecutor):
    """The executor of this machine under a meter."""

    meter: Meter

    def submit(self, job: Job) -> Future[Evaluation]:
        """See `LocalExecutor`."""
        return self.meter.follow(job, super().submit(job))


class SteadyJudge:
    """Compiles as the product does, then takes the same time for each kernel, one at a time."""

    def __init__(self, machine: Machine, signature: Signature, meter: Meter) -> None:
        self.devices, self.hardware = machine.devices, machine.hardware
        self._arch, self._signature, self._meter = machine.arch, signature, meter
        self._compiler = Compiler()
        self._seat = ThreadPoolExecutor(1)

    def submit(self, job: Job) -> Future[Evaluation]:
        """The verdict, which depends on the source alone."""
        future: Future[Evaluation] = Future()
        future.set_running_or_notify_cancel()
        compiled = self._compiler.submit(job.kernel, self._signature, self._arch)
        compiled.add_done_callback(lambda _: self._seat.submit(self._judge, job, future))
        return self._meter.follow(job, future)

    def _judge(self, job: Job, future: Future[Evaluation]) -> None:
        time.sleep(EVALUATION_S)
        ms = random.Random(job.kernel.source).uniform(1, 10)
        found = timed(ms, device=self.hardware)
        future.set_result(replace(found, seconds=Seconds(evaluate=EVALUATION_S)))

    def heed(self, say: Callable[[str], None]) -> None:
        """No device is ever taken out."""

    def close(self) -> None:
        """Stop."""
        self._seat.shutdown(cancel_futures=True)
        self._compiler.close()


def share(spans: Iterable[Span], begun: float, ended: float) -> float:
    """The part of the time from ``begun`` to ``ended`` that at least one span covers."""
    covered, until = 0.0, begun
    for start, end in sorted(spans):
        start, end = max(start, until), min(end, ended)
        if end > start:
            covered, until = covered + end - start, end
    return covered / (ended - begun)


def measure(seconds: float, latency_s: float, real: bool) -> list[tuple[str, str]]:
    """Run, and what the meter says."""
    meter = Meter()

    def make(
        machine: Machine, task_path: Path, task: TaskDescription, config: RunConfig
    ) -> Executor:
        if not real:
            return SteadyJudge(machine, task.signature, meter)
        judge = RealJudge(machine, task_path, task.signature, config.fitness.demand)
        judge.meter = meter
        return judge

    with Loopback(write, latency_s=latency_s) as server:
        Path("overlap.yaml").write_text(yaml.safe_dump(configuration(server, seconds)))
        run(plan("overlap.yaml", (), new=False), Watch(), make)
    first = min(start for start, _ in meter.outstanding)
    window = (first + WARM_UP_S, first + seconds - 10)
    lengths = [end - start for start, end in meter.judged if window[0] <= start <= window[1]]
    return [
        ("busy", f"{share(meter.outstanding, *window):.1%}"),
        ("in judge", f"{share(meter.judged, *window):.1%}"),
        ("seconds counted", f"{window[1] - window[0]:.0f}"),
        ("verdicts", f"{len(lengths)}, {statistics.median(lengths):.2f} s each (median)"),
        ("answers of the model", f"{len(server.log)}, up to {server.busiest} at once"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=240.0, help="of the whole search")
    parser.add_argument("--latency", type=float, default=2.0, help="of the model, in seconds")
    parser.add_argument("--real-judge", action="store_true", help="PyTorch's times and all")
    parser.add_argument("--save", metavar="NAME", help="write benchmarks/results/NAME.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rows = measure(options.seconds, options.latency, options.real_judge)
        os.chdir(ROOT)
    load = f"{os.getloadavg()[0]:.1f} (1 minute)"
    facts = {"device": processor(), "versions": versions("torch", "openai"), "load": load}
    title = f"Authors and judge side by side: 4 islands, a model of {options.latency:g} s"
    publish(report(title, rows, facts), options.save)


if __name__ == "__main__":
    main()
