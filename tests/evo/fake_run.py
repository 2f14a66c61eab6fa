"""``kernelevo run`` with a fake author and a fake executor, each run in a process of its own.

Every verdict takes DELAY_S; jobs and author calls are written to the file ``log`` as they are made.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import fitness.audit
import fitness.task
from evo import sitting
from evo.cli import run
from evo.cli.main import main as kernelevo
from evo.config import RunConfig
from evo.executor import Job
from evo.executors._bench import resolve
from evo.machine import Machine
from evo.studio import Staff
from fitness.audit.record import Audit, Outcome
from fitness.evaluation import Evaluation
from tests.evo.fakes import HEADER, FakeAuthor, FakeExecutor, configuration, description

DELAY_S = 0.01
THINK_S = 0.0
LOG = Path("log")
REAL_STAFF = sitting.staff
MODULES = ("deap.tools", "rich.live", "rich.table", "evo.progress", "evo.result")
MODELS = ("openai", "openai.types.chat", "operators.llm.openai", "jinja2")  # with --models


def log(kind: str, what: str) -> None:
    with LOG.open("a") as file:
        file.write(f"{kind} {what}\n")


class Author(FakeAuthor):
    async def _think(self, kind: str, about: object) -> None:
        log("call", kind)
        await super()._think(kind, about)


class Executor(FakeExecutor):
    def submit(self, job: Job) -> Future[Evaluation]:
        log(str(job.purpose), job.kernel.digest(HEADER))
        future: Future[Evaluation] = Future()
        timer = threading.Timer(DELAY_S, lambda: resolve(future, self.judge(job)))
        timer.daemon = True
        timer.start()
        return future


def staff(config: RunConfig) -> Staff:
    """The fake author in the place of the catalogue; others are as they are."""
    if any(one.name != "catalogue" for one in config.authors):
        return REAL_STAFF(config)
    return Staff((Author(delay_s=THINK_S),), (1.0,), config.seed)


def main(arguments: list[str]) -> None:
    fitness.audit.require_sound = lambda *_: Audit("task.py", Outcome.SOUND)  # type: ignore
    fitness.task.describe = lambda *_: description()  # type: ignore[assignment]
    sitting.survey = lambda *_: Machine(("cpu",), "cpp", "fake", "native", ())  # type: ignore
    sitting.staff = staff  # type: ignore[assignment]
    run._local = lambda *_: Executor()  # type: ignore[assignment]
    kernelevo(["run", *arguments], prog_name="kernelevo")


def serve() -> None:
    """Start runs by forking, so that each costs no imports.

    A line with a table of ``arguments``, ``cwd``, ``delay_s``, ``out``, ``err`` is answered with
    the new process's id, a line with an id with that process's exit code.
    """
    for module in (*MODULES, *(MODELS if "--models" in sys.argv else ())):
        importlib.import_module(module)
    configuration()
    for line in sys.stdin:
        request = json.loads(line)
        if isinstance(request, int):
            _, status = os.waitpid(request, 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
        elif pid := os.fork():
            print(pid, flush=True)
        else:
            become(request)


def become(request: dict[str, Any]) -> None:
    """Be the run that was asked for."""
    os.chdir(request["cwd"])
    for name, number in (("out", 1), ("err", 2)):
        os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    global DELAY_S, LOG
    DELAY_S, LOG = request["delay_s"], Path("log")
    main(request["arguments"])


if __name__ == "__main__":
    serve()
