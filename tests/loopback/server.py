"""The server: reads requests, answers by a script, injects faults and keeps a log."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Self

from tests.loopback.faults import FAULTS
from tests.loopback.wire import WIRES, Asked, Said, Tokens, Wire, encoded, wire_of

Script = Callable[[Asked], Said | str | Awaitable[Said | str]]
Plan = Callable[[int, Asked], str | None]


@dataclass
class Entry:
    """A request that came in: ``billed`` is what the vendor will charge for it.

    ``told``: its usage was sent to the client as it should be.
    """

    number: int
    asked: Asked
    fault: str | None
    billed: Tokens | None = None
    told: bool = False


class Loopback:
    """Servers of all formats at one port of 127.0.0.1.

    Use as ``async with`` in a test's own loop, or as ``with`` to have it in a thread of its own.

    Args:
        script: what the model answers.
        plan: the name of the fault for request ``number`` (from 0), or None.
        latency_s: how long an answer takes.
        key: the key that is accepted; None accepts all.
        models: the names that exist; None: all do.
        schemas: whether a JSON schema in a request is accepted.
    """

    def __init__(
        self,
        script: Script = lambda asked: "fine",
        plan: Plan | Mapping[int, str] | None = None,
        latency_s: float = 0.0,
        key: str | None = None,
        models: set[str] | None = None,
        schemas: bool = True,
        lists_only: bool = False,
    ) -> None:
        self.script = script
        self.plan: Plan = (
            plan if callable(plan) else (lambda number, _: dict(plan or {}).get(number))
        )
        self.latency_s = latency_s
        self.key, self.models, self.schemas, self.lists_only = key, models, schemas, lists_only
        self.log: list[Entry] = []
        self.looked_up: list[str] = []  # paths of requests about models
        self.busiest = 0
        self.port = 0
        self.drip_s = 1.0
        self.open = 0  # connections
        self._busy = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread: threading.Thread | None = None

    @property
    def openai_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def gemini_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def url(self, api: str) -> str:
        return self.gemini_url if api == "gemini" else self.openai_url

    def billed(self, told: bool) -> Tokens:
        """The sum over the requests whose usage was told, or was not."""
        sums = [entry.billed for entry in self.log if entry.billed and entry.told is told]
        return sum(sums, Tokens())

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def __enter__(self) -> Self:
        ready = threading.Event()

        async def serve() -> None:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            async with self:
                ready.set()
                await self._stop.wait()

        self._thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
        self._thread.start()
        assert ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.open += 1
        task.add_done_callback(self._tasks.discard)
        try:
            while not writer.is_closing() and (head := await reader.readuntil(b"\r\n\r\n")):
                await self._request(head.decode("latin1"), reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        except asyncio.CancelledError:
            pass  # the server stops
        finally:
            self.open -= 1
            writer.close()

    async def _request(
        self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        first, *lines = head.strip().split("\r\n")
        method, path, _ = first.split(" ")
        headers = {
            name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        path = path.partition("?")[0]
        api = wire_of(path)
        exchange = Exchange(self, writer, WIRES[api or ("gemini" if "beta" in path else "chat")])
        if method == "GET":
            await self._models(exchange, path, headers)
        elif api is None:
            await exchange.refuse(404, f"no such path: {path}", "not_found")
        else:
            await self._answer(exchange, exchange.wire.asked(path, headers, json.loads(body)))

    async def _answer(self, exchange: Exchange, asked: Asked) -> None:
        entry = Entry(len(self.log), asked, self.plan(len(self.log), asked))
        self.log.append(entry)
        if await self._refused(exchange, asked.key, asked.model):
            return
        if asked.schema is not None and not self.schemas:
            await exchange.refuse(400, "Unknown parameter: 'response_format'", "unknown_parameter")
            return
        self._busy += 1
        self.busiest = max(self.busiest, self._busy)
        try:
            said = self.script(asked)
            said = await said if inspect.isawaitable(said) else said
            exchange.began(entry, Said(said) if isinstance(said, str) else said)
            await asyncio.sleep(self.latency_s)
            await (FAULTS[entry.fault](exchange) if entry.fault else exchange.answer())
        finally:
            self._busy -= 1

    async def _models(self, exchange: Exchange, path: str, headers: dict[str, str]) -> None:
        self.looked_up.append(path)
        name = path.partition("/models")[2].lstrip("/")
        key = headers.get("x-goog-api-key") or headers.get("authorization", "").partition(" ")[2]
        if name and self.lists_only:
            await exchange.refuse(404, "Not Found", "not_found")
        elif not await self._refused(exchange, key, name):
            one = {"id": name, "object": "model", "name": f"models/{name}"}
            known = [{"id": each, "object": "model"} for each in sorted(self.models or ())]
            await exchange.send(200, encoded(one if name else {"object": "list", "data": known}))

    async def _refused(self, exchange: Exchange, key: str, model: str) -> bool:
        if self.key is not None and key != self.key:
            # OpenAI's message quotes both ends of the key, others all of it
            quoted = f"{key[:8]}{'*' * 20}{key[-4:]}" if key != "none" else key
            status = 400 if exchange.wire is WIRES["gemini"] else 401
            message = f"Incorrect API key provided: {quoted}. You sent {key}."
            await exchange.refuse(status, message, "invalid_api_key")
        elif self.models is not None and model and model not in self.models:
            await exchange.refuse(404, f"The model `{model}` does not exist", "model_not_found")
        else:
            return False
        return True


class Exchange:
    """One request being answered."""

    def __init__(self, server: Loopback, writer: asyncio.StreamWriter, wire: Wire) -> None:
        self.wire = wire
        self.drip_s = server.drip_s
        self.said = Said("")
        self._writer = writer
        self._entry: Entry | None = None

    def began(self, entry: Entry, said: Said) -> None:
        self._entry, self.said = entry, said

    def bill(self) -> bytes:
        """Charge for the answer, and give its body."""
        entry = self._entry
        assert entry is not None
        asked, said = entry.asked, self.said
        output = len(said.text) // 4 + 1 if said.text else 0
        entry.billed = Tokens(
            len(asked.system + asked.text) // 4 + 3, said.cached, output, said.reasoning
        )
        return encoded(self.wire.answer(asked, said, entry.billed))

    async def answer(self) -> None:
        body = self.bill()
        assert self._entry is not None
        self._entry.told = True  # before the client can know of it
        await self.send(200, body)

    async def refuse(self, status: int, message: str, code: str) -> None:
        await self.send(status, encoded(self.wire.error(status, message, code)))

    async def send(
        self,
        status: int,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        length: int | None = None,
    ) -> None:
        lines = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body) if length is None else length),
            **(headers or {}),
        }
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        await self.write(f"{head}\r\n".encode() + body)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()
