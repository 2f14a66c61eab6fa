"""What an agent may do with a run. Each method is a tool; its docstring is what the agent reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from evo import runs
from evo.agents.drafts import Drafts
from evo.individual import Individual
from evo.lineage import headline, speedup, status
from evo.report import plain, summary, trajectory
from evo.report.view import RunView
from evo.requests import wording
from evo.requests.board import Board, patiently
from evo.requests.record import RequestError
from evo.store import Store

Tool = Callable[..., dict[str, Any]]

LONGEST_WAIT_S = 600.0


class Tools:
    """Tools on the runs under ``populations/``; ``run`` is meant where a call names none."""

    def __init__(self, run: str | None = None) -> None:
        self._run = run
        self._drafts = Drafts()
        self.acting: tuple[Tool, ...] = (self.ask, self.tell, self.give_back, self.judge_draft)
        self.looking: tuple[Tool, ...] = (
            *(self.list_requests, self.show_run, self.show_trajectory),
            *(self.show_lineage, self.show_kernel),
        )

    def close(self) -> None:
        """Stop what was started."""
        self._drafts.close()

    def list_requests(self, run: str | None = None) -> dict[str, Any]:
        """List what the run waits for: open requests, who has taken them, answers not used yet."""
        with self._board(run) as board:
            rows = [wording.listed(entry) for entry in board.entries()]
            return {"run": board.folder.name, "requests": rows, "standing": board.standing()}

    def ask(
        self,
        name: str,
        run: str | None = None,
        request: str | None = None,
        lease_minutes: float = 60,
        wait_seconds: float = 0,
    ) -> dict[str, Any]:
        """Take the next open request under your name, and read its prompt in full.

        Nobody else is given it until the lease ends. If you have taken one and not answered it, you
        get that one again; use another name for each request that you want to work on at once.
        `request` asks for that very one. `wait_seconds` (at most 600) waits for one to come up.
        Answer with `tell`. If there is none, `request` is null and `why` says why.
        """
        folder = self._folder(run)
        entry, why = patiently(
            folder,
            lambda board: board.take(name, lease_minutes, request),
            min(wait_seconds, LONGEST_WAIT_S),
        )
        if entry is None:
            return {"request": None, "why": why}
        return wording.record(folder.name, entry)

    def tell(self, request: str, answer: str, name: str, run: str | None = None) -> dict[str, Any]:
        """Answer a request, in the form that its prompt asks for, under the name that took it.

        The answer is read at once: one that cannot be read is refused with the reason, and the
        request stays yours. What is taken in is final.
        """
        with self._board(run) as board:
            told = board.tell(request, answer, name)
            return {"request": told.request, "taken_in": True, "standing": board.standing()}

    def give_back(self, request: str, name: str, run: str | None = None) -> dict[str, Any]:
        """Give a request back that you have taken and will not answer."""
        with self._board(run) as board:
            board.give_back(request, name)
            return {"request": request, "standing": board.standing()}

    def judge_draft(
        self, source: str, flags: list[str] | None = None, run: str | None = None
    ) -> dict[str, Any]:
        """Compile a complete kernel source and judge it on this machine's device.

        The verdict (status, reason, precision, time, speedup) is yours alone: it is not booked to
        the run, and costs nothing of its budget. `flags` are compiler flags.
        """
        folder = self._folder(run)
        with Store.open(folder) as store:
            language = store.info.language
        try:
            kernel = Kernel(source, language, tuple(flags or ()))
        except ValueError as error:
            raise RequestError(str(error)) from error
        return plain.verdict(self._drafts.judge(folder, kernel))

    def show_run(self, run: str | None = None) -> dict[str, Any]:
        """Show a run: task, state, best, budget, counts by status, operator and idea category."""
        return summary.summary(self._view(run))

    def show_trajectory(self, run: str | None = None) -> dict[str, Any]:
        """Show the path to the best kernel: round, time, percentage of PyTorch, idea."""
        return trajectory.trajectory(self._view(run))

    def show_lineage(self, run: str | None = None, latest: int = 100) -> dict[str, Any]:
        """List the latest kernels: parents, idea, operator, status, speedup over PyTorch."""
        view = self._view(run)
        rows = [_row(one) for one in view.individuals[-max(1, latest) :]]
        return {"run": view.info.name, "kernels": len(view.individuals), "latest": rows}

    def show_kernel(self, kernel: str = "winner", run: str | None = None) -> dict[str, Any]:
        """Show one kernel: source, idea, parents, verdict. `kernel` is its id, or "winner"."""
        view = self._view(run)
        one = view.individual(kernel)
        shown = summary.detail(view, one, None)
        if status(one) == Status.HACK:
            shown["evaluation"]["reason"] = ""
        return shown

    def _folder(self, run: str | None) -> Path:
        name = run or self._run
        if name is None:
            there = ", ".join(runs.names()) or "none"
            raise RequestError(f"name a run: there are: {there}")
        return runs.resolve(name)

    @contextmanager
    def _board(self, run: str | None) -> Iterator[Board]:
        with Board(self._folder(run)) as board:
            yield board

    def _view(self, run: str | None) -> RunView:
        folder = self._folder(run)
        with Store.open(folder) as store:
            return RunView.read(store, busy=runs.in_use(folder))


def _row(one: Individual) -> dict[str, Any]:
    return {
        "id": one.id,
        "parents": list(one.birth.parents),
        "operator": one.birth.operator,
        "author": one.birth.author,
        "idea": headline(one),
        "status": status(one),
        "speedup": speedup(one),
    }
