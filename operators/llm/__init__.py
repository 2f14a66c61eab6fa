"""Language models as authors see them: the records of a request and its reply.

The vendors' libraries are imported in the providers only (``operators/llm/NAME.py``), and there as
late as possible. ``policy.Line`` is the way to ask a model, ``table.read`` makes a Model of what
the user wrote.

    Trouble     one attempt failed; its Kind says how. Providers raise it, nothing else does.
    Refused     no usable answer will come to this prompt; the run goes on without it.
    Unusable    the model cannot be asked at all (key, name); the user has to put it right.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol

from cuda_sandbox.errors import UserError

# how a server is reached: it does not decide what is answered
_TRANSPORT = frozenset({"base_url", "key_env"})


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked. ``parts`` are joined by blank lines; the store keeps equal ones once.

    ``purpose`` is one of port, ideas, kernel, crossover, repair. ``schema`` is the JSON schema of
    the answer, or None for free text.
    """

    system: str
    parts: tuple[str, ...]
    purpose: str
    schema: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """The request as the model reads it, after ``system``."""
        return "\n\n".join(self.parts)

    def digest(self, model: Model) -> str:
        """Of all that decides the answer: the prompt, the model and its options (hex)."""
        options = {key: value for key, value in model.options.items() if key not in _TRANSPORT}
        asked = (self.system, self.text, self.schema and dict(self.schema))
        whole = json.dumps([model.name, model.provider, options, asked], sort_keys=True)
        return hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call to a model cost. Reasoning tokens are apart from ``output``."""

    input: int = 0
    cached: int = 0  # part of the input
    output: int = 0
    reasoning: int = 0
    dollars: float = 0.0

    @property
    def tokens(self) -> int:
        """All tokens; cached input is part of the input."""
        return self.input + self.output + self.reasoning


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens. ``reasoning`` is what thinking costs, mostly as the output."""

    input: float
    cached: float
    output: float
    reasoning: float

    def usage(self, input: int, cached: int, output: int, reasoning: int) -> Usage:
        """The tokens with what they cost; ``cached`` is part of ``input``."""
        dollars = (
            (input - cached) * self.input
            + cached * self.cached
            + output * self.output
            + reasoning * self.reasoning
        ) / 1e6
        return Usage(input, cached, output, reasoning, dollars)


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be asked of a model at once and in a minute; None is no limit.

    ``deadline_s`` bounds one whole attempt, from sending to the last byte.
    """

    concurrency: int = 8
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    deadline_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Model:
    """A model of a run. ``name`` is what the user writes, and what the server calls it too.

    Where the two differ, ``options["model"]`` is the server's name.

    ``options`` are the provider's: max_output_tokens, effort, temperature, base_url, ...
    """

    name: str
    provider: str
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    price: Price | None = None
    limits: Limits = Limits()
    weight: float = 1.0

    @property
    def vendor_name(self) -> str:
        """What the server calls it."""
        return str(self.options.get("model", self.name))

    @property
    def max_output_tokens(self) -> int:
        """The most that a reply may hold, reasoning included."""
        return int(self.options.get("max_output_tokens", 32_768))


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered. ``model`` is the name the server gives itself (its exact version)."""

    text: str
    usage: Usage
    model: str
    finish: str = "stop"


class Kind(StrEnum):
    """All that can go wrong with a call; ``policy`` says what is done about each."""

    RATE = "rate limited"
    QUOTA = "quota used up"
    OUTAGE = "server trouble"
    UNREACHABLE = "server not reached"
    LOST = "connection lost"
    TIMEOUT = "no answer in time"
    GARBLED = "unreadable answer"
    EMPTY = "empty answer"
    TRUNCATED = "answer cut at the output limit"
    DECLINED = "model declined"
    REJECTED = "request rejected"
    KEY = "key not accepted"
    MODEL = "unknown model"
    BUDGET = "budget does not allow it"


class Cost(StrEnum):
    """What is known of the cost of an attempt that failed."""

    FREE = "free"  # refused before any work
    KNOWN = "known"  # the answer came, with its usage
    UNKNOWN = "unknown"  # sent, but what became of it nobody can say: counts as its estimate


class Trouble(Exception):
    """One attempt failed. ``usage`` is there if its cost is known; ``text`` is what came anyway.

    ``retry_after_s`` is what the server asked for.
    """

    def __init__(
        self,
        kind: Kind,
        message: str,
        cost: Cost = Cost.FREE,
        *,
        usage: Usage | None = None,
        text: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.cost = Cost.KNOWN if usage is not None else cost
        self.usage = usage
        self.text = text
        self.retry_after_s = retry_after_s

    @property
    def message(self) -> str:
        """What went wrong, in a line. Kept in ``args`` alone, so that nothing else can be shown."""
        return str(self.args[0])

    @message.setter
    def message(self, text: str) -> None:
        self.args = (text,)


class Refused(Exception):
    """No usable answer will come: given up after ``trouble``, the last of what went wrong.

    ``trouble.text`` is what the model said, if anything.
    """

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(f"{trouble.kind}: {trouble.message}")
        self.trouble = trouble


class Unusable(UserError):
    """A wrong key or an unknown model; the message says what to do."""


class Provider(Protocol):
    """A vendor's protocol. ``operators/llm/NAME.py`` holds ``make(**options) -> Provider``.

    ``options`` are a Model's; unknown ones are a TypeError or ValueError. Making one opens nothing
    and needs no key.
    """

    async def complete(self, prompt: Prompt, model: Model) -> Reply:
        """One bare attempt, with a text that is not empty. Raises Trouble and nothing else."""
        ...

    async def check(self, model: Model) -> None:
        """Ask whether key and model are accepted. Costs nothing. Raises Trouble."""
        ...

    async def aclose(self) -> None:
        """Close what is open."""
        ...


class Booking(Protocol):
    """One attempt's entry in the books. Exactly one of its methods is called, once."""

    def settled(self, usage: Usage) -> None:
        """It cost this much."""
        ...

    def free(self) -> None:
        """It cost nothing, or was never sent."""
        ...

    def unknown(self) -> None:
        """Nobody can say what it cost: it counts as its estimate."""
        ...


class Books(Protocol):
    """Where a Line reports every attempt of one call, before it is made and after."""

    async def book(self, prompt: Prompt, model: Model, estimate: Usage) -> Booking | None:
        """Reserve ``estimate``, the most that an attempt can cost. None: it must not be made.

        It may wait until what is reserved for other calls comes back.
        """
        ...
