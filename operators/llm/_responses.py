"""OpenAI's Responses API: the request, and what its answer says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from operators.llm import Kind, Model, Prompt, Reply, Trouble
from operators.llm._schema import format_of
from operators.llm._wire import conclude, metered

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from operators.llm._openai_options import OpenAIOptions


class Responses:
    """``POST /responses``, nothing stored on the server."""

    async def send(self, client: AsyncOpenAI, request: dict[str, Any]) -> str:
        """The body of the answer."""
        raw = await client.responses.with_raw_response.create(**request)
        return str(raw.http_response.text)

    def request(
        self, prompt: Prompt, model: Model, options: OpenAIOptions, structured: bool
    ) -> dict[str, Any]:
        """The arguments of the library's call."""
        request: dict[str, Any] = {
            "model": model.vendor_name,
            "instructions": prompt.system,
            "input": prompt.text,
            "max_output_tokens": model.max_output_tokens,
            "store": False,
        }
        if options.effort is not None:
            request["reasoning"] = {"effort": options.effort}
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if structured and prompt.schema is not None:
            request["text"] = {"format": {"type": "json_schema", **format_of(prompt)}}
        return request

    def read(self, data: Mapping[str, Any], prompt: Prompt, model: Model) -> Reply:
        """The reply in an answer's JSON; anything odd is a KeyError, TypeError or Trouble."""
        usage = data.get("usage")
        if data.get("status") == "failed":
            raise _failed(data["error"] or {})
        pieces = [
            piece
            for item in data["output"]
            if item["type"] == "message"
            for piece in item["content"]
        ]
        text = "".join(piece["text"] for piece in pieces if piece["type"] == "output_text")
        refusals = [piece["refusal"] for piece in pieces if piece["type"] == "refusal"]
        finish = _finish(data, refusals)
        return conclude(
            prompt, model, text, usage and _usage(usage, model), finish, data.get("model")
        )


def _usage(usage: Mapping[str, Any], model: Model) -> Any:
    cached = (usage.get("input_tokens_details") or {}).get("cached_tokens") or 0
    reasoning = (usage.get("output_tokens_details") or {}).get("reasoning_tokens") or 0
    # the output includes the reasoning
    output = usage["output_tokens"] - reasoning
    return metered(model, usage["input_tokens"], cached, output, reasoning)


def _finish(data: Mapping[str, Any], refusals: list[str]) -> str:
    if refusals:
        return f"refusal: {refusals[0]}"
    if data.get("status") != "incomplete":
        return "stop"
    reason = (data.get("incomplete_details") or {}).get("reason")
    return "length" if reason == "max_output_tokens" else f"incomplete: {reason}"


def _failed(error: Mapping[str, Any]) -> Trouble:
    """An answer that says itself that it failed; these are not billed."""
    kinds = {"server_error": Kind.OUTAGE, "rate_limit_exceeded": Kind.RATE}
    code = str(error.get("code"))
    return Trouble(kinds.get(code, Kind.REJECTED), f"{code}: {error.get('message', '')}")
