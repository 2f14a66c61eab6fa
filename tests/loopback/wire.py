"""The wire formats of OpenAI's two APIs and of Gemini, as a server speaks them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Tokens:
    """What a request is billed. Reasoning is apart from the output."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input,
            self.cached + other.cached,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )


@dataclass(frozen=True)
class Asked:
    """A request as the server understood it. ``request`` is its JSON, ``key`` what it came with."""

    api: str
    model: str
    system: str
    text: str
    schema: dict[str, Any] | None
    limit: int | None
    key: str
    request: dict[str, Any]


@dataclass(frozen=True)
class Said:
    """What the model answers. ``finish``: stop, length or declined."""

    text: str
    reasoning: int = 0
    cached: int = 0
    finish: str = "stop"


class Wire(Protocol):
    """One format."""

    def asked(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Asked: ...

    def answer(self, asked: Asked, said: Said, tokens: Tokens) -> dict[str, Any]: ...

    def error(self, status: int, message: str, code: str) -> dict[str, Any]: ...


class _OpenAI:
    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        kind = "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}


class ResponsesWire(_OpenAI):
    """POST /v1/responses"""

    def asked(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Asked:
        schema = body.get("text", {}).get("format", {}).get("schema")
        limit = body.get("max_output_tokens")
        key = headers.get("authorization", "").removeprefix("Bearer ")
        return Asked(
            "responses",
            body["model"],
            body.get("instructions", ""),
            body["input"],
            schema,
            limit,
            key,
            body,
        )

    def answer(self, asked: Asked, said: Said, tokens: Tokens) -> dict[str, Any]:
        piece: dict[str, Any] = {"type": "output_text", "text": said.text, "annotations": []}
        if said.finish == "declined":
            piece = {"type": "refusal", "refusal": said.text or "I cannot help with that."}
        message = {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [piece] if said.text or said.finish == "declined" else [],
        }
        cut = said.finish == "length"
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1_700_000_000,
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "error": None,
            "model": f"{asked.model}-2025-04-16",
            "output": [{"type": "reasoning", "id": "rs_1", "summary": []}, message],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": tokens.input,
                "input_tokens_details": {"cached_tokens": tokens.cached},
                "output_tokens": tokens.output + tokens.reasoning,
                "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
                "total_tokens": tokens.input + tokens.output + tokens.reasoning,
            },
        }


class ChatWire(_OpenAI):
    """POST /v1/chat/completions"""

    def asked(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Asked:
        said = {message["role"]: message["content"] for message in body["messages"]}
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        limit = body.get("max_completion_tokens", body.get("max_tokens"))
        key = headers.get("authorization", "").removeprefix("Bearer ")
        return Asked(
            "chat", body["model"], said.get("system", ""), said["user"], schema, limit, key, body
        )

    def answer(self, asked: Asked, said: Said, tokens: Tokens) -> dict[str, Any]:
        declined = said.finish == "declined"
        message = {
            "role": "assistant",
            "content": None if declined else said.text,
            "refusal": (said.text or "I cannot help with that.") if declined else None,
        }
        finish = {"length": "length"}.get(said.finish, "stop")
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": f"{asked.model}-2025-04-16",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {
                "prompt_tokens": tokens.input,
                "completion_tokens": tokens.output + tokens.reasoning,
                "total_tokens": tokens.input + tokens.output + tokens.reasoning,
                "prompt_tokens_details": {"cached_tokens": tokens.cached},
                "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
            },
        }


class GeminiWire:
    """POST /v1beta/models/NAME:generateContent"""

    def asked(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Asked:
        model = path.rpartition("/")[2].partition(":")[0]
        system = "".join(p["text"] for p in body.get("systemInstruction", {}).get("parts", []))
        text = "".join(p["text"] for content in body["contents"] for p in content["parts"])
        settings = body.get("generationConfig", {})
        schema = settings.get("responseJsonSchema", settings.get("responseSchema"))
        key = headers.get("x-goog-api-key", "")
        limit = settings.get("maxOutputTokens")
        return Asked("gemini", model, system, text, schema, limit, key, body)

    def answer(self, asked: Asked, said: Said, tokens: Tokens) -> dict[str, Any]:
        usage = {
            "promptTokenCount": tokens.input,
            "cachedContentTokenCount": tokens.cached,
            "candidatesTokenCount": tokens.output,
            "thoughtsTokenCount": tokens.reasoning,
            "totalTokenCount": tokens.input + tokens.output + tokens.reasoning,
        }
        base = {"usageMetadata": usage, "modelVersion": asked.model, "responseId": "r1"}
        if said.finish == "declined":
            return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **base}
        parts = [{"text": "let me think", "thought": True}, {"text": said.text}]
        finish = {"length": "MAX_TOKENS"}.get(said.finish, "STOP")
        content = {"role": "model", "parts": parts} if said.text else {"role": "model"}
        candidate = {"content": content, "finishReason": finish, "index": 0}
        return {"candidates": [candidate], **base}

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        names = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
        details: list[dict[str, Any]] = []
        if code == "invalid_api_key":
            details = [
                {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
            ]
        if code == "insufficient_quota":
            violation = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}
            details = [
                {
                    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                    "violations": [violation],
                },
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.5s"},
            ]
        return {
            "error": {
                "code": status,
                "message": message,
                "status": names.get(status, "UNAVAILABLE"),
                "details": details,
            }
        }


WIRES: dict[str, Wire] = {
    "responses": ResponsesWire(),
    "chat": ChatWire(),
    "gemini": GeminiWire(),
}


def wire_of(path: str) -> str | None:
    """Which format a request's path belongs to."""
    if path == "/v1/responses":
        return "responses"
    if path == "/v1/chat/completions":
        return "chat"
    if path.startswith("/v1beta/models/") and path.endswith(":generateContent"):
        return "gemini"
    return None


def encoded(data: dict[str, Any]) -> bytes:
    return json.dumps(data).encode()
