"""What a user may write for a model of OpenAI's, or of a server that speaks its protocol."""

from __future__ import annotations

from dataclasses import dataclass

from operators.llm import _options

APIS = ("responses", "chat")
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_LIMITS = ("max_completion_tokens", "max_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIOptions(_options.Options):
    """``api`` is responses or chat; ``effort`` how much a reasoning model thinks.

    ``output_limit`` is what a server of chat calls its limit of output tokens.
    """

    api: str = "responses"
    effort: str | None = None
    output_limit: str = "max_completion_tokens"

    def __post_init__(self) -> None:
        super(OpenAIOptions, self).__post_init__()  # a slotted class: plain super() would not do
        _options.one_of(self.api, APIS, "api")
        _options.one_of(self.effort, _EFFORTS, "effort")
        _options.one_of(self.output_limit, _LIMITS, "output_limit")
