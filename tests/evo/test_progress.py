"""What a person sees while a run goes on, and at its end."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from evo.budget import Budget
from evo.progress import Progress, left
from evo.records import Spent
from evo.result import percent, span, summary
from evo.sections import Budget as Limits
from evo.store import Store
from fitness.evaluation import Interval
from operators.llm import Usage
from tests.evo.fakes import FakeExecutor, Sitting, configuration, timed


def followed(folder: Path, *, terminal: bool) -> tuple[str, str]:
    """What is printed on the way, and the live part as it stands at the end."""
    console = Console(file=io.StringIO(), width=160, force_terminal=terminal, color_system=None)
    progress = Progress("fake", "eager", console)
    sitting = Sitting(folder, configuration(budget__evaluations=40), watch=progress)
    recorder = sitting.recorder()
    engine = sitting.engine(recorder)
    progress.follow(engine.budget, {"timeout": 2})
    with progress:
        asyncio.run(engine.run())
    recorder.close()
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    with console.capture() as live:
        console.print(progress.render())
    return printed, live.get()


def test_the_live_part_shows_best_islands_failures_and_what_is_left(tmp_path: Path) -> None:
    _, live = followed(tmp_path, terminal=False)
    title, best, first, second, judged, rest = live.rstrip().splitlines()
    with Store.open(tmp_path) as store:
        info, statuses = store.info, store.statuses()
    assert title.strip() == "fake"
    assert best.split()[:2] == ["best", info.best]
    assert "% of eager [" in best
    assert first.startswith("island 0  generation ")
    assert second.startswith("island 1  generation ")
    assert judged.split()[:2] == ["judged", "42,"]
    assert f"{statuses['ok']} ok" in judged
    assert "2 timeout" in judged
    assert rest.split(maxsplit=1)[1].startswith("0 of 40 evaluations, 2.00 of 2 hours, ")


def test_without_a_terminal_there_are_plain_lines_only(tmp_path: Path) -> None:
    printed, _ = followed(tmp_path, terminal=False)
    assert "\x1b" not in printed
    lines = printed.splitlines()
    assert any(" s  best 0-" in line or " s  best 1-" in line for line in lines)
    assert any("island 0 generation 0: best 0-0-" in line for line in lines)
    assert "certifying" in lines[-1]


def test_what_is_left_names_tokens_and_dollars_once_they_are_spent() -> None:
    budget = Budget(Limits(hours=2), Spent(100, 0, 0, 0.0), lambda: 1800.0)
    assert left(budget) == "400 of 500 evaluations, 1.50 of 2 hours, 5 generations in all"
    budget = Budget(Limits(generations=None, evaluations=None), Spent(1, 0, 1000, 2.5), lambda: 0.0)
    assert left(budget) == "2.00 of 2 hours, 6999000 of 7000000 tokens, 47.50 of 50 dollars"


def test_calls_under_way_and_models_that_do_not_answer_are_shown() -> None:
    console = Console(file=io.StringIO(), width=160, color_system=None)
    progress = Progress("fake", "eager", console)
    budget = Budget(Limits(calls=100), Spent(1, 0, 0, 0.0, calls=12), lambda: 0.0)
    progress.follow(budget, {})

    async def begin() -> None:
        for model in ("o3", "o3", "gem"):
            assert await budget.reserve(Usage(1), model)

    asyncio.run(begin())
    progress.silent(["waiting for gem since 12:00:00: server trouble"])
    with console.capture() as live:
        console.print(progress.render())
    lines = [" ".join(line.split()) for line in live.get().splitlines()]
    assert "calls 12 made, under way: 1 to gem, 2 to o3" in lines
    assert "waiting for gem since 12:00:00: server trouble" in lines
    assert any("88 of 100 calls" in line for line in lines)
    progress.silent([])
    with console.capture() as live:
        console.print(progress.render())
    assert "waiting for" not in live.get()


def test_figures_carry_their_intervals() -> None:
    found = replace(timed(5.0), time_ms=Interval(5.0, 4.9, 5.2))
    assert span(found.time_ms) == "5 ms [4.9, 5.2]"
    # eager: 10 ms [9.9, 10.1]
    assert percent(found, "eager") == "200.0% of eager [190.4, 206.1]"
    assert percent(found, "compile") == "not compared with compile"


def test_the_summary_names_the_winner_and_the_next_commands(tmp_path: Path) -> None:
    outcome = Sitting(tmp_path).run()
    assert outcome.winner is not None
    with Store.open(tmp_path) as store:
        lines = summary(store, "fake").splitlines()
    assert lines[0] == "fake: all generations are done"
    assert lines[1].startswith(f"winner      {outcome.winner.id}: ")
    assert lines[1].endswith(", certified")
    assert lines[2] == "device      fake"
    assert lines[-3:] == [
        "trajectory  kernelevo trajectory fake",
        "lineage     kernelevo lineage fake -o lineage.html",
        "export      kernelevo export fake -o DIR",
    ]


def test_the_summary_of_a_run_without_a_kernel_says_so(tmp_path: Path) -> None:
    Sitting(tmp_path, executor=FakeExecutor(failing=1.0)).run()
    with Store.open(tmp_path) as store:
        text = summary(store, "fake")
    assert "fake: all generations are done; no kernel was accepted" in text
    assert "kernelevo export" not in text
