"""What a call may cost, before it is made."""

from __future__ import annotations

import json

from operators.llm import Model, Price, Prompt, Usage

# chat templates, role marks and the wrapping of a schema: some dozens of tokens in fact
_WRAPPING = 256
# of prose and code mixed; measured tokenizers lie between 3 and 4.5
_BYTES_PER_TOKEN = 3.5
# no price known: nothing can be said in dollars
_FREE = Price(0, 0, 0, 0)


def at_most(prompt: Prompt, model: Model) -> Usage:
    """The upper estimate of one attempt, in tokens and dollars.

    Input: one token for each byte of UTF-8, which is safe for every byte-level tokenizer (a token
    stands for one byte at least) and about four times too high for prose and code; the schema
    counts twice, as a server may print it with more spaces; and 256 tokens for a chat's wrapping.
    Output: the limit that is sent along. Not covered is a server that disregards that limit or
    puts a long text of its own before the prompt.
    """
    price = model.price or _FREE
    dearest = Price(max(price.input, price.cached), 0, max(price.output, price.reasoning), 0)
    size = _bytes(prompt.system) + _bytes(prompt.text) + 2 * _bytes(_schema(prompt)) + _WRAPPING
    return dearest.usage(size, 0, model.max_output_tokens, 0)


def about(prompt: Prompt) -> int:
    """The likely number of input tokens, to plan with; within a third for English and code."""
    size = _bytes(prompt.system) + _bytes(prompt.text) + _bytes(_schema(prompt))
    return round(size / _BYTES_PER_TOKEN)


def _schema(prompt: Prompt) -> str:
    return json.dumps(dict(prompt.schema)) if prompt.schema else ""


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
