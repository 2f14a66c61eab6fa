"""PyTorch's own times, in every way it can run a task; measured once and kept."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from cuda_sandbox.cache import cache_dir, write_json
from cuda_sandbox.slot import timing_slot
from fitness.baseline_process import Request, started
from fitness.errors import TaskError
from fitness.evaluation import Baseline, Interval, Precision, Tier
from fitness.hardware import Ceilings, device_name, slot
from fitness.modes import MODES, Facts
from fitness.roofline import impossible
from fitness.stopwatch import Stopwatch
from fitness.timing import Effort, interval, sample

if TYPE_CHECKING:
    from fitness.loaded import LoadedTask

_EFFORT = Effort(least=15, most=100, seconds=2.0, width=0.005)
_GLANCE = Effort(least=5, most=20, seconds=0.3, width=0.01)

_SETTLE_S = 20.0
BETTER = 0.95
"""How long PyTorch may take to show its best, and what share of its time counts as better."""

DEADLINE_S = 300.0
_PATIENCE_S = 480.0
"""What torch.compile may take in one of its modes, measuring included, and in all of them."""

_FORGIVEN_S = 24 * 3600.0
"""After so long a mode that failed to compile is tried again."""


class Baselines:
    """The baselines of one task on one device, from the user's cache where they are known.

    ``tier`` is the precision that PyTorch's flags as they are compute in. Kept for each task text,
    device, version of PyTorch and setting of its precision flags.
    """

    def __init__(
        self,
        task: LoadedTask,
        tier: Tier | None,
        threads: int,
        ceilings: Ceilings,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._task = task
        self._ceilings = ceilings
        self._tier = tier
        self._threads = threads
        self._deadline_s = deadline_s
        self._patience_s = _PATIENCE_S
        self._folder = _folder(task, threads)
        self._stopwatch = Stopwatch(task.device)
        self._failed: dict[str, str] = {}

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes that apply to this task on this device."""
        facts = Facts.of(self._task.description, self._task.device, self._tier)
        return tuple(name for name, mode in MODES.items() if mode.applies(facts))

    def same_precision(self, tier: Tier | None) -> tuple[str, ...]:
        """Quick modes that compute as coarsely as ``tier`` allows, beside those at full precision.

        A tf32 or half kernel has to beat PyTorch at its own game.
        """
        if tier is None or tier is Tier.FP32:
            return ()
        found = ((name, MODES[name]) for name in self.modes)
        return tuple(
            name
            for name, mode in found
            if not mode.slow and mode.tier and mode.tier.satisfies(tier)
        )

    @property
    def failed(self) -> dict[str, str]:
        """Modes without a figure, and why."""
        return {mode: why for mode in self.modes if (why := self._failure(mode))}

    def known(self) -> dict[str, Baseline]:
        """What was measured already, by mode."""
        found = {mode: self._path(mode) for mode in self.modes}
        return {mode: _read(path) for mode, path in found.items() if path.exists()}

    def eager(self) -> Baseline:
        """PyTorch as the task has it. Raises TaskError where it cannot be timed.

        What an earlier process found is tried once more: it may have been a busy moment.
        """
        known = self.known().get("eager")
        if known and self._again("eager").median < BETTER * known.time_ms.median:
            self.keep_faster({"eager": Baseline(self._time("eager"), known.tier)})
        found = self.get("eager")
        if "eager" not in found:
            raise TaskError(
                f"{self._task.description.name}: PyTorch itself fails on {self._task.device}: "
                f"{self._failed['eager']}"
            )
        return found["eager"]

    def get(self, *modes: str) -> dict[str, Baseline]:
        """The baselines asked for, measured now where they are not known; failures are left out."""
        new = [
            mode
            for mode in modes
            if mode in self.modes and not self._path(mode).exists() and not self._failure(mode)
        ]
        for mode in new:
            if not MODES[mode].slow:
                with self._or_failed(mode):
                    self._keep(mode, self._time(mode))
        slow = [mode for mode in new if MODES[mode].slow]
        beside = [mode for mode in slow if not MODES[mode].tunes]
        self._measure_elsewhere(beside)
        for mode in slow:
            # Beside each other there may have been too little memory for one of them.
            if mode not in beside or (len(beside) > 1 and mode in self._failed):
                self._measure_elsewhere([mode])
        return {mode: found for mode, found in self.known().items() if mode in modes}

    def keep_faster(self, found: dict[str, Baseline]) -> None:
        """Keep what PyTorch reached in a later sitting where it is faster than what is known."""
        known = self.known()
        for mode, again in found.items():
            faster = mode in known and again.time_ms.median < known[mode].time_ms.median
            if faster and not self._impossible(again.time_ms):
                write_json(self._path(mode), asdict(again))

    def ready(self, mode: str) -> contextlib.AbstractContextManager[Callable[[], float]]:
        """A call that times PyTorch once in ``mode`` (ms), for interleaving with kernels.

        Slow modes get ready in a process of their own, for which the first call waits.
        """
        if MODES[mode].slow:
            return started(self._request(mode), self._ceilings, self._deadline_s)
        return self.here(mode)

    @contextlib.contextmanager
    def here(self, mode: str) -> Iterator[Callable[[], float]]:
        """As `ready`, in this process whatever the mode."""
        with warnings.catch_warnings(), MODES[mode].prepare(self._task) as call:
            warnings.simplefilter("ignore")
            for _ in range(3):
                call()
            yield lambda: self._stopwatch(call)

    def settled(self, timed: Callable[[], float]) -> Interval:
        """The best showing; on a CPU of several, until two in a row are no better.

        What else runs there (our own engine, writing its first kernels) slows PyTorch down by
        more than any kernel gains, and PyTorch's best is what a kernel has to beat.
        """
        with timing_slot(slot(self._task.device)):
            best = interval(sample(timed, _EFFORT))
            calm = 2 if self._task.device.type == "cuda" else 0
            until = time.monotonic() + _SETTLE_S
            while calm < 2 and time.monotonic() < until:
                found = interval(sample(timed, _EFFORT))
                calm = 0 if found.median < BETTER * best.median else calm + 1
                best = min(best, found, key=lambda one: one.median)
            return best

    def _time(self, mode: str) -> Interval:
        with self.here(mode) as timed:
            return self.settled(timed)

    def _again(self, mode: str) -> Interval:
        """A quick look at a mode."""
        with self.here(mode) as timed, timing_slot(slot(self._task.device)):
            return interval(sample(timed, _GLANCE))

    @contextlib.contextmanager
    def _or_failed(self, mode: str) -> Iterator[None]:
        """Whatever PyTorch throws within: one mode less, and why."""
        try:
            yield
        except Exception as error:  # noqa: BLE001
            self._fail(mode, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")

    def _keep(self, mode: str, found: Interval) -> None:
        if cheat := self._impossible(found):
            self._fail(mode, f"its time cannot be trusted: {cheat}")
            return
        self._failed.pop(mode, None)
        self._failure_path(mode).unlink(missing_ok=True)
        tier = MODES[mode].tier or self._tier
        write_json(self._path(mode), asdict(Baseline(found, tier)))

    def _measure_elsewhere(self, modes: Sequence[str]) -> None:
        """In processes that can be killed, for a compiler may run for ever, or crash.

        They get ready beside each other; no clock runs before all of them are.
        """
        began = time.monotonic()
        deadline_s = min(self._deadline_s, self._patience_s)
        with contextlib.ExitStack() as stack:
            found = {
                mode: stack.enter_context(started(self._request(mode), self._ceilings, deadline_s))
                for mode in modes
            }
            ready = []
            for mode, process in found.items():
                with self._or_failed(mode):
                    process.get_ready()
                    ready.append(mode)
            for mode in ready:
                with self._or_failed(mode):
                    self._keep(mode, found[mode].settled())
        self._patience_s = max(1.0, self._patience_s - (time.monotonic() - began))

    def _request(self, mode: str) -> Request:
        file = self._task.reference.file.path
        return Request(str(file), str(self._task.device), self._threads, mode, self._tier)

    def _impossible(self, found: Interval) -> str | None:
        return impossible(self._task.description, found.median, self._ceilings)

    def _path(self, mode: str) -> Path:
        return self._folder / f"{mode}.json"

    def _failure_path(self, mode: str) -> Path:
        return self._folder / f"{mode}.failed"

    def _fail(self, mode: str, why: str) -> None:
        """Note a failure; one that took long also for the processes that come after us."""
        self._failed[mode] = why
        if MODES[mode].slow:
            write_json(self._failure_path(mode), {"why": why})

    def _failure(self, mode: str) -> str:
        if mode not in self._failed:
            path = self._failure_path(mode)
            with contextlib.suppress(OSError, ValueError, KeyError):
                if time.time() - path.stat().st_mtime < _FORGIVEN_S:
                    self._failed[mode] = json.loads(path.read_text())["why"]
        return self._failed.get(mode, "")


def precision_flags() -> str:
    """PyTorch's switches that change what its products compute in."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    found = {
        "matmul tf32": matmul.allow_tf32,
        "cudnn tf32": cudnn.allow_tf32,
        "fp16 sums": matmul.allow_fp16_reduced_precision_reduction,
        "bf16 sums": matmul.allow_bf16_reduced_precision_reduction,
    }
    return ", ".join(f"{name} {'on' if value else 'off'}" for name, value in found.items())


def _folder(task: LoadedTask, threads: int) -> Path:
    device = device_name(task.device, threads)
    known = (task.description.source, device, torch.__version__, precision_flags())
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


def _fastest(baselines: dict[str, Baseline], tier: Tier) -> Baseline | None:
    """The fastest baseline of exactly this tier."""
    fit = (found for found in baselines.values() if found.tier is tier)
    return min(fit, key=lambda found: found.time_ms.median, default=None)


def speedups(
    baselines: dict[str, Baseline], time_ms: Interval | None, precision: Precision | None
) -> dict[str, float]:
    """Baseline time / kernel time: for eager, graph, compile, and the strongest of three kinds.

    ``best``: at least as precise as the kernel; ``same``: of the very tier of the kernel;
    ``fp32``: uncompiled, at full float32 precision.
    """
    if time_ms is None:
        return {}
    tier = precision.tier if precision else None
    plain = {mode: found for mode, found in baselines.items() if mode.startswith("eager")}
    kinds = {
        **{mode: baselines.get(mode) for mode in ("eager", "graph", "compile")},
        "best": strongest(baselines, tier),
        "same": _fastest(baselines, tier) if tier else None,
        "fp32": _fastest(plain, Tier.FP32),
    }
    chosen = {name: found for name, found in kinds.items() if found}
    return {name: found.time_ms.median / time_ms.median for name, found in chosen.items()}
