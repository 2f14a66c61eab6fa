"""Start and kill the jailed process of a worker."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cuda_sandbox import isolation
from cuda_sandbox.children import wait_for
from cuda_sandbox.isolation import Jail, Mount
from cuda_sandbox.programs import Program

OUTPUT_BYTES = 1 << 16
_START_S = 20.0  # bubblewrap itself takes milliseconds
_OWN_BYTES = 2 << 30  # address space of the worker itself, and of each thread's stack and heap
_THREAD_BYTES = 160 << 20


class SandboxError(Exception):
    """The sandbox itself failed: our fault or the machine's, never the candidate's."""


class Process:
    """A running worker: its control socket, what it printed, and the means to end it."""

    def __init__(
        self, popen: subprocess.Popen[bytes], control: socket.socket, output: int, pid: int
    ) -> None:
        self._popen = popen
        self.control = control
        self._output = output
        self.pid = pid
        self._closed = False
        try:
            self._handle = os.pidfd_open(pid)
        except ProcessLookupError:  # it is gone already: its constructors ended it
            self._handle = -1

    def output(self) -> str:
        """What was printed so far."""
        return os.pread(self._output, OUTPUT_BYTES, 0).decode("utf-8", "replace")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the worker; nothing happens if it is gone."""
        with contextlib.suppress(ProcessLookupError):
            if self._handle >= 0:
                signal.pidfd_send_signal(self._handle, number)

    def stopped(self) -> bool:
        """Whether every thread is stopped, or gone."""
        for status in Path(f"/proc/{self.pid}/task").glob("*/stat"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                # The state follows the name, which is in parentheses and may hold anything.
                if status.read_bytes().rpartition(b")")[2].split()[0] not in b"TtZX":
                    return False
        return True

    def threads(self) -> int:
        """How many threads it has."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
                if line.startswith("Threads:"):
                    return int(line.split()[1])
        return 0

    def give_back(self, nbytes: int) -> None:
        """Lower the limit on its address space by ``nbytes``."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            soft, hard = resource.prlimit(self.pid, resource.RLIMIT_AS)
            resource.prlimit(self.pid, resource.RLIMIT_AS, (soft - nbytes, hard - nbytes))

    def alive(self) -> bool:
        """Whether it goes on."""
        return self._popen.poll() is None

    def exit_code(self) -> int | None:
        """How it ended, waiting a moment for the end; None if it goes on without its socket."""
        return wait_for(self._popen, 2.0)

    def kill(self) -> None:
        """End the worker, with its whole namespace, and wait until nothing is left."""
        if self._closed:
            return
        self._closed = True
        self.signal(signal.SIGKILL)
        self.control.close()
        if wait_for(self._popen, 10.0) is None:
            self._popen.kill()
            self._popen.wait()
        os.close(self._output)
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start: program, candidate, the CPUs it is pinned to, and how much address space it
    gets for tensors, workspace and heap (where the program's is bounded at all)."""

    program: Program
    candidate: Path
    cpus: Sequence[int]
    address_bytes: int


def start(launch: Launch) -> Process:
    """Start a worker program in its jail; it loads the candidate at once.

    Its end follows that of the calling *thread*: keep that alive while the worker is in use.

    Raises:
        SandboxError: it could not be started.
    """
    inside = not isolation.namespaces_missing()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    output = os.memfd_create("output", os.MFD_CLOEXEC)
    info_read, info_write = os.pipe()
    prefix = _enter(launch, info_write) if inside else []
    popen = subprocess.Popen(
        [*prefix, *_arguments(launch, theirs.fileno(), inside)],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=[theirs.fileno(), info_write],
        env={} if inside else _environment(launch),
        start_new_session=True,
    )
    theirs.close()
    os.close(info_write)
    try:
        pid = _child(info_read, output) if inside else popen.pid
        return Process(popen, ours, output, pid)
    except BaseException:
        popen.kill()
        popen.wait()
        ours.close()
        os.close(output)
        raise
    finally:
        os.close(info_read)


def _environment(launch: Launch) -> dict[str, str]:
    threads = {"OMP_NUM_THREADS": str(len(launch.cpus)), "OMP_PROC_BIND": "true"}
    return {**threads, **launch.program.environment}


def _enter(launch: Launch, info_fd: int) -> list[str]:
    program = launch.program
    own = (Mount(program.path, program.inside), Mount(launch.candidate.resolve(), "/kernel.so"))
    null = Mount(Path("/dev/null"), device=True)
    proc = program.proc and isolation.proc_mountable()
    jail = Jail((*program.mounts, null, *own), _environment(launch), proc=proc)
    return isolation.enter(jail, first_process=True, info_fd=info_fd)


def _arguments(launch: Launch, control: int, inside: bool) -> list[str]:
    """The worker's command line; read by ``parse`` in worker/candidate.hpp."""
    program = launch.program
    kernel = "/kernel.so" if inside else str(launch.candidate)
    pairs = [("--control", str(control)), ("--object", kernel)]
    pairs += [("--cpus", ",".join(map(str, launch.cpus))), ("--flush", str(program.flush_bytes))]
    if program.bounds_memory:
        own = _OWN_BYTES + _THREAD_BYTES * len(launch.cpus) + program.flush_bytes
        pairs.append(("--memory", str(launch.address_bytes + own)))
    else:
        pairs.append(("--files", "4096"))  # the driver opens a descriptor per mapping
    pairs += [("--write", path) for path in program.writable]
    readable = ["/"] if inside else [kernel, *(mount.inside for mount in program.mounts)]
    pairs += [("--read", path) for path in readable]
    command = program.command or (program.inside if inside else str(program.path),)
    return [*command, *(word for pair in pairs for word in pair)]


def _child(info: int, output: int) -> int:
    """The worker's PID, which bubblewrap tells once the jail stands."""
    text = b""
    deadline = time.monotonic() + _START_S
    while not text.rstrip().endswith(b"}"):
        ready, _, _ = select.select([info], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(info, 4096) if ready else b""
        if not piece:
            said = os.pread(output, 2000, 0).decode("utf-8", "replace").strip()
            raise SandboxError(f"bubblewrap did not start the worker: {said or 'no answer'}")
        text += piece
    return isolation.child_pid(text)
