"""Modules on a GPU: a captured call is replayed where it can be, else the module is called anew.

A module works on tensors of this process. They are filled from the judge's memory on the stream
just before the clock starts, so that work on a stream of the module's own that does not wait for
ours finds nothing to work on. Outputs are copied right behind the call, on the same stream: what
was not joined to it is not in them. The stream is held up until all of a call is queued: else work
on another might just be done in time, and what Python takes for it would look like hidden work.
After an untimed call the inputs go back to the judge, who sees whether they were changed.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from cuda_sandbox.protocol import Failure, Request
from fitness.module.runner.candidate import described
from fitness.module.runner.evidence import Operators, device_kernels
from fitness.module.runner.jail import Jail
from fitness.module.runner.orders import Orders, Refused, Spec, filled
from fitness.module.runner.outputs import blank, erase, wipe
from fitness.module.runner.stage import GIVEN, Stage, flushes

_SPIN_CYCLES = 200_000  # about 0.1 ms, as for PyTorch: the call is queued before the clock starts
_HOLD_CYCLES = 6_000_000_000  # three seconds' at a GPU's clock: after a rest Python is as slow
_LONGEST_HOLD_S = 0.05
# before any candidate can put others in their place
_clock: Callable[[], float] = time.perf_counter
_sleep: Callable[[int], None] = torch.cuda._sleep
_WARM_UPS = 3
_PEER_ACCESS = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS


def prepare() -> None:
    """Open the device before the jail is shut."""
    torch.cuda.set_device(0)
    _sleep(1000)
    torch.cuda.synchronize()


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_ubyte * 64),)


class _Memory:
    """Device memory that torch can look at without a copy."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            **{"shape": (nbytes,), "typestr": "|u1"},
            **{"data": (address, False), "version": 3},
        }


