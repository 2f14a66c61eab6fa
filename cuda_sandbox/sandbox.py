"""A worker: one candidate's process in its jail, with deadlines, killed whatever it does."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from cuda_sandbox import wording
from cuda_sandbox.buffers import Buffers
from cuda_sandbox.cache import cache_dir as default_cache
from cuda_sandbox.process import Launch, Process, SandboxError, start
from cuda_sandbox.programs import Program
from cuda_sandbox.protocol import REPLY_BYTES, Flag, Kind, Layer, Op, Reply, Request
from cuda_sandbox.report import CandidateFailure, Status

__all__ = ["MOST_WORKSPACE_BYTES", "SandboxError", "Worker"]

MOST_WORKSPACE_BYTES = 16 << 30
_GUARDS_BYTES = 4 << 20  # address space that a worker spends around each tensor
_MOST_CALLS = 1_000_000
_MOST_THREADS = 256  # and four for each CPU
_GLANCE_S = 0.05
_SETTLE_S = 2.0  # what launch leaves running elsewhere may take this long


class Host(Protocol):
    """What knows the worker program of a language: its backend, or who stands for one."""

    def program(self, device: str, cache: Path) -> Program:
        """The worker for a device, built into the cache if it is not there yet."""


class Worker:
    """The process that holds one candidate; used as a context manager, which starts and kills it.

    ``backend`` is that of the kernel's language, ``object_path`` the compiled object, ``buffers``
    what is shared with it, ``device`` ``"cpu"`` or ``"cuda:N"``, ``threads`` how many OpenMP
    threads it has, pinned to that many of our CPUs (None: all). ``deadline_s`` bounds the start
    and each answer. Every method raises CandidateFailure once the candidate has failed, and
    SandboxError where the fault is ours.

    From ``bind`` on the process is stopped whenever nothing is asked of it: nobody in there looks
    at what is being written, works on what has been answered, or takes a CPU from others.
    """

    def __init__(
        self,
        backend: Host,
        object_path: Path,
        buffers: Buffers,
        *,
        device: str = "cpu",
        threads: int | None = None,
        deadline_s: float = 30.0,
        cache_dir: Path | None = None,
    ) -> None:
        self._buffers = buffers
        self._deadline_s = deadline_s
        self._serial = 0
        self._resting = False
        self._program = backend.program(device, cache_dir or default_cache())
        self._object = object_path
        self._cpus = sorted(os.sched_getaffinity(0))[:threads]
        self._most_workspace = _most_workspace(self._program.bounds_memory)
        self._process: Process | None = None
        self.workspace_bytes = 0
        self.layers: tuple[str, ...] = ()

    def __enter__(self) -> Worker:
        try:
            guards = _GUARDS_BYTES * (len(self._buffers.tensors) + 1)
            room = self._buffers.nbytes + guards + self._most_workspace
            self._process = self._start(room)
            start_s = self._program.start_s + self._deadline_s
            ready = self._receive(time.monotonic() + start_s, "its start")
            self._accept(ready)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, room: int) -> Process:
        """The process, which gets so many bytes of address space; it will say when it is ready."""
        return start(Launch(self._program, self._object, self._cpus, room))

    def bind(self, *more: Buffers) -> None:
        """Hand the buffers over, and the workspace the candidate asked for.

        On CUDA the worker then captures one call of ``launch`` and checks the graph's nodes. So it
        does for each of ``more``: further sets of buffers, which ``run`` goes through in turns.
        """
        for buffers in (self._buffers, *more):
            self._set_workspace(buffers)
            for handover in buffers.handovers():
                self._ask(handover.request, "taking a buffer", handover.descriptor)
            self._ask(Request(Op.BIND), "the first call of launch")
            self._settle()
        self._rest()

    def _settle(self) -> None:
        """See that launch left nothing running elsewhere: it would know the inputs in advance."""
        try:
            self._send(Request(Op.SETTLE), time.monotonic() + _SETTLE_S)
        except CandidateFailure as failure:
            if failure.status is not Status.TIMEOUT:
                raise
            reason = "launch left work running outside of the stream it was given"
            raise CandidateFailure(Status.HACK, reason) from failure

    def _set_workspace(self, buffers: Buffers) -> None:
        try:
            buffers.set_workspace(self.workspace_bytes)
        except MemoryError as error:
            reason = f"workspace_bytes() asks for {self.workspace_bytes} bytes: {error}"
            raise CandidateFailure(Status.REJECTED, reason) from error

    def run(self, calls: int, *, flush: bool) -> list[float]:
        """Call the kernel and return the time of each call in ms, by the worker's own clock.

        Call ``i`` is on set ``i`` of the buffers, in a circle. ``flush`` empties the caches (L2 on
        a GPU) before each call.
        """
        return self._timed(Op.RUN, calls, flush)

    def run_empty(self, calls: int, *, flush: bool) -> list[float]:
        """The same with a kernel that does nothing: the overhead that ``run`` contains, in ms."""
        return self._timed(Op.RUN_EMPTY, calls, flush)

    def run_bare(self, calls: int) -> list[float]:
        """Call a CUDA kernel so often, one call right behind the other, and wait for the last.

        Nothing else is done and no time told (the list is empty): that is for our own clock.
        """
        resting = self._resting
        self._ask(Request(Op.RUN, flags=Flag.BARE, calls=calls), "running")
        if resting:
            self._rest()
        return []

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Within, every thread of the worker stands still: nobody writes to what is compared."""
        resting = self._resting
        self._rest()
        self._await_stop(self._running())
        try:
            yield
        finally:
            if not resting:
                self._wake()

    def let_run(self, seconds: float) -> None:
        """Let a worker that rests go on for a while with whatever it has left to do."""
        self._wake()
        time.sleep(seconds)
        self._rest()

    def _rest(self) -> None:
        self._running().signal(signal.SIGSTOP)
        self._resting = True

    def _wake(self) -> None:
        self._resting = False
        self._running().signal(signal.SIGCONT)

    @property
    def output(self) -> str:
        """What the candidate printed, cut at 64 KiB; for people to read, never to believe."""
        return self._running().output()

    @property
    def pid(self) -> int:
        """The worker's PID on this host."""
        return self._running().pid

    def close(self) -> None:
        """Kill the worker and everything in its namespace; may be called twice."""
        if self._process is not None:
            self._process.kill()

    def _running(self) -> Process:
        if self._process is None:
            raise SandboxError("the worker has not been started: use it in a with statement")
        return self._process

    def _accept(self, ready: Reply) -> None:
        self.layers = tuple(str(layer.name).lower() for layer in Layer if layer & ready.b)
        if not 0 <= ready.a <= self._most_workspace:
            asked, most = ready.a & (1 << 64) - 1, self._most_workspace >> 20
            reason = f"workspace_bytes() asks for {asked} bytes; at most {most} MiB can be had"
            raise CandidateFailure(Status.REJECTED, reason)
        self.workspace_bytes = ready.a
        if self._program.bounds_memory:
            # It was started with room for the largest workspace there may be.
            self._running().give_back(self._most_workspace - self.workspace_bytes)

    def _timed(self, op: Op, calls: int, flush: bool) -> list[float]:
        if not 0 < calls <= _MOST_CALLS:
            raise ValueError(f"calls must be between 1 and {_MOST_CALLS}, not {calls}")
        resting = self._resting
        flags = Flag.FLUSH if flush else Flag.NONE
        deadline = time.monotonic() + self._deadline_s
        times = list(self._send(Request(op, flags=flags, calls=calls), deadline).times)
        while len(times) < calls:
            times += self._expect(self._receive(deadline, "running"), Kind.TIMES).times
        if resting:
            self._rest()
        if len(times) != calls or not all(math.isfinite(t) and t >= 0 for t in times):
            raise CandidateFailure(Status.HACK, "forged: the times it tells make no sense")
        return times

    def _ask(self, request: Request, doing: str, descriptor: int | None = None) -> None:
        self._send(request, time.monotonic() + self._deadline_s, doing, descriptor)

    def _send(
        self,
        request: Request,
        deadline: float,
        doing: str = "running",
        extra: int | None = None,
        wanted: Kind = Kind.DONE,
    ) -> Reply:
        """Send one request and return the (first) answer to it."""
        process = self._running()
        self._serial = secrets.randbits(32)  # nobody can answer what has not been asked yet
        frame = request.pack(self._serial)
        try:
            process.control.settimeout(max(0.001, deadline - time.monotonic()))
            if extra is None:
                process.control.send(frame)
            else:
                socket.send_fds(process.control, [frame], [extra])
            if self._resting:
                self._wake()
        except (BrokenPipeError, ConnectionResetError):
            raise self._death(doing) from None
        except TimeoutError:
            raise self._late(doing) from None
        if request.calls and not request.flags & Flag.BARE:
            wanted = Kind.TIMES
        return self._expect(self._receive(deadline, doing), wanted)

    def _receive(self, deadline: float, doing: str) -> Reply:
        """The next answer, or the failure that it tells of."""
        frame = self._frame(deadline, doing)
        if not frame:
            raise self._death(doing)
        if len(frame) != REPLY_BYTES:
            reason = f"forged: an answer of another size than ours during {doing}"
            raise CandidateFailure(Status.HACK, reason)
        reply = Reply.unpack(frame)
        if reply.kind in (Kind.FAILED, Kind.CRASHED):
            names = [tensor.name for tensor in self._buffers.tensors]
            sizes = [tensor.nbytes for tensor in self._buffers.tensors]
            raise wording.failure(reply, names, sizes, self.workspace_bytes, doing)
        return reply

    def _frame(self, deadline: float, doing: str) -> bytes:
        """What the worker sends next, empty if it is gone; threads are counted meanwhile."""
        control = self._running().control
        while (left := deadline - time.monotonic()) > 0:
            control.settimeout(max(0.001, min(left, _GLANCE_S)))
            try:
                return control.recv(REPLY_BYTES + 1)
            except TimeoutError:
                self._count_threads(doing)
            except ConnectionResetError:
                return b""
        raise self._late(doing)

    def _count_threads(self, doing: str) -> None:
        """No limit of the system's binds a process of root's: a flood ends here."""
        threads, most = self._running().threads(), _MOST_THREADS + 4 * len(self._cpus)
        if threads > most:
            self.close()
            reason = f"started {threads} threads during {doing}; at most {most} are allowed"
            raise CandidateFailure(Status.CRASHED, reason)

    def _expect(self, reply: Reply, kind: Kind) -> Reply:
        if reply.kind != kind or reply.serial != self._serial:
            reason = "forged: an answer in the worker's place, to what was not asked"
            raise CandidateFailure(Status.HACK, reason)
        return reply

    def _late(self, doing: str) -> CandidateFailure:
        return CandidateFailure(
            Status.TIMEOUT, f"no answer within {self._deadline_s:g} s to {doing}"
        )

    def _death(self, doing: str) -> CandidateFailure:
        code = self._running().exit_code()
        return CandidateFailure(
            Status.CRASHED, f"the process {wording.ending(code)} during {doing}"
        )

    def _await_stop(self, process: Process) -> None:
        deadline = time.monotonic() + self._deadline_s
        while not process.stopped():
            if time.monotonic() > deadline:
                raise self._late("being stopped")
            time.sleep(0.0002)


def _most_workspace(on_host: bool) -> int:
    """The limit on a workspace in bytes; on the host, half of the machine's memory if less."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(MOST_WORKSPACE_BYTES, memory // 2) if on_host else MOST_WORKSPACE_BYTES
