"""OpenAI, and every server that speaks its protocol, over the official library."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from operators.llm import Kind, Model, Prompt, Reply, Trouble, _options, _wire, keys
from operators.llm._chat import Chat
from operators.llm._openai_options import APIS, OpenAIOptions
from operators.llm._responses import Responses

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

_USUAL_KEYS = ("OPENAI_API_KEY",)
_HOME = "https://api.openai.com/v1"


class _Dialect(Protocol):
    async def send(self, client: AsyncOpenAI, request: dict[str, Any]) -> str: ...

    def request(
        self, prompt: Prompt, model: Model, options: OpenAIOptions, structured: bool
    ) -> dict[str, Any]: ...

    def read(self, data: Mapping[str, Any], prompt: Prompt, model: Model) -> Reply: ...


DIALECTS: Mapping[str, _Dialect] = MappingProxyType(
    dict(zip(APIS, (Responses(), Chat()), strict=True))
)


def make(**options: Any) -> OpenAI:
    """The provider. Raises ValueError for options that it does not know."""
    return OpenAI(_options.read(OpenAIOptions, options))


class OpenAI:
    """One server and its connections, opened when first needed.

    ``options`` say where it is; what is asked for comes with the model of each call.
    """

    def __init__(self, options: OpenAIOptions) -> None:
        self._options = options
        self._dialect = DIALECTS[options.api]
        self._structured = True  # until the server turns out not to know schemas
        self._key: keys.Key | None = None
        self._client: AsyncOpenAI | None = None

    async def complete(self, prompt: Prompt, model: Model) -> Reply:
        """One attempt. A server that does not know schemas is asked again without, for nothing."""
        structured = self._structured and _of(model).structured and prompt.schema is not None
        try:
            return await self._once(prompt, model, structured)
        except Trouble as trouble:
            if not (structured and _about_schema(trouble)):
                raise
        self._structured = False
        return await self._once(prompt, model, False)

    async def check(self, model: Model) -> None:
        """Ask the server whether it has the model; a server without a list of models passes."""
        try:
            await self._call(lambda client: client.models.retrieve(model.vendor_name))
        except Trouble as trouble:
            if trouble.kind is not Kind.MODEL:
                raise
            await self._look_up(model, trouble)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _look_up(self, model: Model, trouble: Trouble) -> None:
        """Some servers list their models and know none of them singly."""
        try:
            page = await self._call(lambda client: client.models.list())
            known = sorted(entry.id for entry in page.data)
        except (Trouble, AttributeError, TypeError):
            return
        if model.vendor_name not in known:
            raise Trouble(Kind.MODEL, f"{trouble.message}; it has: {', '.join(known[:20])}")

    async def _once(self, prompt: Prompt, model: Model, structured: bool) -> Reply:
        request = self._dialect.request(prompt, model, _of(model), structured)
        body = await self._call(lambda client: self._dialect.send(client, request))
        try:
            return self._dialect.read(_wire.parsed(body), prompt, model)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            raise _wire.garbled(f"an unknown answer ({type(error).__name__})") from None
        except Trouble as trouble:
            trouble.message = self._scrub(trouble.message)
            raise

    async def _call(self, call: Any) -> Any:
        """Do ``call`` with the client, its faults as Trouble without any key."""
        client = self._open()
        import openai

        try:
            return await call(client)
        except openai.APIStatusError as error:
            trouble = self._status(error)
        except openai.APIConnectionError as error:
            trouble = _wire.connection_trouble(error.__cause__)
        except (openai.OpenAIError, ValueError) as error:
            trouble = _wire.garbled(f"an unknown answer ({type(error).__name__})")
        trouble.message = self._scrub(trouble.message)
        raise trouble from None

    def _status(self, error: APIStatusError) -> Trouble:
        body = error.body if isinstance(error.body, dict) else {}
        message = body.get("message") or error.response.text[:200]
        trouble = _wire.status_trouble(
            error.status_code, str(message), error.response.headers, error.code
        )
        if trouble.kind is Kind.KEY:
            trouble.message = f"{trouble.message.rstrip('.')}. {self._remedy()}"
        return trouble

    def _remedy(self) -> str:
        if self._key is not None:
            return f"See to {self._key.name}, which holds the key"
        return "Name the environment variable that holds its key as key_env"

    def _open(self) -> AsyncOpenAI:
        if self._client is None:
            names = self._options.keys(_USUAL_KEYS)
            self._key = keys.need(names) if names else None
            from openai import AsyncOpenAI

            self._client = AsyncOpenAI(
                api_key=self._key.secret() if self._key else "none",
                base_url=self._options.base_url or _HOME,
                max_retries=0,
                http_client=_wire.client(),
            )
        return self._client

    def _scrub(self, text: str) -> str:
        return self._key.scrub(text) if self._key else keys.scrub(text)


def _of(model: Model) -> OpenAIOptions:
    """A call's own options: a model may be asked at several temperatures over one line."""
    return _options.read(OpenAIOptions, model.options)


def _about_schema(trouble: Trouble) -> bool:
    words = ("response_format", "json_schema", "text.format", "schema", "structured")
    return trouble.kind is Kind.REJECTED and any(word in trouble.message for word in words)
