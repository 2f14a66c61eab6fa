"""The vendors' own libraries against servers that speak their wire formats, faults and all."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from operators.llm import Cost, Kind, Limits, Model, Price, Prompt, Provider, Reply, Trouble, Usage
from operators.llm import table as models
from operators.llm._wire import client
from operators.llm.estimate import at_most
from operators.llm.policy import Line
from tests.loopback import Asked, Loopback, Said
from tests.loopback.clock import travel
from tests.operators.test_llm_policy import Pages

KEY = "sk-planted-Zq7Kx1vR9tWm3bLp"
PRICE = Price(input=2.0, cached=0.5, output=8.0, reasoning=9.0)
APIS = ("responses", "chat", "gemini")
SCHEMA = {
    "type": "object",
    "properties": {"ideas": {"type": "array", "items": {"type": "string"}}},
    "required": ["ideas"],
    "additionalProperties": False,
}
PROMPT = Prompt("You write kernels.", ("Here is one.", "Make it faster."), "ideas")
every_api = pytest.mark.parametrize("api", APIS)


@pytest.fixture(autouse=True)
def planted_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PLANTED_KEY", KEY)


def model_of(server: Loopback, api: str, **more: Any) -> Model:
    options: dict[str, Any] = {"base_url": server.url(api), "key_env": "PLANTED_KEY", **more}
    provider = "gemini" if api == "gemini" else "openai"
    if provider == "openai":
        options["api"] = api
    return Model("o3", provider, options, PRICE, Limits(deadline_s=30))


def with_server(
    api: str,
    scene: Callable[[Loopback, Provider, Model], Awaitable[None]],
    options: dict[str, Any] | None = None,
    **settings: Any,
) -> None:
    """Run ``scene`` with a server, and a provider whose connections are closed at the end."""

    async def main() -> None:
        async with Loopback(**settings) as server:
            model = model_of(server, api, **(options or {}))
            provider = models.provider(model)
            try:
                await scene(server, provider, model)
            finally:
                await provider.aclose()

    travel(main())


def failing(fault: str) -> dict[int, str]:
    return dict.fromkeys(range(1000), fault)


async def trouble_of(attempt: Awaitable[Reply]) -> Trouble:
    with pytest.raises(Trouble) as raised:
        await asyncio.wait_for(attempt, 20)
    return raised.value


@every_api
def test_a_reply_comes_with_every_token_and_its_price(api: str) -> None:
    async def scene(server: Loopback, provider: Provider, model: Model) -> None:
        reply = await provider.complete(PROMPT, model)
        billed = server.log[0].billed
        assert billed is not None
        assert reply.text == "Use float4."
        assert reply.finish == "stop"
        assert reply.model.startswith("o3")
        expected = PRICE.usage(billed.input, billed.cached, billed.output, billed.reasoning)
        assert reply.usage == expected
        assert (reply.usage.cached, reply.usage.reasoning) == (4, 900)
        assert reply.usage.dollars > 900 * 9e-6

    with_server(api, scene, script=lambda _: Said("Use float4.", reasoning=900, cached=4))


@every_api
def test_the_server_gets_the_whole_request(api: str) -> None:
    async def scene(server: Loopback, provider: Provider, model: Model) -> None:
        await provider.complete(replace(PROMPT, schema=SCHEMA), model)
        asked = server.log[0].asked
        assert asked.api == api
        assert (asked.model, asked.system) == ("o3", "You write kernels.")
        assert asked.text == "Here is one.\n\nMake it faster."
        assert asked.schema == SCHEMA
        assert asked.limit == 5_000
        assert asked.key == KEY
        assert "0.5" in str(asked.request)

    with_server(api, scene, {"max_output_tokens": 5_000, "temperature": 0.5})


@every_api
def test_one_line_asks_at_several_temperatures(api: str) -> None:
    async def scene(server: Loopback, provider: Provider, model: Model) -> None:
        for heat in (0.25, 0.75):
            warm = replace(model, options={**model.options, "temperature": heat})
            await provider.complete(PROMPT, warm)
            assert str(heat) in str(server.log[-1].asked.request)

    with_server(api, scene)


def test_thinking_is_asked_for_in_each_vendors_words() -> None:
    async def scene(server: Loopback, provider: Provider, model: Model) -> None:
        await provider.complete(PROMPT, model)

    def request(api: str, **options: Any) -> dict[str, Any]:
        asked: list[Asked] = []
        with_server(api, scene, options, script=lambda one: asked.append(one) or "fine")
        return asked[0].request

    assert request("responses", effort="high")["reasoning"] == {"effort": "high"}
    assert request("responses")["store"] is False
    assert request("chat", effort="low")["reasoning_effort"] == "low"
    assert request("chat", output_limit="max_tokens")["max_tokens"] == 32_768
    thinking = request("gemini", thinking=2048)["generationConfig"]["thinkingConfig"]
    assert 2048 in thinking.values()
    thinking = request("gemini", thinking="low")["generationConfig"]["thinkingConfig"]
    assert "LOW" in thinking.values()


EXPECTED: dict[str, tuple[Kind, Cost]] = {
    "rate": (Kind.RATE, Cost.FREE),
    "rate with seconds": (Kind.RATE, Cost.FREE),
    "rate with a date": (Kind.RATE, Cost.FREE),
    "quota": (Kind.QUOTA, Cost.FREE),
    "server error": (Kind.OUTAGE, Cost.FREE),
    "overloaded": (Kind.OUTAGE, Cost.FREE),
    "bad gateway": (Kind.OUTAGE, Cost.UNKNOWN),
    "hang up": (Kind.LOST, Cost.UNKNOWN),
    "cut": (Kind.LOST, Cost.UNKNOWN),
    "page": (Kind.GARBLED, Cost.UNKNOWN),
    "broken": (Kind.GARBLED, Cost.UNKNOWN),
    "nothing": (Kind.GARBLED, Cost.UNKNOWN),
    "other json": (Kind.GARBLED, Cost.UNKNOWN),
    "empty": (Kind.EMPTY, Cost.KNOWN),
    "truncated": (Kind.TRUNCATED, Cost.KNOWN),
    "declined": (Kind.DECLINED, Cost.KNOWN),
    "bad request": (Kind.REJECTED, Cost.FREE),
    "wrong key": (Kind.KEY, Cost.FREE),
    "unknown model": (Kind.MODEL, Cost.FREE),
}


@every_api
@pytest.mark.parametrize("fault", EXPECTED)
def test_every_fault_is_told_apart_and_asked_once(api: str, fault: str) -> None:
    async def scene(server: Loopback, provider: Provider, model: Model) -> None:
        trouble = await trouble_of(provider.complete(PROMPT, model))
        assert (trouble.kind, trouble.cost) == EXPECTED[fault]
        assert trouble.message
        assert len(server.log) == 1, "the library asked again by itself"
        if trouble.cost is Cost.KNOWN:
            billed = server.log[0].billed
            assert billed is not None
            assert trouble.usage is not None
            assert trouble.usage.tokens == billed.input + billed.output + billed.reasoning

    with_server(api, scene, plan=failing(fault), script=lambda _: Said("an answer", reasoning=3))


@every_api
def test_the_server_says_how_long_to_leave_it_alone(api: str) -> None:
    async def scene(server: Loopback, provider: Provider, model: Model) -> None:
        bare, seconds, date = [await trouble_of(provider.complete(PROMPT, model)) for _ in range(3)]
        assert bare.retry_after_s is None
        assert seconds.retry_after_s == 2.0
        assert date.retry_after_s == pytest.approx(2.0)

    with_server(api, scene, plan={0: "rate", 1: "rate with seconds", 2: "rate with a date"})


def test_google_says_it_in_the_body() -> None:
    async def scene(server: Loopback, provider: Provider, model: Model) -> None:
        trouble = await trouble_of(provider.complete(PROMPT, model))
        assert trouble.retry_after_s == 3.5

    with_server("gemini", scene, plan=failing("quota"))


@every_api
@pytest.mark.parametrize("fault", ["silence", "drip"])
def test_a_reply_that_never_ends_is_given_up_at_the_deadline(api: str, fault: str) -> None:
    async def scene(server: Loopback, provider: Provider, model: Model) -> None:
        pages = Pages()
        line = Line(model, provider, rng=random.Random(0))
        begun = asyncio.get_running_loop().time()
        with pytest.raises(Exception, match="no answer in time"):
            await line.complete(PROMPT, pages)
        assert asyncio.get_running_loop().time() - begun == pytest.approx(30, abs=5)
        assert pages.entries == ["unknown"]
        assert pages.estimates == [at_most(PROMPT, model)]

    with_server(api, scene, plan=failing(fault))


@every_api
def test_cancelling_closes_the_connection(api: str) -> None:
    async def scene(server: Loopback, provider: Provider, model: Model) -> None:
        call = asyncio.create_task(provider.complete(PROMPT, model))
        while not server.log:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await provider.aclose()
        # the handler still sleeps; what it writes then meets a closed connection
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert all("Loopback" in repr(task.get_coro()) for task in others)

    with_server(api, scene, plan=failing("silence"))


@every_api
def test_a_server_that_nobody_runs_costs_nothing(api: str) -> None:
    async def main() -> None:
        async with Loopback() as server:
            pass
        model = model_of(server, api)
        provider = models.provider(model)
        trouble = await trouble_of(provider.complete(PROMPT, model))
        assert (trouble.kind, trouble.cost) == (Kind.UNREACHABLE, Cost.FREE)
        await provider.aclose()

    travel(main())


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_a_server_without_schemas_is_asked_without_from_then_on(api: str) -> None:
    async def scene(server: Loopback, provider: Provider, model: Model) -> None:
        prompt = replace(PROMPT, schema=SCHEMA)
        for _ in range(2):
            assert (await provider.complete(prompt, model)).text == "fine"
        assert [entry.asked.schema is None for entry in server.log] == [False, True, True]
        assert server.log[0].billed is None

    with_server(api, scene, schemas=False)


@every_api
def test_a_schema_is_kept_back_on_demand(api: str) -> None:
    async def scene(server: Loopback, provider: Provider, model: Model) -> None:
        await provider.complete(replace(PROMPT, schema=SCHEMA), model)
        assert server.log[0].asked.schema is None

    with_server(api, scene, {"structured": False})


def test_only_a_closed_schema_is_demanded_strictly() -> None:
    async def scene(server: Loopback, provider: Provider, model: Model) -> None:
        loose = {"type": "object", "properties": {"ideas": {"type": "string"}}}
        for schema in (SCHEMA, loose):
            await provider.complete(replace(PROMPT, schema=schema), model)
        strict = [entry.asked.request["text"]["format"]["strict"] for entry in server.log]
        assert strict == [True, False]

    with_server("responses", scene)


def test_a_server_that_counts_nothing_is_booked_at_the_safe_side() -> None:
    async def scene(server: Loopback, provider: Provider, model: Model) -> None:
        from tests.loopback.wire import WIRES

        wire = WIRES["chat"]
        body = wire.answer
        monkey = lambda *args: {**body(*args), "usage": None}  # noqa: E731
        wire.answer = monkey  # type: ignore[method-assign]
        try:
            reply = await provider.complete(PROMPT, model)
        finally:
            del wire.answer
        assert reply.usage.input == at_most(PROMPT, model).input
        assert reply.usage.output == len("fine")
        assert reply.usage.dollars > 0

    with_server("chat", scene)


def test_thoughts_in_an_open_models_answer_are_taken_out() -> None:
    async def scene(server: Loopback, provider: Provider, model: Model) -> None:
        assert (await provider.complete(PROMPT, model)).text == "__global__ void k() {}"

    with_server("chat", scene, script=lambda _: "<think>Hm.\n</think>\n\n__global__ void k() {}")


class TestCheck:
    @every_api
    def test_it_costs_nothing(self, api: str) -> None:
        async def scene(server: Loopback, provider: Provider, model: Model) -> None:
            await provider.check(model)
            assert server.looked_up
            assert not server.log

        with_server(api, scene, models={"o3"}, key=KEY)

    @every_api
    def test_it_names_what_is_wrong_with_the_model(self, api: str) -> None:
        async def scene(server: Loopback, provider: Provider, model: Model) -> None:
            with pytest.raises(Trouble, match="o3") as raised:
                await provider.check(model)
            assert raised.value.kind is Kind.MODEL

        with_server(api, scene, models={"o4"})

    def test_a_server_that_lists_its_models_only_is_understood(self) -> None:
        async def scene(server: Loopback, provider: Provider, model: Model) -> None:
            await provider.check(model)
            with pytest.raises(Trouble, match="it has: llama, o3"):
                await provider.check(replace(model, name="o5"))

        with_server("chat", scene, models={"o3", "llama"}, lists_only=True)

    @every_api
    def test_a_wrong_key_is_named_by_its_variable_and_never_shown(
        self, api: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def scene(server: Loopback, provider: Provider, model: Model) -> None:
            for attempt in (provider.check(model), provider.complete(PROMPT, model)):
                with pytest.raises(Trouble) as raised:
                    await attempt
                trouble = raised.value
                assert trouble.kind is Kind.KEY
                assert "PLANTED_KEY" in trouble.message
                assert trouble.__cause__ is None
                shown = trouble.message + repr(trouble) + repr(provider) + caplog.text
                assert not sorted(pieces_of(KEY) & pieces_of(shown))

        caplog.set_level(logging.DEBUG)
        with_server(api, scene, key="another")


def pieces_of(text: str, size: int = 6) -> set[str]:
    return {text[i : i + size] for i in range(len(text) - size + 1)}


class TestKeys:
    @pytest.mark.parametrize("provider", ["openai", "gemini"])
    def test_without_one_the_remedy_is_told_before_anything_is_sent(self, provider: str) -> None:
        async def main() -> None:
            one = models.provider(Model("o3", provider))
            with pytest.raises(Trouble, match=r"set .*_API_KEY in the environment or a \.env file"):
                await one.check(Model("o3", provider))
            await one.aclose()

        travel(main())

    @every_api
    def test_another_server_never_gets_the_vendors_key(
        self, api: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
            monkeypatch.setenv(name, KEY)

        async def scene(server: Loopback, provider: Provider, model: Model) -> None:
            await provider.complete(PROMPT, model)
            assert server.log[0].asked.key == "none"

        with_server(api, scene, {"key_env": None})

    def test_a_usage_of_nothing_is_nothing(self) -> None:
        assert Usage().tokens == 0


def test_a_server_in_a_thread_serves_an_ordinary_loop() -> None:
    with Loopback(latency_s=0.01) as server:
        model = model_of(server, "chat")

        async def main() -> list[Reply]:
            provider = models.provider(model)
            replies = await asyncio.gather(*(provider.complete(PROMPT, model) for _ in range(4)))
            await provider.aclose()
            return replies

        assert [reply.text for reply in asyncio.run(main())] == ["fine"] * 4
    assert len(server.log) == 4
    assert server.busiest > 1


def test_a_connection_over_which_nothing_comes_for_minutes_is_kept_awake() -> None:
    async def main() -> None:
        async with Loopback() as server, client() as connections:
            answer = await connections.get(f"{server.openai_url}/models")
            link = answer.extensions["network_stream"].get_extra_info("socket")
            assert link.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 60

    travel(main())


def test_a_redirect_is_not_followed_with_the_key() -> None:
    async def scene(server: Loopback, provider: Provider, model: Model) -> None:
        trouble = await trouble_of(provider.complete(PROMPT, model))
        assert trouble.kind is Kind.REJECTED
        assert "set base_url to https://elsewhere.example/v1" in trouble.message

    for api in APIS:
        with_server(api, scene, plan=failing("moved"))
