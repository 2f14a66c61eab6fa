"""What the providers share: connections, and every fault of HTTP and of an answer as Trouble."""

from __future__ import annotations

import email.utils
import json
import re
import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.request import getproxies

from operators.llm import Cost, Kind, Model, Prompt, Reply, Trouble, Usage
from operators.llm.estimate import at_most

if TYPE_CHECKING:
    import httpx2

CONNECT_S = 15.0
# a model that thinks for ten minutes sends nothing meanwhile, and a router on the way forgets the
# connection: these keep it awake
_ALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 30),
)

_KINDS = {401: Kind.KEY, 402: Kind.QUOTA, 403: Kind.KEY, 404: Kind.MODEL, 429: Kind.RATE}
# tried again like server trouble: request too slow, conflict, too early
_PASSING = frozenset({408, 409, 425})
# a gateway's: what became of the request behind it nobody knows
_BEYOND_GATEWAY = frozenset({502, 504, 520, 522, 524})
_OUT_OF_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


def client() -> httpx2.AsyncClient:
    """Connections without redirects (which would carry the key along) and without retries.

    Only connecting has a time limit here; the whole attempt has the caller's. A library's own
    timeout is overruled, as it bounds one read and not the whole.
    """
    import httpx2

    async def bound(request: httpx2.Request) -> None:
        request.extensions["timeout"] = {"connect": CONNECT_S, "read": None, "write": None}

    limits = httpx2.Limits(max_connections=None)
    # a transport of our own would not go through a proxy that the environment names
    alive = (
        None if getproxies() else httpx2.AsyncHTTPTransport(limits=limits, socket_options=_ALIVE)
    )
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(None, connect=CONNECT_S),
        limits=limits,
        transport=alive,
        event_hooks={"request": [bound]},
    )


def connection_trouble(error: BaseException | None) -> Trouble:
    """A connection's fault: not sent, so free, or sent and lost."""
    import httpx2

    name = type(error).__name__
    unsent = (
        httpx2.ConnectError,
        httpx2.ConnectTimeout,
        httpx2.PoolTimeout,
        httpx2.ProxyError,
        httpx2.UnsupportedProtocol,
    )
    if isinstance(error, unsent):
        return Trouble(Kind.UNREACHABLE, f"{name}: {error}" if str(error) else name)
    return Trouble(Kind.LOST, f"{name} after the request was sent", Cost.UNKNOWN)


def status_trouble(
    status: int, message: str, headers: Mapping[str, str], code: str | None = None
) -> Trouble:
    """An HTTP status other than 200; ``code`` is the vendor's word for it."""
    told = f"HTTP {status}: {message}" if message else f"HTTP {status}"
    kind = _KINDS.get(status, Kind.REJECTED)
    if status >= 500 or status in _PASSING:
        kind = Kind.OUTAGE
    if code in _OUT_OF_QUOTA:
        kind = Kind.QUOTA
    if 300 <= status < 400:
        told = f"HTTP {status}: the server is elsewhere; set base_url to {headers.get('location')}"
    cost = Cost.UNKNOWN if status in _BEYOND_GATEWAY else Cost.FREE
    return Trouble(kind, told, cost, retry_after_s=retry_after_s(headers))


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The seconds for which the server asks to be left alone: a number, or an HTTP date.

    A date is held against the server's own clock where it tells it.
    """
    if re.fullmatch(r"\d+(\.\d*)?", milliseconds := headers.get("retry-after-ms", "").strip()):
        return float(milliseconds) / 1000
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d*)?", value):
        return float(value)
    until, now = _date(value), _date(headers.get("date", ""))
    return None if until is None else max(0.0, until - (time.time() if now is None else now))


def _date(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None


def parsed(body: str) -> dict[str, Any]:
    """The JSON object in a body that came with status 200. Raises Trouble."""
    try:
        data = json.loads(body)
    except ValueError:
        data = None
    if isinstance(data, dict):
        return data
    looks = "an empty body" if not body.strip() else f"no JSON object but {body[:40]!r}"
    raise garbled(looks)


def garbled(what: str) -> Trouble:
    """The trouble of an answer that says 200 and cannot be read."""
    return Trouble(Kind.GARBLED, f"HTTP 200 with {what}", Cost.UNKNOWN)


def conclude(
    prompt: Prompt,
    model: Model,
    text: str,
    usage: Usage | None,
    finish: str,
    version: str | None,
) -> Reply:
    """The reply, if it is one. ``finish`` is ``stop``, ``length`` or why the model declined.

    A server that gives no usage is booked as if each byte were a token.
    """
    if usage is None:
        if not text.strip():
            raise garbled("neither text nor usage")
        usage = _unmetered(prompt, model, text)
    if finish not in {"stop", "length"}:
        _fail(Kind.DECLINED, finish, usage, text)
    if finish == "length":
        size = f"{model.max_output_tokens} tokens, {usage.reasoning} of them reasoning"
        _fail(Kind.TRUNCATED, f"cut at {size}: raise max_output_tokens", usage, text)
    if not text.strip():
        _fail(Kind.EMPTY, "no text in the answer", usage, text)
    return Reply(text, usage, version or model.vendor_name, finish)


def _fail(kind: Kind, message: str, usage: Usage, text: str) -> NoReturn:
    raise Trouble(kind, message, usage=usage, text=text)


def _unmetered(prompt: Prompt, model: Model, text: str) -> Usage:
    most = at_most(prompt, model)
    output = min(len(text.encode()), most.output)
    if model.price is None:
        return Usage(most.input, 0, output)
    return model.price.usage(most.input, 0, output, 0)


def metered(model: Model, input: int, cached: int, output: int, reasoning: int) -> Usage:
    """The usage that a server reports, with what it costs."""
    if min(input, cached, output, reasoning) < 0:
        raise ValueError("a negative number of tokens")
    if model.price is None:
        return Usage(input, cached, output, reasoning)
    return model.price.usage(input, cached, output, reasoning)
