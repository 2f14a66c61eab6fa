"""Live progress for a person at a terminal; plain lines where there is none."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from evo.budget import Budget
from evo.individual import Individual
from evo.lineage import headline
from evo.records import Generation, Spent
from evo.result import percent, span
from evo.sections import Budget as Limits
from evo.watch import Watch


class Progress(Watch):
    """Shows best, islands, rates, failures by status and what is left of the budget."""

    def __init__(self, title: str, baseline: str, console: Console) -> None:
        self._title = title
        self._baseline = baseline
        self._console = console
        self._budget: Budget | None = None
        self._began = time.monotonic()
        self._statuses: Counter[str] = Counter()
        self._earlier = 0
        self._seen: set[str] = set()
        self._islands: dict[int, str] = {}
        self._champion: Individual | None = None
        self._asked = 0
        self._said = 0
        self._silent: Sequence[str] = ()
        self._live = Live(
            console=console, get_renderable=self.render, refresh_per_second=2, transient=True
        )

    def follow(self, budget: Budget, statuses: dict[str, int]) -> None:
        """Show this budget, on top of what earlier sittings judged."""
        self._budget = budget
        self._statuses.update(statuses)
        self._earlier = self._statuses.total()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def begun(self, generation: Generation) -> None:
        """Note where the island is."""
        self._islands[generation.island] = f"generation {generation.number}"

    def judged(self, individual: Individual) -> None:
        """Count each kernel once."""
        if individual.evaluation is not None and individual.digest not in self._seen:
            self._seen.add(individual.digest)
            self._statuses[individual.evaluation.status] += 1

    def best(self, individual: Individual) -> None:
        """Print the new best above the live part."""
        self._champion = individual
        self._line(f"best {self._figures(individual)}")

    def closed(self, generation: Generation, survivors: Sequence[Individual]) -> None:
        """Print a line for the generation."""
        best = f"best {self._figures(survivors[0])}" if survivors else "no kernel accepted yet"
        self._line(f"island {generation.island} generation {generation.number}: {best}")

    def asks(self, count: int) -> None:
        """Show how many requests are open."""
        self._asked = count

    def waits(self) -> None:
        """Say what must be answered, each time it is another number."""
        if self._asked != self._said:
            self._line(f"waiting for {self._requests()}")
        self._said = self._asked

    def _requests(self) -> str:
        plural = "" if self._asked == 1 else "s"
        return f"{self._asked} answer{plural}: kernelevo ask {self._title}"

    def silent(self, outages: Sequence[str]) -> None:
        """Show which models do not answer."""
        self._silent = outages

    def say(self, message: str) -> None:
        """Print it."""
        self._line(message)

    def _line(self, text: str) -> None:
        seconds = time.monotonic() - self._began
        self._console.print(Text(f"{seconds:7.1f} s  {text}"), soft_wrap=True)

    def _figures(self, individual: Individual) -> str:
        assert individual.evaluation is not None
        evaluation = individual.evaluation
        figures = f"{span(evaluation.time_ms)}  {percent(evaluation, self._baseline)}"
        return f"{individual.id}  {figures}  {headline(individual)}"

    def render(self) -> RenderableType:
        """The live part."""
        table = Table.grid(padding=(0, 2))
        for name, text in self._rows():
            table.add_row(Text(name, style="bold"), Text(text))
        return Group(Text(self._title, style="bold cyan"), table)

    def _rows(self) -> list[tuple[str, str]]:
        best = self._figures(self._champion) if self._champion else "none yet"
        return [
            ("best", best),
            *((f"island {number}", place) for number, place in sorted(self._islands.items())),
            ("judged", self._judged()),
            *([("waits for", self._requests())] if self._asked else []),
            *([("calls", calls)] if (calls := self._calls()) else []),
            *(("", outage) for outage in self._silent),
            ("left", left(self._budget) if self._budget else ""),
        ]

    def _calls(self) -> str:
        """``12 made, under way: 3 to o3, 1 to gemini-2.5-pro``; empty where there are none."""
        if self._budget is None:
            return ""
        made, flying = self._budget.used().calls, self._budget.in_flight()
        under_way = ", ".join(f"{count} to {model}" for model, count in sorted(flying.items()))
        if not (made or flying):
            return ""
        return f"{made} made, under way: {under_way or 'none'}"

    def _judged(self) -> str:
        now = self._statuses.total() - self._earlier
        rate = 3600 * now / max(1.0, time.monotonic() - self._began)
        parts = [f"{count} {status}" for status, count in self._statuses.most_common()]
        return f"{self._statuses.total()}, {rate:.0f} an hour: {', '.join(parts) or 'nothing yet'}"


def left(budget: Budget) -> str:
    """What is left of each limit: ``357 of 500 evaluations, 1.80 of 2 hours``."""
    limits, used = budget.limits, budget.used()
    parts = []
    if limits.evaluations is not None:
        parts.append(
            f"{max(0, limits.evaluations - used.evaluations)} of {limits.evaluations} evaluations"
        )
    if limits.hours is not None:
        parts.append(
            f"{max(0.0, limits.hours - used.seconds / 3600):.2f} of {limits.hours:g} hours"
        )
    if limits.generations is not None:
        parts.append(f"{limits.generations} generations in all")
    return ", ".join([*parts, *_left_of_calls(limits, used)])


def _left_of_calls(limits: Limits, used: Spent) -> Iterator[str]:
    """Nothing before the first call: a run whose authors ask no models need not know of it."""
    if used.calls and limits.calls is not None:
        yield f"{limits.calls - used.calls} of {limits.calls} calls"
    if used.tokens and limits.tokens is not None:
        yield f"{limits.tokens - used.tokens} of {limits.tokens} tokens"
    if used.dollars and limits.dollars is not None:
        yield f"{limits.dollars - used.dollars:.2f} of {limits.dollars:g} dollars"
