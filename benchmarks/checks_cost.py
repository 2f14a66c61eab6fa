"""What the judge's checks move in the time they measure: the same kernel with them and without.

    python benchmarks/checks_cost.py cpu  [--seconds 12] [--save checks_cost_cpu]
    python benchmarks/checks_cost.py cuda [--seconds 12] [--save checks_cost_cuda]

Where kernelevo is not installed: PYTHONPATH=. python3 benchmarks/checks_cost.py ...

Checked calls have fresh arguments, poisoned outputs, a worker that stands still in between, and are
compared afterwards. Bare ones are repeated on the same arguments, caches flushed before each, and
nothing else. Both are taken in turns, and so is a second bare worker: the A/A control, which says
how much two measurements of the same thing differ here. At most 0.5% may be the checks'.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from common import SOFTMAX, publish, report, versions

from cuda_sandbox.compiler import Compiler
from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import CompileReport
from cuda_sandbox.slot import timing_slot
from fitness.evaluation import Demand, Interval
from fitness.hardware import slot
from fitness.judge import Judge
from fitness.timing import Effort, interleave, interval, ratio

HERE = Path(__file__).parent
KERNELS = {"cpu": ("cpp", "kernels/softmax.cpp"), "cuda": ("cuda", "kernels/softmax.cu")}
SHAPES = {"cpu": ((1024, 4096), (32, 8192)), "cuda": ((4096, 65536), (800, 65536))}
"""None of a few microseconds: there the same kernel in two processes differed by 2% (H200)."""
Timed = Callable[[], float]


@contextlib.contextmanager
def checked(judge: Judge, kernel: Kernel, compiled: CompileReport) -> Iterator[Timed]:
    """Calls as every verdict makes them."""
    with judge.trial(kernel, compiled, judge.arena) as trial:
        yield lambda: trial.timed(judge.bank.timed)


@contextlib.contextmanager
def bare(judge: Judge, kernel: Kernel, compiled: CompileReport) -> Iterator[Timed]:
    """The same worker without the judge: flushed caches, the same arguments again and again."""
    from fitness import languages

    arena = judge.new_arena()
    try:
        with languages.find(kernel.language).worker(compiled, judge, arena) as worker:
            worker.bind(*arena.sets[1:])
            for at in range(len(arena)):
                arena.write(judge.bank.timed[0].leaves, at)
            yield lambda: worker.run(1, flush=True)[0]
    finally:
        arena.close()


def measured(judge: Judge, kernel: Kernel, seconds: float) -> dict[str, list[float]]:
    """Times in ms by way of measuring, taken in turns."""
    compiled = judge.compile(kernel)
    if compiled.object_key is None:
        raise RuntimeError(f"{compiled.status}: {compiled.reason}\n{compiled.log}")
    with contextlib.ExitStack() as stack:
        calls = {
            "bare": stack.enter_context(bare(judge, kernel, compiled)),
            "bare again": stack.enter_context(bare(judge, kernel, compiled)),
            "checked": stack.enter_context(checked(judge, kernel, compiled)),
        }
        stack.enter_context(timing_slot(slot(judge.device)))
        for call in calls.values():
            for _ in range(20):
                call()
        return interleave(calls, Effort(50, 100_000, seconds, 0.0), judge.rng)


def rows(name: str, times: dict[str, list[float]]) -> list[tuple[str, str]]:
    """The table's lines for one task."""
    found = [
        (f"{name}: {way}, {len(taken)} calls", _ms(times[way])) for way, taken in times.items()
    ]
    for way in ("bare again", "checked"):
        gap = ratio(times[way], times["bare"])
        medians = interval(times[way]).median / interval(times["bare"]).median
        found.append(
            (f"{name}: {way} / bare", f"{_percent(gap)}; medians {100 * medians - 100:+.2f}%")
        )
    return found


def _ms(taken: list[float]) -> str:
    found = interval(taken)
    return f"{found.median:.4g} ms [{found.low:.4g}, {found.high:.4g}]"


def _percent(found: Interval) -> str:
    low, middle, high = (100 * value - 100 for value in (found.low, found.median, found.high))
    return f"{middle:+.2f}% [{low:+.2f}, {high:+.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device", choices=KERNELS)
    parser.add_argument("--seconds", type=float, default=12.0, help="for each of the two tasks")
    parser.add_argument("--save", metavar="NAME", help="write benchmarks/results/NAME.md")
    options = parser.parse_args()
    language, path = KERNELS[options.device]
    kernel = Kernel((HERE / path).read_text(encoding="utf-8"), language)
    found: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as cache, Compiler(Path(cache)) as compiler:
        for count, columns in SHAPES[options.device]:
            task = Path(cache, f"softmax_{count}.py")
            task.write_text(SOFTMAX.format(rows=count, columns=columns), encoding="utf-8")
            judge = Judge(task, Demand(), options.device, compiler=compiler)
            shape = f"softmax {count}x{columns}"
            found += rows(shape, measured(judge, kernel, options.seconds))
            name = judge.name
            judge.close()
    facts = {"device": name, "kernel": f"`benchmarks/{path}`", "versions": versions("torch")}
    publish(
        report(f"What the checks cost in measured time, {options.device}", found, facts),
        options.save,
    )


if __name__ == "__main__":
    main()
