"""Every fault that a model server, or what lies between, is known for."""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.loopback.wire import Asked, Said, encoded

if TYPE_CHECKING:
    from tests.loopback.server import Exchange

Fault = Callable[["Exchange"], Awaitable[None]]
_PAGE = b"<!DOCTYPE html><html><head><title>Welcome to the hotel's network</title></html>"


def _status(status: int, message: str, code: str, **headers: str) -> Fault:
    async def fault(exchange: Exchange) -> None:
        body = encoded(exchange.wire.error(status, message, code))
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        await exchange.send(status, body, names)

    return fault


async def _rate_until_date(exchange: Exchange) -> None:
    # by a clock that runs an hour ahead of ours: only the difference to its own Date counts
    clock = time.time() + 3600
    until = email.utils.formatdate(clock + 2, usegmt=True)
    headers = {"Retry-After": until, "Date": email.utils.formatdate(clock, usegmt=True)}
    body = encoded(exchange.wire.error(429, "slow down", "rate_limit_exceeded"))
    await exchange.send(429, body, headers)


async def _gateway(exchange: Exchange) -> None:
    exchange.bill()
    await exchange.send(502, b"<html>Bad Gateway</html>", {"Content-Type": "text/html"})


async def _hang_up(exchange: Exchange) -> None:
    exchange.bill()
    exchange.close()


async def _cut(exchange: Exchange) -> None:
    body = exchange.bill()
    await exchange.send(200, body[: len(body) // 2], length=len(body))
    exchange.close()


async def _silence(exchange: Exchange) -> None:
    exchange.bill()
    await asyncio.sleep(1e9)


async def _drip(exchange: Exchange) -> None:
    body = exchange.bill()
    await exchange.send(200, b"", length=len(body) + 10_000)
    for byte in [*body, *(b" " * 10_000)]:
        await exchange.write(bytes([byte]))
        await asyncio.sleep(exchange.drip_s)


async def _page(exchange: Exchange) -> None:
    await exchange.send(200, _PAGE, {"Content-Type": "text/html"})


async def _broken(exchange: Exchange) -> None:
    body = exchange.bill()
    await exchange.send(200, body[: len(body) // 2])


async def _nothing(exchange: Exchange) -> None:
    exchange.bill()
    await exchange.send(200, b"")


async def _other_json(exchange: Exchange) -> None:
    exchange.bill()
    await exchange.send(200, b'{"status": "ok"}')


def _odd(**changes: object) -> Fault:
    async def fault(exchange: Exchange) -> None:
        exchange.said = replace(exchange.said, **changes)  # type: ignore[arg-type]
        await exchange.answer()

    return fault


FREE: dict[str, Fault] = {
    "rate": _status(429, "slow down", "rate_limit_exceeded"),
    "rate with seconds": _status(429, "slow down", "rate_limit_exceeded", Retry_After="2"),
    "rate with a date": _rate_until_date,
    "quota": _status(429, "you exceeded your current quota", "insufficient_quota"),
    "server error": _status(500, "the server had an error", "server_error"),
    "overloaded": _status(503, "try again later", "overloaded"),
}
BILLED_BUT_LOST: dict[str, Fault] = {
    "bad gateway": _gateway,
    "hang up": _hang_up,
    "cut": _cut,
    "silence": _silence,
    "drip": _drip,
    "page": _page,
    "broken": _broken,
    "nothing": _nothing,
    "other json": _other_json,
}
KNOWN: dict[str, Fault] = {
    "empty": _odd(text="", reasoning=40),
    "truncated": _odd(finish="length"),
    "declined": _odd(finish="declined"),
    "off topic": _odd(text="What a lovely question! Shall we talk about the weather?"),
}
FATAL: dict[str, Fault] = {
    "moved": _status(301, "", "", Location="https://elsewhere.example/v1"),
    "bad request": _status(400, "Unsupported parameter: 'temperature'", "unsupported_parameter"),
    "wrong key": _status(401, "Incorrect API key provided", "invalid_api_key"),
    "unknown model": _status(404, "The model does not exist", "model_not_found"),
}
FAULTS: dict[str, Fault] = {**FREE, **BILLED_BUT_LOST, **KNOWN, **FATAL}


def scattered(share: float, names: list[str], seed: int = 0) -> Callable[[int, Asked], str | None]:
    """A plan that lets about ``share`` of the requests fail, by chance but always the same ones.

    Each of ``names`` comes once before any comes again.
    """
    rng = random.Random(seed)
    plan: list[str | None] = []
    deck: list[str] = []

    def fault(number: int, asked: Asked) -> str | None:
        while len(plan) <= number:
            if not deck:
                deck.extend(rng.sample(names, len(names)))
            plan.append(deck.pop() if rng.random() < share else None)
        return plan[number]

    return fault


def off_topic(said: Said) -> bool:
    return "weather" in said.text
