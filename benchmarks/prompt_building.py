"""What it takes to build a prompt in a run that has 10,000 individuals, and to read the answer.

    python benchmarks/prompt_building.py [--individuals 10000] [--save prompt_building]

The run is made up: two islands, parents among all generations, sources of about 2 kB, several
hundred different ideas. Asking the store what was tried is part of it, as the search does it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common import processor, publish, report, spread, versions

from evo.individual import Individual
from evo.memory import Memory
from evo.store import Store
from operators.author import Branch
from operators.idea import Category, Idea
from operators.writing import code, ideas, request
from tests.evo import synthetic_run
from tests.operators.prompt_cases import SOFTMAX

GENERATIONS = 5
ANSWER = {"title": "Vector loads", "detail": "Read x as float4. " * 10, "category": "memory access"}


def timed(act: Callable[[], object]) -> float:
    """Milliseconds."""
    started = time.perf_counter()
    act()
    return (time.perf_counter() - started) * 1e3


def made_up(count: int, folder: Path) -> None:
    """A run of about ``count`` individuals."""
    texts = synthetic_run.IDEAS
    synthetic_run.IDEAS = [
        (f"{text}, in form {form}", category) for form in range(60) for text, category in texts
    ]
    view = synthetic_run.synthetic(generations=GENERATIONS, width=count // (2 * GENERATIONS))
    synthetic_run.record(view, folder)


def measure(store: Store, parents: list[Individual]) -> dict[str, list[float]]:
    """Milliseconds of each step, for every parent."""
    times: dict[str, list[float]] = {}
    horizon = (GENERATIONS, GENERATIONS)
    idea = Idea("Vector loads: read x as float4", Category.MEMORY, "llm")
    answer = json.dumps({"analysis": "", "ideas": [ANSWER] * 3})
    warm = Memory(store)
    for parent in parents:
        specimen, tried = warm.specimen(parent), warm.tried(parent.id, horizon)
        cold = Memory(store)  # nothing is remembered from the parent before
        steps: dict[str, Callable[[], object]] = {
            "ask the store, as the first of a generation": lambda one=parent, m=cold: (
                m.specimen(one),
                m.tried(one.id, horizon),
            ),
            "ask the store, as a later one": lambda one=parent, m=cold: (
                m.specimen(one),
                m.tried(one.id, horizon),
            ),
            "build the prompt for ideas": lambda s=specimen, t=tried: request.ideas(
                SOFTMAX, s, t, 3
            ),
            "build a prompt for code": lambda s=specimen: request.kernel(
                SOFTMAX, s, idea, Branch(0, 2)
            ),
            "build a prompt for a crossing": lambda s=specimen: request.crossover(
                SOFTMAX, (s, s), Branch(0, 2)
            ),
            "read ideas": lambda: ideas.read(answer, "llm"),
            "read a source": lambda s=specimen: code.read(
                f"```cuda\n{s.kernel.source}```", "cuda", s.kernel
            ),
        }
        for name, act in steps.items():
            times.setdefault(name, []).append(timed(act))
    first, later, built = list(times)[:3]
    sums = {
        f"a prompt for ideas, {name}": [a + b for a, b in zip(times[of], times[built], strict=True)]
        for name, of in (("first of its generation", first), ("a later one", later))
    }
    return {**sums, **times}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--individuals", type=int, default=10_000)
    parser.add_argument("--save", metavar="NAME", help="write benchmarks/results/NAME.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        made_up(options.individuals, run)
        with Store.open(run) as store:
            alive = [one for one in store.individuals() if one.fitness.valid]
            parents = random.Random(1).sample(alive, 100)
            count = store.rows("select count(*) from individuals")[0][0]
            times = measure(store, parents)
    rows = [(name, spread(values, "ms")) for name, values in times.items()]
    facts = {
        "device": processor(),
        "versions": versions("jinja2"),
        "individuals": str(count),
        "repetitions": "100 parents; median (minimum to maximum)",
    }
    publish(report("Building prompts", rows, facts), options.save)


if __name__ == "__main__":
    main()
