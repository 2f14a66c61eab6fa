"""PyTorch's own times: eager, under a CUDA graph, compiled; measured once and kept."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from cuda_sandbox.cache import cache_dir
from cuda_sandbox.slot import timing_slot
from fitness.errors import TaskError
from fitness.evaluation import Baseline, Interval, Precision, Tier
from fitness.hardware import Ceilings, device_name, slot, write_json
from fitness.reference import exact
from fitness.roofline import impossible
from fitness.stopwatch import Stopwatch
from fitness.timing import Effort, interval, sample

if TYPE_CHECKING:
    from fitness.loaded import LoadedTask

Call = Callable[[], object]

_EFFORT = Effort(least=15, most=100, seconds=2.0, width=0.005)


@contextlib.contextmanager
def _eager(task: LoadedTask) -> Iterator[Call]:
    with task.prepared() as call:
        yield call


@contextlib.contextmanager
def _eager_no_tf32(task: LoadedTask) -> Iterator[Call]:
    def without(call: Call) -> object:
        with exact():  # around each call: in one sitting other modes are timed in between
            return call()

    with task.prepared() as call:
        yield lambda: without(call)


@contextlib.contextmanager
def _graph(task: LoadedTask) -> Iterator[Call]:
    with task.prepared() as call:
        side = torch.cuda.Stream(task.device)
        with torch.cuda.stream(side):
            for _ in range(3):
                call()
        torch.cuda.current_stream(task.device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = call()
        yield graph.replay
        del kept


@contextlib.contextmanager
def _compiled(task: LoadedTask) -> Iterator[Call]:
    torch._dynamo.reset()
    with task.prepared(torch.compile) as call:
        yield call


MODES: dict[str, Callable[[LoadedTask], contextlib.AbstractContextManager[Call]]] = {
    "eager": _eager,
    "eager_no_tf32": _eager_no_tf32,
    "graph": _graph,
    "compile": _compiled,
}
"""Each makes PyTorch ready in one mode and hands out a call on the task's own inputs."""

ON_GPU_ONLY = frozenset({"graph", "eager_no_tf32"})

_SETTLE_S = 20.0
_BETTER = 0.95
"""How long PyTorch may take to show its best, and what share of its time counts as better."""


class Baselines:
    """The baselines of one task on one device, from the user's cache where they are known.

    ``tier`` is the precision that PyTorch's default flags compute in.
    """

    def __init__(
        self, task: LoadedTask, tier: Tier | None, threads: int, ceilings: Ceilings
    ) -> None:
        self._task = task
        self._ceilings = ceilings
        self._tier = tier
        self._folder = _folder(task, threads)
        self._stopwatch = Stopwatch(task.device)
        self._failed: dict[str, str] = {}

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes that apply to this task on this device."""
        on_gpu = self._task.device.type == "cuda"
        names = [name for name in MODES if on_gpu or name not in ON_GPU_ONLY]
        if self._tier in (Tier.FP32, None):
            names = [name for name in names if name != "eager_no_tf32"]
        return tuple(names)

    @property
    def failed(self) -> dict[str, str]:
        """Modes that PyTorch could not run, and why."""
        return dict(self._failed)

    def known(self) -> dict[str, Baseline]:
        """What was measured already, by mode."""
        found = {mode: self._path(mode) for mode in self.modes}
        return {mode: _read(path) for mode, path in found.items() if path.exists()}

    def eager(self) -> Baseline:
        """PyTorch as the task has it. Raises TaskError where it cannot be timed."""
        found = self.get("eager")
        if "eager" not in found:
            raise TaskError(
                f"{self._task.description.name}: PyTorch itself fails on {self._task.device}: "
                f"{self._failed['eager']}"
            )
        return found["eager"]

    def get(self, *modes: str) -> dict[str, Baseline]:
        """The baselines asked for, measured now where they are not known; failures are left out."""
        for mode in modes:
            if mode in self.modes and not self._path(mode).exists() and mode not in self._failed:
                self._measure(mode)
        return {mode: found for mode, found in self.known().items() if mode in modes}

    def keep_faster(self, found: dict[str, Baseline]) -> None:
        """Keep what PyTorch reached in a later sitting where it is faster than what is known."""
        known = self.known()
        for mode, again in found.items():
            faster = mode in known and again.time_ms.median < known[mode].time_ms.median
            if faster and not self._impossible(again.time_ms):
                write_json(self._path(mode), asdict(again))

    @contextlib.contextmanager
    def ready(self, mode: str) -> Iterator[Callable[[], float]]:
        """A call that times PyTorch once in ``mode`` (ms), for interleaving with kernels."""
        with warnings.catch_warnings(), MODES[mode](self._task) as call:
            warnings.simplefilter("ignore")
            for _ in range(3):
                call()
            yield lambda: self._stopwatch(call)

    def _measure(self, mode: str) -> None:
        try:
            with self.ready(mode) as timed, timing_slot(slot(self._task.device)):
                found = self._settled(timed)
        except Exception as error:  # noqa: BLE001  whatever PyTorch throws: one mode less, and why
            self._failed[mode] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            return
        if cheat := self._impossible(found):
            self._failed[mode] = f"its time cannot be trusted: {cheat}"
            return
        tier = Tier.FP32 if mode == "eager_no_tf32" else self._tier
        write_json(self._path(mode), asdict(Baseline(found, tier)))

    def _settled(self, timed: Callable[[], float]) -> Interval:
        """The best showing; on a CPU of several, until two in a row are no better.

        What else runs there (our own engine, writing its first kernels) slows PyTorch down by
        more than any kernel gains, and PyTorch's best is what a kernel has to beat.
        """
        best = interval(sample(timed, _EFFORT))
        calm = 2 if self._task.device.type == "cuda" else 0
        until = time.monotonic() + _SETTLE_S
        while calm < 2 and time.monotonic() < until:
            found = interval(sample(timed, _EFFORT))
            calm = 0 if found.median < _BETTER * best.median else calm + 1
            best = min(best, found, key=lambda one: one.median)
        return best

    def _impossible(self, found: Interval) -> str | None:
        return impossible(self._task.description, found.median, self._ceilings)

    def _path(self, mode: str) -> Path:
        return self._folder / f"{mode}.json"


def _folder(task: LoadedTask, threads: int) -> Path:
    known = (task.description.source, device_name(task.device, threads), torch.__version__)
    digest = hashlib.sha256("\0".join(known).encode()).hexdigest()[:24]
    return cache_dir() / "baselines" / digest


def _read(path: Path) -> Baseline:
    data = json.loads(path.read_text())
    tier = data["tier"]
    return Baseline(Interval(**data["time_ms"]), None if tier is None else Tier(tier))


def strongest(baselines: dict[str, Baseline], tier: Tier | None) -> Baseline | None:
    """The fastest baseline that is at least as precise as ``tier`` (any, where that is None)."""
    fit = [
        found
        for found in baselines.values()
        if tier is None or found.tier is None or found.tier.satisfies(tier)
    ]
    return min(fit, key=lambda found: found.time_ms.median, default=None)


def speedups(
    baselines: dict[str, Baseline], time_ms: Interval | None, precision: Precision | None
) -> dict[str, float]:
    """Baseline time / kernel time for eager, graph, compile and the best of the same precision."""
    if time_ms is None:
        return {}
    fastest = strongest(baselines, precision.tier if precision else None)
    named = ("eager", "graph", "compile")
    chosen = {mode: baselines[mode] for mode in named if mode in baselines}
    if fastest:
        chosen["best"] = fastest
    return {name: found.time_ms.median / time_ms.median for name, found in chosen.items()}
