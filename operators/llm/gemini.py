"""Google's Gemini API, over the official library google-genai."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from operators.llm import Kind, Model, Prompt, Reply, Trouble, Usage, _options, _wire, keys

if TYPE_CHECKING:
    import httpx2
    from google import genai
    from google.genai import errors, types

_USUAL_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
_VERSION = "v1beta"  # has every model and option; the library's default differs between releases
_LEVELS = ("minimal", "low", "medium", "high")
_CUT = frozenset({"MAX_TOKENS", "CONTINUATION"})
# an accident of the server and no verdict on the request: what text there is counts
_ACCIDENTS = frozenset(
    {"STOP", "OTHER", "MALFORMED_RESPONSE", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiOptions(_options.Options):
    """``thinking`` is a level (minimal, low, medium, high) or a number of tokens.

    0 turns thinking off where the model allows it, -1 leaves it to the model.
    """

    thinking: str | int | None = None

    def __post_init__(self) -> None:
        super(GeminiOptions, self).__post_init__()  # a slotted class: plain super() would not do
        if not isinstance(self.thinking, int) or isinstance(self.thinking, bool):
            _options.one_of(self.thinking, _LEVELS, "thinking")


def make(**options: Any) -> Gemini:
    """The provider. Raises ValueError for options that it does not know."""
    return Gemini(_options.read(GeminiOptions, options))


class Gemini:
    """The server and its connections, opened when first needed.

    ``options`` say where it is; what is asked for comes with the model of each call.
    """

    def __init__(self, options: GeminiOptions) -> None:
        self._options = options
        self._key: keys.Key | None = None
        self._client: genai.Client | None = None
        self._connections: httpx2.AsyncClient | None = None

    async def complete(self, prompt: Prompt, model: Model) -> Reply:
        """One attempt."""
        client = self._open()
        config = self._config(prompt, model)
        answer = await self._call(
            client.aio.models.generate_content(
                model=model.vendor_name, contents=prompt.text, config=config
            )
        )
        try:
            return _read(answer, prompt, model)
        except (TypeError, AttributeError, IndexError, ValueError) as error:
            raise _wire.garbled(f"an unknown answer ({type(error).__name__})") from None
        except Trouble as trouble:
            trouble.message = self._scrub(trouble.message)
            raise

    async def check(self, model: Model) -> None:
        """Ask the server whether it has the model."""
        await self._call(self._open().aio.models.get(model=model.vendor_name))

    async def aclose(self) -> None:
        """Close the connections."""
        if self._connections is not None:
            await self._connections.aclose()
            self._client = self._connections = None

    def _config(self, prompt: Prompt, model: Model) -> types.GenerateContentConfig:
        from google.genai import types

        options = _options.read(GeminiOptions, model.options)
        settings: dict[str, Any] = {
            "system_instruction": prompt.system,
            "max_output_tokens": model.max_output_tokens,
            "temperature": options.temperature,
            "thinking_config": _thinking(options.thinking),
            # the library would ask on by itself, each time at our cost
            "automatic_continuation": False,
            "automatic_function_calling": {"disable": True},
        }
        if options.structured and prompt.schema is not None:
            settings["response_mime_type"] = "application/json"
            settings["response_json_schema"] = dict(prompt.schema)
        return types.GenerateContentConfig(**settings)

    async def _call(self, request: Any) -> Any:
        """Await ``request``, its faults as Trouble without any key."""
        import httpx2
        from google.genai import errors

        try:
            return await request
        except errors.APIError as error:
            trouble = self._status(error)
        except httpx2.HTTPError as error:
            trouble = _wire.connection_trouble(error)
        except (ValueError, TypeError, AttributeError) as error:
            trouble = _wire.garbled(f"an unknown answer ({type(error).__name__})")
        trouble.message = self._scrub(trouble.message)
        raise trouble from None

    def _status(self, error: errors.APIError) -> Trouble:
        details = _details(error)
        reasons = {detail.get("reason") for detail in details}
        headers = dict(getattr(error.response, "headers", {}))
        trouble = _wire.status_trouble(error.code, error.message or error.status or "", headers)
        if "API_KEY_INVALID" in reasons:  # comes with status 400
            trouble.kind = Kind.KEY
        if trouble.kind is Kind.KEY and self._key is not None:
            trouble.message = (
                f"{trouble.message.rstrip('.')}. See to {self._key.name}, which holds the key"
            )
        if trouble.kind is Kind.RATE:
            _read_quota(trouble, details)
        return trouble

    def _open(self) -> genai.Client:
        # kept, as a client that nobody holds is closed
        if self._client is None:
            names = self._options.keys(_USUAL_KEYS)
            self._key = keys.need(names) if names else None
            from google import genai
            from google.genai import types

            self._connections = _wire.client()
            http = types.HttpOptions(
                base_url=self._options.base_url,
                api_version=_VERSION,
                httpx_async_client=self._connections,
            )
            secret = self._key.secret() if self._key else "none"
            self._client = genai.Client(vertexai=False, api_key=secret, http_options=http)
        return self._client

    def _scrub(self, text: str) -> str:
        return self._key.scrub(text) if self._key else keys.scrub(text)


def _thinking(thinking: str | int | None) -> dict[str, Any] | None:
    if thinking is None:
        return None
    if isinstance(thinking, int):
        return {"thinking_budget": thinking}
    return {"thinking_level": thinking.upper()}


def _details(error: errors.APIError) -> list[dict[str, Any]]:
    body = error.details if isinstance(error.details, dict) else {}
    inner = body.get("error", body)
    found = inner.get("details") if isinstance(inner, dict) else None
    return [detail for detail in found or [] if isinstance(detail, dict)]


def _read_quota(trouble: Trouble, details: list[dict[str, Any]]) -> None:
    """How long to wait, which Google says in the body, and whether the day's quota is gone."""
    for detail in details:
        delay = str(detail.get("retryDelay", "")).removesuffix("s")
        if delay.replace(".", "", 1).isdigit():
            trouble.retry_after_s = float(delay)
        if any("PerDay" in str(each) for each in detail.get("violations", ())):
            trouble.kind = Kind.QUOTA


def _read(answer: types.GenerateContentResponse, prompt: Prompt, model: Model) -> Reply:
    candidate = answer.candidates[0] if answer.candidates else None
    content = candidate.content if candidate else None
    parts = (content.parts if content else None) or []
    text = "".join(part.text for part in parts if part.text and not part.thought)
    return _wire.conclude(
        prompt, model, text, _usage(answer, model), _finish(answer), answer.model_version
    )


def _usage(answer: types.GenerateContentResponse, model: Model) -> Usage | None:
    counted = answer.usage_metadata
    if counted is None:
        return None
    return _wire.metered(
        model,
        counted.prompt_token_count or 0,
        counted.cached_content_token_count or 0,
        counted.candidates_token_count or 0,
        counted.thoughts_token_count or 0,  # apart from the candidates' tokens
    )


def _finish(answer: types.GenerateContentResponse) -> str:
    blocked = answer.prompt_feedback and answer.prompt_feedback.block_reason
    if blocked:
        return f"prompt blocked: {blocked.value}"
    reason = answer.candidates[0].finish_reason if answer.candidates else None
    if reason is None or reason.value in _ACCIDENTS:
        return "stop"
    return "length" if reason.value in _CUT else reason.value
