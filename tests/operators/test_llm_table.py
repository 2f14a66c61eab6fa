"""Models as users write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from operators.llm import Limits, Model, Price, Prompt, table

OWN = {
    "name": "qwen3-coder",
    "provider": "openai",
    "api": "chat",
    "base_url": "http://localhost:8000/v1",
    "price": {"input": 0, "output": 0},
}


def test_a_known_model_needs_its_name_only() -> None:
    o3, gemini = table.read(["o3", "gemini-2.5-pro"])
    assert (o3.provider, o3.price) == ("openai", Price(2.0, 0.5, 8.0, 8.0))
    assert (gemini.provider, gemini.vendor_name) == ("gemini", "gemini-2.5-pro")


@pytest.mark.parametrize("name", ["o3-2025-04-16", "gemini-2.5-pro-preview-05-06", "gpt-5-latest"])
def test_a_version_of_a_known_model_has_its_price(name: str) -> None:
    (model,) = table.read([name])
    assert model.vendor_name == name
    assert model.price is not None


def test_everything_may_be_given_anew() -> None:
    entry = {
        "name": "deep",
        "model": "o3",
        "effort": "high",
        "max_output_tokens": 60_000,
        "price": {"input": 1, "output": 4},
        "weight": 2,
        "concurrency": 3,
        "requests_per_minute": 60,
        "tokens_per_minute": None,
        "deadline_s": 900,
    }
    (model,) = table.read([entry])
    assert model == Model(
        "deep",
        "openai",
        {"model": "o3", "effort": "high", "max_output_tokens": 60_000},
        Price(1, 1, 4, 4),
        Limits(3, 60, None, 900),
        2.0,
    )
    assert (model.vendor_name, model.max_output_tokens) == ("o3", 60_000)


def test_a_server_of_ones_own_needs_provider_address_and_price() -> None:
    (model,) = table.read([OWN])
    assert model.price == Price(0, 0, 0, 0)


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in OWN.items() if name != key}


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (["o33"], "model o33: unknown model 'o33'; did you mean o3?"),
        ([without("provider")], r"give provider \(gemini, openai\) and price"),
        ([{**OWN, "provider": "opnai"}], "unknown provider 'opnai'; did you mean openai?"),
        ([without("price")], r"no price is known: add price: .* \(0 for a server of your own\)"),
        ([{"name": "o3", "base_url": "http://localhost:1/v1"}], "no price is known"),
        ([{**OWN, "price": {"input": 1}}], "input and output are needed"),
        ([{**OWN, "price": {"in": 1}}], "unknown price 'in'; did you mean input?"),
        ([{**OWN, "price": 3}], "price: a table is needed"),
        ([{**OWN, "price": {"input": -1, "output": 1}}], "price.input: -1 is no number from 0 on"),
        (
            [{"name": "o3", "temprature": 1}],
            "unknown option 'temprature'; did you mean temperature?",
        ),
        ([{"name": "o3", "effort": "huge"}], "effort: 'huge' is none of none, minimal, low"),
        ([{"name": "gemini-2.5-pro", "effort": "high"}], "unknown option 'effort'"),
        ([{"name": "gemini-2.5-pro", "thinking": "deep"}], "thinking: 'deep' is none of minimal"),
        ([{"name": "o3", "temperature": "hot"}], "temperature: impossible value"),
        ([{"name": "o3", "max_output_tokens": 0}], "max_output_tokens: impossible value"),
        ([{"name": "o3", "concurrency": 0}], "concurrency: a whole number above 0"),
        ([{"name": "o3", "concurrency": 1.5}], "concurrency: a whole number above 0"),
        ([{"name": "o3", "weight": -1}], "weight: -1 is no number from 0 on"),
        ([{**OWN, "base_url": "localhost:8000"}], "no address such as http://localhost:8000/v1"),
        ([{**OWN, "base_url": "http://me:pw@host/v1"}], "no user, password or query in it"),
        ([{**OWN, "base_url": "http://host/v1?key=secret"}], "no user, password or query in it"),
        ([{**OWN, "api": "rest"}], "api: 'rest' is none of responses, chat"),
        (["o3", "o3"], "o3 is there twice"),
        ([{"provider": "openai"}], "each needs a name"),
        ([], "a list of models is needed"),
        ("o3", "a list of models is needed"),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(entries: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        table.read(entries)


def test_every_model_of_the_table_is_whole() -> None:
    path = Path(__file__).parents[2] / "configs" / "models.yaml"
    names = yaml.safe_load(path.read_text())
    for model in table.read(list(names)):
        assert model.price is not None
        assert 0 < model.price.cached <= model.price.input < model.price.output


def test_an_installed_copy_has_the_table_too() -> None:
    copy = Path(table.__file__).with_name("models.yaml")
    assert copy.resolve() == Path(__file__).parents[2] / "configs" / "models.yaml"


class TestDigest:
    PROMPT = Prompt("system", ("a", "b"), "ideas", {"type": "object"})

    def test_it_changes_with_all_that_decides_the_answer(self) -> None:
        (model,) = table.read(["o3"])
        (deep,) = table.read([{"name": "o3", "effort": "high"}])
        (other,) = table.read(["gemini-2.5-pro"])
        prompts = [
            self.PROMPT,
            Prompt("other", ("a", "b"), "ideas", {"type": "object"}),
            Prompt("system", ("a", "c"), "ideas", {"type": "object"}),
            Prompt("system", ("a", "b"), "ideas", None),
        ]
        digests = [prompt.digest(model) for prompt in prompts]
        digests += [self.PROMPT.digest(deep), self.PROMPT.digest(other)]
        assert len(set(digests)) == len(digests)

    def test_it_is_the_same_wherever_the_server_stands_and_however_the_parts_are_cut(self) -> None:
        (here,) = table.read([OWN])
        (there,) = table.read([{**OWN, "base_url": "http://10.0.0.1/v1", "key_env": "MY_KEY"}])
        again = Prompt("system", ("a\n\nb",), "repair", {"type": "object"})
        assert self.PROMPT.digest(here) == again.digest(there)
