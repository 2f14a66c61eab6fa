"""What a user may write for a model beside its name, checked when the configuration is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar
from urllib.parse import urlsplit

from cuda_sandbox.children import SECRETS, is_secret
from operators import extension

O = TypeVar("O", bound="Options")  # noqa: E741


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Those that every provider has.

    ``model`` is the server's name where it differs from ours; ``base_url`` another server, whose
    key is in the environment variable ``key_env`` if it needs one; ``structured`` false keeps the
    schema of an answer from being sent along.
    """

    model: str | None = None
    base_url: str | None = None
    key_env: str | None = None
    max_output_tokens: int = 32_768
    temperature: float | None = None
    structured: bool = True

    def __post_init__(self) -> None:
        for name in ("model", "base_url", "key_env"):
            _demand(getattr(self, name) is None or isinstance(getattr(self, name), str), name)
        most, heat = self.max_output_tokens, self.temperature
        _demand(isinstance(most, int) and most > 0, "max_output_tokens")
        _demand(isinstance(self.structured, bool), "structured")
        _demand(heat is None or (isinstance(heat, int | float) and 0 <= heat <= 2), "temperature")
        if self.base_url is not None:
            _check_url(self.base_url)
        if self.key_env is not None and not is_secret(self.key_env):
            # so that child processes, which may not see it, are known not to get it
            words = ", ".join(SECRETS)
            raise ValueError(f"key_env: {self.key_env!r} needs one of {words} in its name")

    def keys(self, usual: tuple[str, ...]) -> tuple[str, ...]:
        """Which environment variables may hold the key.

        The ``usual`` ones belong to the vendor alone: another server gets no key unless told.
        """
        if self.key_env is not None:
            return (self.key_env,)
        return usual if self.base_url is None else ()


def read(kind: type[O], given: Mapping[str, Any]) -> O:
    """The options as a record. Raises ValueError for an unknown name or an impossible value."""
    known = [field.name for field in fields(kind)]
    for name in given:
        if name not in known:
            raise ValueError(extension.unknown("option", name, known))
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(f"an option is of the wrong type: {error}") from None


def one_of(value: object, choices: tuple[str, ...], name: str) -> None:
    """Raises ValueError unless ``value`` is None or a choice."""
    if value is not None and value not in choices:
        raise ValueError(f"{name}: {value!r} is none of {', '.join(choices)}")


def _demand(holds: bool, name: str) -> None:
    if not holds:
        raise ValueError(f"{name}: impossible value")


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"base_url: {url!r} is no address such as http://localhost:8000/v1")
    if parts.username or parts.password or parts.query:
        raise ValueError("base_url: no user, password or query in it; name a key with key_env")
