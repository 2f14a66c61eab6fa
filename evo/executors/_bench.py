"""A judge's process from the engine's side: started, handed jobs, killed, started again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from cuda_sandbox.children import environment
from cuda_sandbox.report import Status
from evo.executor import JobFailed, Purpose
from evo.executors._jobs import Jobs, Ticket
from evo.executors._judge_process import Fault, Order, Post, Ready, Sick
from evo.executors._ward import Ward
from fitness.evaluation import Evaluation

START_S = 600.0  # a judge imports PyTorch, runs the task, computes its truth
ANSWER_S: Mapping[Purpose, float] = {
    Purpose.SEARCH: 600.0,
    Purpose.CERTIFY: 1800.0,  # and what building for the sanitizers and running them may take
    Purpose.PROFILE: 300.0,
}
MODULE = "evo.executors._judge_process"


class Died(Exception):
    """A judge's process is gone, or had to be killed; the message says how."""


class Unwell(Exception):
    """The judge's device does not compute as it did; the message says how."""


class Bench:
    """One judge's process, with a thread of ours that hands it jobs and starts it again.

    A device that is sick and does not recover in a fresh process is taken out: the job goes back to
    the queue for others, and ``ward`` tells whether there are any.
    """

    def __init__(self, post: Post, jobs: Jobs, ward: Ward) -> None:
        self._post = post
        self._jobs = jobs
        self._ward = ward
        self._out = ""  # why the device is out of the run
        self._alone = False  # and whether nobody is left to take its jobs
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._closed = threading.Event()
        self._hardware = ""
        self._words = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as we do
        self._thread = threading.Thread(target=self._work, name=f"judge {post.device}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the process at once, whatever it is doing; ``join`` waits for the rest.

        All benches of a queue are stopped before any is joined: each wakes any one of them.
        """
        self._closed.set()
        if self._process is not None:
            self._process.kill()
        self._jobs.wake()

    def join(self) -> None:
        """Wait until nothing is left of a bench that was stopped."""
        self._thread.join(timeout=10)

    def _work(self) -> None:
        # the process is started by this thread and dies with it, so it is started again here too
        self._try_to_start()
        while not self._closed.is_set():
            ticket = self._jobs.get()
            if ticket is None:
                continue
            if not self._out:
                self._serve(ticket)
            elif self._alone:
                fail(ticket.future, f"no device is left to judge on: {self._out}")
            if self._out and not self._alone:
                break
        self._clear()

    def _try_to_start(self) -> None:
        """Start early; if that fails, the first job will try again and report it."""
        try:
            self._start()
        except Exception:  # noqa: BLE001  # any: this thread must live to fail the jobs
            self._clear()

    def _serve(self, ticket: Ticket) -> None:
        """Get the verdict; a job on which the judge dies is tried once more, then booked."""
        deaths: list[str] = []
        illnesses: list[str] = []  # the first may be the work of the job before
        while len(deaths) < 2 and len(illnesses) < 3:
            try:
                evaluation = self._ask(ticket.order)
            except JobFailed as failure:
                return fail(ticket.future, str(failure))
            except Unwell as illness:
                illnesses.append(str(illness))
                if not self._recovers(str(illness)):
                    return self._hand_back(ticket)
            except Died as death:
                self._clear()
                deaths.append(str(death))
                if self._closed.is_set():
                    return fail(ticket.future, "the run was stopped")
            except Exception as error:  # noqa: BLE001  # any: nobody may wait for ever
                self._clear()
                return fail(ticket.future, f"the judge failed: {type(error).__name__}: {error}")
            else:
                return resolve(ticket.future, evaluation)
        reason = f"the judge died on it twice: {deaths[-1]}" if len(deaths) == 2 else illnesses[-1]
        booked = Evaluation(Status.CRASHED, reason, device=self._hardware)
        return resolve(ticket.future, booked)

    def _recovers(self, illness: str) -> bool:
        """Whether the device is well again in a fresh process; otherwise it is taken out."""
        self._clear()
        try:
            self._start()
        except (Unwell, JobFailed) as failure:
            self._clear()
            self._out = f"{illness}; in a fresh process: {failure}"
            self._alone = not self._ward.take_out(self._post.device, self._out)
        return not self._out

    def _hand_back(self, ticket: Ticket) -> None:
        """Leave a job to the other devices, if there are any."""
        if self._alone:
            return fail(ticket.future, f"no device is left to judge on: {self._out}")
        return self._jobs.put(ticket)

    def _ask(self, order: Order) -> Evaluation:
        """The judge's answer.

        Raises Died, Unwell where the device is, and JobFailed where the judge itself failed.
        """
        if self._connection is None:
            self._start()
        self._send(order)
        purpose = order.job.purpose
        more = 2 * self._post.sanitizer_s if purpose is Purpose.CERTIFY else 0.0
        answer = self._receive(ANSWER_S[purpose] + more)
        if isinstance(answer, Sick):
            raise Unwell(answer.message)
        if isinstance(answer, Fault):
            self._clear()  # its state is not to be trusted any more
            raise JobFailed(f"the judge failed: {answer.message}")
        assert isinstance(answer, Evaluation)
        return answer

    def _start(self) -> None:
        """Start the process and wait until the judge is in its place.

        Raises JobFailed, and Unwell where the device is.
        """
        ours, theirs = socket.socketpair()
        self._words.seek(0)
        self._words.truncate()
        command = [sys.executable, "-P", "-m", MODULE]
        with theirs:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=self._words,
                stderr=self._words,
                pass_fds=[theirs.fileno()],
                env=environment(),
            )
        self._connection = Connection(ours.detach())
        if self._closed.is_set():  # close() may have come before there was a process to kill
            self._process.kill()
        try:
            self._send(self._post)
            answer = self._receive(START_S)
        except Died as death:
            self._clear()
            raise JobFailed(f"the judge on {self._post.device} cannot start: {death}") from death
        if isinstance(answer, Sick):
            raise Unwell(answer.message)
        if isinstance(answer, Fault):
            self._clear()
            raise JobFailed(answer.message)
        assert isinstance(answer, Ready)
        self._hardware = answer.hardware
        if self._post.pulse_ms is None:
            self._post = replace(self._post, pulse_ms=answer.pulse_ms)

    def _send(self, message: Any) -> None:
        assert self._connection is not None
        try:
            self._connection.send(message)
        except OSError as error:
            raise Died(self._last_words()) from error

    def _receive(self, deadline_s: float) -> Any:
        connection = self._connection
        if connection is None:
            raise Died("it was stopped")
        try:
            if not connection.poll(deadline_s):
                raise Died(f"no answer within {deadline_s:g} s")
            return connection.recv()
        except (EOFError, OSError) as error:
            raise Died(self._last_words()) from error

    def _last_words(self) -> str:
        """How the process ended, with the end of what it printed."""
        process = self._process
        if process is None:
            return "it was stopped"
        try:
            code = process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "it closed its socket"
        self._words.seek(0)
        tail = self._words.read()[-2000:].decode(errors="replace").strip()
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        return f"{how}{': ' + tail if tail else ''}"

    def _clear(self) -> None:
        """Leave nothing of the process."""
        process, self._process = self._process, None
        connection, self._connection = self._connection, None
        if process is not None:
            process.kill()
            process.wait()
        if connection is not None:
            connection.close()


def resolve(future: Future[Evaluation], evaluation: Evaluation) -> None:
    """Give the verdict to whoever waits for it still."""
    if future.set_running_or_notify_cancel():
        future.set_result(evaluation)


def fail(future: Future[Evaluation], message: str) -> None:
    """Say that there will be no verdict, and why."""
    if future.set_running_or_notify_cancel():
        future.set_exception(JobFailed(message))
