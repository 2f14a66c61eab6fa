"""Hundreds of calls through every fault: the books agree with the server's log to the token."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from operators.llm import Limits, Model, Price, Prompt, Refused, Reply, Usage, table
from operators.llm.policy import Line
from tests.loopback import BILLED_BUT_LOST, FREE, KNOWN, Asked, Loopback, Said, Tokens, scattered
from tests.loopback.clock import travel
from tests.operators.test_llm_policy import Pages

FAULTS = [*FREE, *BILLED_BUT_LOST, *KNOWN]
PRICE = Price(input=2.0, cached=0.5, output=8.0, reasoning=8.0)
CALLS = 500


def author(asked: Asked) -> Said:
    """Answers of all sizes, always the same to the same prompt."""
    chance = random.Random(asked.text)
    size = chance.randrange(1, 4_000)
    return Said("x" * size, reasoning=chance.randrange(3_000), cached=chance.randrange(5))


def line_to(server: Loopback, api: str, said: list[str]) -> Line:
    options = {"base_url": server.url(api)} | ({} if api == "gemini" else {"api": api})
    provider = "gemini" if api == "gemini" else "openai"
    limits = Limits(concurrency=16, requests_per_minute=300, deadline_s=60)
    model = Model(api, provider, options, PRICE, limits)
    return Line(
        model, table.provider(model), lambda notice: said.append(str(notice)), random.Random(0)
    )


async def all_calls(lines: list[Line], pages: Pages) -> list[Reply | BaseException]:
    prompts = [Prompt("You write kernels.", (f"Call {n}",), "kernel") for n in range(CALLS)]
    calls = [lines[n % len(lines)].complete(prompt, pages) for n, prompt in enumerate(prompts)]
    return await asyncio.gather(*calls, return_exceptions=True)


def test_the_books_agree_with_the_servers_log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        async with Loopback(author, scattered(0.1, FAULTS, seed=1), latency_s=2.0) as server:
            pages = Pages()
            said: list[str] = []
            lines = [line_to(server, api, said) for api in ("responses", "gemini")]
            outcomes = await all_calls(lines, pages)
            for line in lines:
                await line.aclose()
            check(server, pages, outcomes)
            assert {entry.fault for entry in server.log} > set(FAULTS)
            assert any("next try in" in line for line in said)

    travel(main())


def check(server: Loopback, pages: Pages, outcomes: list[Reply | BaseException]) -> None:
    replies = [outcome for outcome in outcomes if isinstance(outcome, Reply)]
    assert all(isinstance(outcome, Reply | Refused) for outcome in outcomes)
    assert len(replies) > 0.97 * CALLS

    # each attempt stands in the books and in the log, and each entry was closed
    assert len(pages.entries) == len(server.log)
    assert None not in pages.entries

    settled = [entry for entry in pages.entries if isinstance(entry, Usage)]
    told = server.billed(told=True)
    assert sum((tokens_of(usage) for usage in settled), Tokens()) == told
    dollars = PRICE.usage(told.input, told.cached, told.output, told.reasoning).dollars
    assert sum(usage.dollars for usage in settled) == pytest.approx(dollars)

    # what nobody can know is booked at no less than it was
    lost = [entry for entry in server.log if entry.fault in BILLED_BUT_LOST]
    unknown = [
        estimate
        for entry, estimate in zip(pages.entries, pages.estimates, strict=True)
        if entry == "unknown"
    ]
    assert len(unknown) == len(lost)
    untold = server.billed(told=False)
    assert sum(usage.tokens for usage in unknown) >= untold.input + untold.output + untold.reasoning


def tokens_of(usage: Usage) -> Tokens:
    return Tokens(usage.input, usage.cached, usage.output, usage.reasoning)