class CudaStage(Stage):
    """Calls the model on tensors of this process, filled from the judge's memory."""

    def __init__(
        self, model: nn.Module, orders: Orders, device: torch.device, *, captures: bool
    ) -> None:
        super().__init__(model, orders, device, captures=captures)
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        cache = torch.cuda.get_device_properties(device).L2_cache_size
        self._flush = torch.empty(2 * max(cache, 1 << 20), dtype=torch.uint8, device=device)
        self._leaves = list(blank(orders.leaves, device))
        self._graph: torch.cuda.CUDAGraph | None = None
        self._captured: Any = None
        self._operators: list[str] = []
        self._started = False
        self._hold_cycles = _SPIN_CYCLES
        self._has_begun = False
        self._waits = False
        self.put_parameters(self._leaves)

    @property
    def mode(self) -> str:
        """Whether a graph is replayed."""
        return "graph" if self._graph else "calls"

    def view(
        self, request: Request, descriptor: int, spec: Spec, jail: Jail
    ) -> Callable[[], Tensor]:
        """Over the judge's allocation, through CUDA IPC."""
        del descriptor, jail
        base = ctypes.c_uint64()
        handle = _Handle((ctypes.c_ubyte * 64)(*request.handle))
        opened = self._driver.cuIpcOpenMemHandle_v2(ctypes.byref(base), handle, _PEER_ACCESS)
        if opened != 0:
            raise RuntimeError(f"cuIpcOpenMemHandle: error {opened}")
        memory = _Memory(base.value + request.offset, request.nbytes)
        dtype = getattr(torch, spec.dtype)

        def fresh() -> Tensor:
            return torch.as_tensor(memory, device=self.device).view(dtype).view(spec.shape)

        return fresh

    def run(self, request: Request) -> list[float]:
        """Replay the captured call, or call the model."""
        if not self._started:
            self._start(request.index)
        timed = flushes(request)
        return [self._timed(request.index + i, self._call, timed) for i in range(request.calls)]

    def run_empty(self, request: Request) -> list[float]:
        """Everything but the call."""
        self.blank()  # made before any clock starts
        timed = flushes(request)
        return [self._timed(request.index + i, self._nothing, timed) for i in range(request.calls)]

    def settle(self) -> None:
        """Wait for all streams of the device."""
        self._synchronise()

    def trace(self) -> dict[str, Any]:
        """The kernels of one call, and the operators (of the captured call, if there is one)."""
        given, targets = self.shared(0)
        self._fill(given)
        operators, results = Operators(), []
        with nullcontext() if self._graph else operators:
            kernels, unseen = device_kernels(lambda: results.append(self._call()))
        self._clear(self._take(results[-1], targets), given, targets)
        self._synchronise()
        told = self._operators or operators.names()
        return {"kernels": kernels, "unseen": unseen, "operators": told}

    def _call(self) -> Any:
        if self._graph is not None:
            self._graph.replay()
            return self._captured
        return self._called()

    def _nothing(self) -> Any:
        if self._waits:
            self._synchronise()
        return self.blank()

    def _called(self) -> Any:
        leaves = [leaf.detach() for leaf in self._leaves]  # fresh objects: nothing sticks to them
        arguments = [filled(argument, leaves) for argument in self.orders.forward]
        with self.blamed():
            return self.model(*arguments)

    def _timed(self, index: int, call: Callable[[], Any], timed: bool) -> float:
        _sleep(self._hold_cycles)
        self._queue(index, call, timed)
        self._synchronise()
        before, after = self._events
        return float(before.elapsed_time(after))

    def _queue(self, index: int, call: Callable[[], Any], timed: bool) -> None:
        """Everything that the device has to do for a call."""
        before, after = self._events
        given, targets = self.shared(index)
        self._fill(given)
        if timed:
            self._flush.zero_()
        before.record()
        result = call()
        self._has_begun = before.query()
        after.record()
        returned = self._take(result, targets)
        if not timed:
            self._give_back(given)
        self._clear(returned, given, targets)

    def _queued_in_s(self, index: int) -> float:
        began = _clock()
        self._queue(index, self._call, timed=True)
        took = _clock() - began
        self._synchronise()
        return took

    def _waited(self, index: int) -> bool:
        """Whether a call comes back from a device that was held up only when that has begun.

        A call of nothing then has to wait as well: what is queued behind is not hidden by the hold.
        """
        self._timed(index, self._call, timed=True)
        return self._has_begun

    def _take(self, result: Any, targets: Sequence[Tensor]) -> list[Tensor]:
        return self.outputs.take(result, targets, self.given(self._leaves))

    def _fill(self, given: Sequence[Tensor]) -> None:
        for leaf, told in zip(self._leaves, given, strict=True):
            leaf.copy_(told)
        self.put_parameters(self._leaves)
        self.put_states(self._leaves)

    def _give_back(self, given: Sequence[Tensor]) -> None:
        for leaf, told, spec in zip(self._leaves, given, self.orders.leaves, strict=True):
            if spec.role in GIVEN:
                told.copy_(leaf)

    def _clear(
        self, returned: Sequence[Tensor], given: Sequence[Tensor], targets: Sequence[Tensor]
    ) -> None:
        """Neither an answer nor what was given is to be there before it is given again."""
        wipe(returned, (*self._leaves, *given, *targets), self.model)
        for leaf in self._leaves:
            erase(leaf)

    def _synchronise(self) -> None:
        """By the driver itself: torch's own function may have been replaced."""
        if error := self._driver.cuCtxSynchronize():
            name = ctypes.c_char_p()
            self._driver.cuGetErrorName(error, ctypes.byref(name))
            told = (name.value or b"").decode() or str(error)
            raise Refused(Failure.FAULT, f"the device reports {told}")

    def _start(self, index: int) -> None:
        """Call it a few times, as PyTorch wants it before a capture; then capture one call."""
        given, targets = self.shared(index)
        stream, side = torch.cuda.current_stream(), self._blocking_stream()
        for _ in range(_WARM_UPS):
            self._fill(given)
            side.wait_stream(stream)
            with torch.cuda.stream(side):
                returned = self._take(self._called(), targets)
            stream.wait_stream(side)
            self._synchronise()
            wipe(returned, (*self._leaves, *given, *targets), self.model)
        if self.captures:
            self._capture(given, side)
        queued_in_s = statistics.median(self._queued_in_s(index) for _ in range(_WARM_UPS))
        self._hold_cycles += int(_HOLD_CYCLES * min(queued_in_s, _LONGEST_HOLD_S))
        self._waits = self._graph is None and all(self._waited(index) for _ in range(_WARM_UPS))
        self._started = True

    def _blocking_stream(self) -> torch.cuda.Stream:
        """One that the default stream waits for, and the other way round.

        PyTorch's own are not: while one of them is captured, what a module launches on the
        default stream would run at once, and silently be left out of every replay.
        """
        made = ctypes.c_void_p()
        if error := self._driver.cuStreamCreate(ctypes.byref(made), 0):
            raise RuntimeError(f"cuStreamCreate: error {error}")
        return torch.cuda.ExternalStream(made.value, device=self.device)

    def _capture(self, given: Sequence[Tensor], stream: torch.cuda.Stream) -> None:
        self._fill(given)
        self._synchronise()
        graph, operators = torch.cuda.CUDAGraph(), Operators()
        try:
            with torch.cuda.graph(graph, stream=stream), operators:
                captured = self._called()
        except Exception as error:  # whatever it is: it will be called anew, in a new process
            reason = described(self.orders.source, "capture", error)
            raise Refused(Failure.NOT_CAPTURED, f"not captured: {reason}") from error
        self._graph, self._captured, self._operators = graph, captured, operators.names()
