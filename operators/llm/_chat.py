"""The Chat Completions API, which most servers speak: the request, and what its answer says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from operators.llm import Model, Prompt, Reply
from operators.llm._schema import format_of
from operators.llm._wire import conclude, metered

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from operators.llm._openai_options import OpenAIOptions

# what some open models write before their answer, when the server does not take it out
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>\s*", re.S)


class Chat:
    """``POST /chat/completions``."""

    async def send(self, client: AsyncOpenAI, request: dict[str, Any]) -> str:
        """The body of the answer."""
        raw = await client.chat.completions.with_raw_response.create(**request)
        return str(raw.http_response.text)

    def request(
        self, prompt: Prompt, model: Model, options: OpenAIOptions, structured: bool
    ) -> dict[str, Any]:
        """The arguments of the library's call."""
        request: dict[str, Any] = {
            "model": model.vendor_name,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.text},
            ],
            options.output_limit: model.max_output_tokens,
        }
        if options.effort is not None:
            request["reasoning_effort"] = options.effort
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if structured and prompt.schema is not None:
            request["response_format"] = {"type": "json_schema", "json_schema": format_of(prompt)}
        return request

    def read(self, data: Mapping[str, Any], prompt: Prompt, model: Model) -> Reply:
        """The reply in an answer's JSON; anything odd is a KeyError, TypeError or Trouble."""
        choice = data["choices"][0]
        message = choice["message"]
        text = _THOUGHTS.sub("", _text(message.get("content")))
        usage = data.get("usage")
        finish = _finish(choice.get("finish_reason"), message.get("refusal"))
        return conclude(
            prompt, model, text, usage and _usage(usage, model), finish, data.get("model")
        )


def _text(content: Any) -> str:
    """A string, or a list of pieces of which some are text."""
    if isinstance(content, list):
        return "".join(piece["text"] for piece in content if piece.get("type") == "text")
    return str(content or "")


def _usage(usage: Mapping[str, Any], model: Model) -> Any:
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    reasoning = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
    # the completion includes the reasoning
    output = usage["completion_tokens"] - reasoning
    return metered(model, usage["prompt_tokens"], cached, output, reasoning)


def _finish(reason: str | None, refusal: str | None) -> str:
    if refusal:
        return f"refusal: {refusal}"
    return {None: "stop", "length": "length", "content_filter": "content filter"}.get(
        reason, "stop"
    )
