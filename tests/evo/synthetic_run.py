"""A run made up for the tests of the reports: seeded, realistic, hostile in its texts."""

from __future__ import annotations

import hashlib
import math
import random
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Resources, Status
from cuda_sandbox.signature import Role, Signature, TensorSpec
from evo.individual import Birth, Individual
from evo.recorder import Recorder
from evo.records import Generation, Migration, RunInfo, Spent, State
from evo.report.view import RunView
from fitness.description import TaskDescription
from fitness.evaluation import Baseline, Demand, Evaluation, Interval, Precision, Seconds, Tier
from operators.idea import Category, Idea

TASK_SOURCE = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.softmax(x, dim=self.dim)


def get_inputs():
    return [torch.rand(64, 512)]


def get_init_inputs():
    return [1]
"""

IDEAS = [
    ("keep the row in registers between the two passes", Category.MEMORY),
    ("load four floats at once through float4", Category.MEMORY),
    ("prefetch the next row with cp.async while this one is reduced", Category.ASYNCHRONY),
    ("one online pass for maximum and sum", Category.COMPUTE),
    ("use exp2 with a folded constant", Category.COMPUTE),
    ("accumulate the sum in half precision", Category.PRECISION),
    ("two rows per block to fill the SM", Category.PARALLELISM),
    ("warp shuffles instead of shared memory for the reduction", Category.PARALLELISM),
    ("unroll the inner loop eight times", Category.CONTROL),
]
FAILURES = [
    (Status.COMPILE_ERROR, "kernel.cu:41: error: expected a ';'"),
    (Status.INCORRECT, "error 3.1e-02 on constant rows, 4.0 allowed times 1.2e-07"),
    (Status.INCORRECT, "tier: half measured, fp32 demanded"),
    (Status.LAUNCH_ERROR, "launch returned 98: cooperative launch cannot be captured"),
    (Status.TIMEOUT, "no answer within 20 s"),
    (Status.HACK, "output unchanged when its inputs changed"),
    (Status.REJECTED, "calls cublasSgemm, which a kernel may not"),
    (Status.CRASHED, "illegal address </script><b>boom</b>"),
]
EAGER_MS = 1.05


def source_of(idea: str, lines: int, rng: random.Random) -> str:
    body = "\n".join(
        f"  float v{n} = x[row * X_D1 + {rng.randrange(64)}];  // {idea}" for n in range(lines)
    )
    return (
        "// a </script><script>window.hacked = true</script> & <b>hostile</b> comment\n"
        "__global__ void softmax_rows(const float* x, float* out) {\n"
        f"{body}\n}}\n"
        'extern "C" int launch(const float* x, float* out, void* w, cudaStream_t s) {\n'
        "  softmax_rows<<<X_D0, 256, 0, s>>>(x, out);\n  return cudaGetLastError();\n}\n"
    )


def verdict(speedup: float, **changes: object) -> Evaluation:
    ms = EAGER_MS / speedup
    facts: dict[str, object] = {
        "status": Status.OK,
        "precision": Precision(Tier.FP32, 2.1e-7, 8.0e-8, 2.4e-7, 9.0e-8, "outliers"),
        "time_ms": Interval(ms, ms * 0.99, ms * 1.012),
        "baselines": {
            "eager": Baseline(Interval(EAGER_MS, 1.04, 1.06), Tier.FP32),
            "graph": Baseline(Interval(1.03, 1.02, 1.04), Tier.FP32),
            "compile": Baseline(Interval(0.843, 0.84, 0.85), Tier.FP32),
        },
        "speedup": {"eager": speedup, "compile": speedup * 0.8, "best": speedup * 0.8},
        "roofline_share": min(0.97, 0.5 * speedup),
        "roofline_ceiling": "bandwidth",
        "device": "NVIDIA H200",
        "seconds": Seconds(1.4, 0.45),
        "resources": (Resources("softmax_rows", 40, 4096, 0, 0),),
    }
    return Evaluation(**{**facts, **changes})  # type: ignore[arg-type]


def failure(status: Status, reason: str) -> Evaluation:
    return Evaluation(status, reason, device="NVIDIA H200", seconds=Seconds(1.1, 0.3))


def individual(
    name: str, birth: Birth, source: str, evaluation: Evaluation | None, language: str = "cuda"
) -> Individual:
    kernel = Kernel(source, language)
    made = Individual(name, kernel, hashlib.sha256(source.encode()).hexdigest(), birth, evaluation)
    if evaluation and evaluation.correct:
        made.fitness.values = (evaluation.speedup["eager"],)
    return made


def description() -> TaskDescription:
    signature = Signature(
        "softmax",
        (TensorSpec("x", "float32", (64, 512), Role.INPUT),),
        (TensorSpec("out", "float32", (64, 512), Role.OUTPUT),),
    )
    return TaskDescription("softmax", TASK_SOURCE, signature, ())


def info(state: State = State.FINISHED) -> RunInfo:
    return RunInfo(
        name="softmax-demo",
        config="name: softmax-demo\nbudget: {generations: 5, evaluations: 500}\n",
        task=description(),
        demand=Demand(),
        language="cuda",
        header="#define X_D0 64\n#define X_D1 512\n",
        environment={"python": "3.12.3", "torch": "2.11.0"},
        created="2026-01-02T03:04:05+00:00",
        state=state,
        outcome="5 generations done",
    )


@dataclass
class Maker:
    """Grows a population of ``islands`` for ``generations``, ``width`` children each."""

    seed: int = 7
    islands: int = 2
    generations: int = 5
    width: int = 14
    members: list[Individual] = field(default_factory=list)
    migrations: list[Migration] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.pools: dict[int, list[Individual]] = {n: [] for n in range(self.islands)}

    def grow(self) -> RunView:
        for island in range(self.islands):
            for slot in range(2):
                self.port(island, slot)
        for generation in range(1, self.generations + 1):
            for island in range(self.islands):
                if generation % 2 == 0:
                    self.migrate(island, generation)
                for slot in range(self.width):
                    self.child(island, generation, slot)
        spent = Spent(len(self.members), 5400.0, 0, 0.0)
        return RunView(info(), tuple(self.members), tuple(self.migrations), spent)

    def port(self, island: int, slot: int) -> None:
        name = f"{island}-0-{slot}"
        idea = Idea("one block per row, three passes", Category.PARALLELISM, "catalogue")
        birth = Birth(island, 0, "port", "catalogue", (), idea)
        speed = 0.2 + 0.1 * self.rng.random()
        self.add(individual(name, birth, source_of("port", 12, self.rng), verdict(speed)))

    def migrate(self, island: int, generation: int) -> None:
        target = (island + 1) % self.islands
        if target == island:
            return
        earlier = [one for one in self.pools[island] if one.birth.generation < generation]
        best = max(earlier, key=lambda each: each.fitness.values[0])
        self.migrations.append(Migration(best.id, island, target, generation - 1, generation))
        self.pools[target].append(best)

    def child(self, island: int, generation: int, slot: int) -> None:
        earlier = [one for one in self.pools[island] if one.birth.generation < generation]
        pool = sorted(earlier, key=lambda each: -each.fitness.values[0])[:8]
        operator = self.rng.choices(["mutation", "crossover", "tuning", "repair"], [7, 1, 2, 1])[0]
        chosen = [self.rng.choice(pool[: 1 + len(pool) // 2])]
        if operator == "crossover" and len(pool) > 1:
            chosen.append(self.rng.choice([each for each in pool if each is not chosen[0]]))
        text, category = self.rng.choice(IDEAS)
        idea = None if operator == "tuning" else Idea(text, category, "catalogue")
        parents = tuple(each.id for each in chosen)
        birth = Birth(island, generation, operator, "catalogue", parents, idea)
        before = chosen[0].fitness.values[0]
        speed = before * math.exp(self.rng.gauss(0.02, 0.22))
        fails = self.rng.random() < 0.3
        outcome = failure(*self.rng.choice(FAILURES)) if fails else verdict(speed)
        source = source_of(text, 12 + self.rng.randrange(20), self.rng)
        self.add(individual(f"{island}-{generation}-{slot}", birth, source, outcome))

    def add(self, one: Individual) -> None:
        self.members.append(one)
        if one.fitness.valid:
            self.pools[one.birth.island].append(one)


def synthetic(**options: int) -> RunView:
    """About 150 kernels on two islands unless told otherwise."""
    return Maker(**options).grow()


def record(view: RunView, folder: Path, created: str | None = None) -> Path:
    """Write the run's store as the engine would; returns ``folder``."""
    about = replace(view.info, created=created or view.info.created, best=view.winner)
    with closing(Recorder.create(folder, about)) as recorder:
        recorder.add_event("sitting", "synthetic")
        for one in view.individuals:
            recorder.add_individual(one)
            if one.evaluation:
                recorder.add_evaluation(one.digest, "NVIDIA H200", "search", one.evaluation)
        last = max(one.birth.generation for one in view.individuals)
        for number in range(last + 1):
            for island in sorted({one.birth.island for one in view.individuals}):
                here = [m for m in view.migrations if (m.target, m.taken_in) == (island, number)]
                sent = [m for m in view.migrations if (m.source, m.sent_in) == (island, number)]
                arrived = tuple(move.individual for move in here)
                recorder.start_generation(Generation(island, number, (), arrived))
                leaving = [(move.individual, move.target) for move in sent]
                recorder.close_generation(island, number, (), leaving)
    return folder
