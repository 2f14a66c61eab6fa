"""Models as users write them, completed from the table of known models in configs/models.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from operators import extension
from operators.llm import Limits, Model, Price, Provider

# beside the packages in a checkout; a wheel carries a copy here
_PLACES = (
    Path(__file__).parents[2] / "configs" / "models.yaml",
    Path(__file__).parent / "models.yaml",
)
_PRICES = ("input", "cached", "output", "reasoning")
_LIMITS = ("concurrency", "requests_per_minute", "tokens_per_minute", "deadline_s")
# gpt-5-2025-08-07, gemini-2.5-pro-05-06, x-latest: a version of what the table calls by its name
_VERSION = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{2}-\d{2}|\d{3,4}|latest|preview(-[\d-]+)?)$")


def read(entries: Sequence[str | Mapping[str, Any]]) -> tuple[Model, ...]:
    """The models of a configuration: names, or tables with ``name`` and what differs.

    Raises ValueError: an unknown key or provider, a missing price, an impossible value, one name
    used twice, no model at all.
    """
    if isinstance(entries, str | Mapping) or not entries:
        raise ValueError("models: a list of models is needed, such as [o3, gemini-2.5-pro]")
    models = tuple(model(entry) for entry in entries)
    names = [each.name for each in models]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"models: {name} is there twice; give one a name of its own and model:"
            )
    return models


def model(entry: str | Mapping[str, Any]) -> Model:
    """One model. Raises ValueError."""
    given: dict[str, Any] = {"name": entry} if isinstance(entry, str) else dict(entry)
    name = given.pop("name", None)
    if not isinstance(name, str) or not name.strip():
        raise ValueError("models: each needs a name")
    try:
        return _made(name, given)
    except ValueError as error:
        raise ValueError(f"model {name}: {error}") from None


def provider(model: Model) -> Provider:
    """The model's provider, made by its file ``operators/llm/NAME.py``; it opens nothing yet."""
    module = extension.load("operators.llm", "provider", model.provider)
    made: Provider = module.make(**model.options)
    return made


def providers() -> list[str]:
    """The names of all providers."""
    modules = extension.names("operators.llm")
    return [name for name in modules if hasattr(extension.load("operators.llm", "", name), "make")]


def _made(name: str, given: dict[str, Any]) -> Model:
    known = _known(given.get("model", name)) or {}
    elsewhere = "base_url" in given
    settings = {**_without_price(known, elsewhere), **given}
    made = Model(
        name,
        _provider(settings.pop("provider", None), name),
        weight=_number(settings.pop("weight", 1.0), "weight"),
        price=_price(settings.pop("price", None), elsewhere),
        limits=_limits({key: settings.pop(key) for key in _LIMITS if key in settings}),
        options=MappingProxyType(settings),
    )
    provider(made)  # checks the options
    return made


def _without_price(known: Mapping[str, Any], elsewhere: bool) -> dict[str, Any]:
    """What the table says; another server has prices of its own."""
    return {key: value for key, value in known.items() if not (elsewhere and key == "price")}


def _provider(name: object, model: str) -> str:
    if name is None:
        near = extension.unknown("model", model, known_models())
        choice = ", ".join(providers())
        raise ValueError(f"{near}; for any other give provider ({choice}) and price")
    if name not in providers():
        raise ValueError(extension.unknown("provider", name, providers()))
    return str(name)


def _price(given: object, elsewhere: bool) -> Price:
    if given is None:
        hint = "0 for a server of your own" if elsewhere else "dollars for a million tokens"
        raise ValueError(f"no price is known: add price: {{input: 0, output: 0}} ({hint})")
    if not isinstance(given, Mapping):
        raise ValueError(  # noqa: TRY004
            "price: a table is needed: {input: 2, cached: 0.5, output: 8}"
        )
    for key in given:
        if key not in _PRICES:
            raise ValueError(extension.unknown("price", key, _PRICES))
    figures = {key: _number(value, f"price.{key}") for key, value in given.items()}
    if "input" not in figures or "output" not in figures:
        raise ValueError("price: input and output are needed, in dollars for a million tokens")
    input, output = figures["input"], figures["output"]
    return Price(input, figures.get("cached", input), output, figures.get("reasoning", output))


def _limits(given: Mapping[str, Any]) -> Limits:
    for key, value in given.items():
        whole = key != "deadline_s"
        optional = key.endswith("_per_minute")
        if value is None and optional:
            continue
        if not _number(value, key) > 0 or (whole and not isinstance(value, int)):
            raise ValueError(f"{key}: a {'whole ' if whole else ''}number above 0 is needed")
    return Limits(**given)


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise ValueError(f"{name}: {value!r} is no number from 0 on")
    return float(value)


def _known(name: object) -> Mapping[str, Any] | None:
    """The table's entry for a name, or for the name without its version."""
    if not isinstance(name, str):
        return None
    table = known_models()
    return table.get(name) or table.get(_VERSION.sub("", name))


@cache
def known_models() -> Mapping[str, Mapping[str, Any]]:
    """The table of known models, by name."""
    import yaml

    path = next(place for place in _PLACES if place.is_file())
    table = yaml.safe_load(path.read_text(encoding="utf-8"))
    return MappingProxyType({name: MappingProxyType(entry) for name, entry in table.items()})
