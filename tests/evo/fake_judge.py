"""A judge's process without PyTorch: does what the kernel's source says."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from cuda_sandbox.children import die_with
from evo.executors._judge_process import Fault, Order, Ready, Sick
from fitness.evaluation import Evaluation
from tests.evo.fakes import timed

DEVICE = ""


def answer(order: Order) -> Evaluation | Fault:
    """``die``, ``die FILE`` (once), ``fault``, ``harm FOLDER``, or an accepted kernel."""
    word, _, rest = order.job.kernel.source.partition(" ")
    if word == "die" and (not rest or not Path(rest).exists()):
        Path(rest or os.devnull).touch()
        print("last words", file=sys.stderr, flush=True)
        os._exit(3)
    if word == "harm":
        (Path(rest) / DEVICE).touch()
    if word == "fault":
        return Fault("our own mistake")
    if word == "sleep":
        time.sleep(float(rest))
    names = [rival.source for rival in order.job.rivals]
    certificate = {"pid": os.getpid(), "purpose": str(order.job.purpose), "rivals": names}
    return replace(timed(1.0), certificate=certificate)


def main() -> None:
    descriptor, parent = map(int, sys.argv[1:3])
    die_with(parent)
    connection = Connection(descriptor)
    post = connection.recv()
    if "broken" in post.task_path.name:
        connection.send(Fault("broken.py:3: the task is broken"))
        return
    global DEVICE
    DEVICE = post.device
    # A device that was harmed for good stays ill, for every process that is started on it.
    if (post.task_path.parent / DEVICE).exists() and post.pulse_ms:
        connection.send(Sick("known work gives 41"))
        return
    connection.send(Ready("fake", 5.0))
    while True:
        try:
            serve(connection)
        except EOFError:
            return


def serve(connection: Connection) -> None:
    order = connection.recv()
    found = answer(order)
    certificate = getattr(found, "certificate", None)
    connection.send(replace(found, device=DEVICE) if certificate else found)
    if order.job.kernel.source.startswith("harm"):
        connection.send(Sick("known work gives 41"))
        while True:
            connection.recv()


if __name__ == "__main__":
    main()
