"""Where keys come from, and where they never go."""

from __future__ import annotations

import copy
import logging
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from cuda_sandbox.children import environment
from fitness.task import describe
from operators.llm import Kind, Trouble, keys
from tests.fitness.task_files import simple, write

KEY = "sk-planted-Zq7Kx1vR9tWm3bLp"


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def secret(*names: str) -> str | None:
    key = keys.find(names)
    return key and key.secret()


def test_the_environment_comes_before_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_KEY=from-the-file\n")
    assert secret("OPENAI_API_KEY") == "from-the-file"
    monkeypatch.setenv("OPENAI_API_KEY", " from-the-environment\n")
    assert secret("OPENAI_API_KEY") == "from-the-environment"


def test_the_file_is_looked_for_upwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("GOOGLE_API_KEY=up-there\n")
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert secret("GEMINI_API_KEY", "GOOGLE_API_KEY") == "up-there"
    (tmp_path / "a" / ".env").write_text("# nothing here\n")
    assert secret("GOOGLE_API_KEY") is None, "the nearest file counts"


def test_what_is_read_from_a_file_never_enters_the_environment(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"OPENAI_API_KEY={KEY}\n")
    assert secret("OPENAI_API_KEY") == KEY
    assert KEY not in os.environ.values()


def test_the_usual_ways_of_writing_a_file_are_understood() -> None:
    text = """
# a comment = with an equals sign
A=plain
export B = spaced   # said
C="quoted # not a comment" # but this
D='single'
E=with=equals
F=
no equals sign
"""
    expected = {"A": "plain", "B": "spaced", "C": "quoted # not a comment", "D": "single"}
    assert keys.parse(text) == {**expected, "E": "with=equals", "F": ""}


def test_an_empty_key_is_none_and_the_remedy_names_all_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "")
    with pytest.raises(Trouble, match=r"set GEMINI_API_KEY or GOOGLE_API_KEY .* \.env") as raised:
        keys.need(["GEMINI_API_KEY", "GOOGLE_API_KEY"])
    assert raised.value.kind is Kind.KEY


def test_a_key_does_not_show_and_cannot_be_stored(caplog: pytest.LogCaptureFixture) -> None:
    key = keys.Key("OPENAI_API_KEY", KEY)
    logging.getLogger("test").error("with %s, %r and %s", key, key, [key])
    shown = f"{key} {key!r} {[key]} {caplog.text}"
    assert "OPENAI_API_KEY" in shown
    assert "planted" not in shown
    for store in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            store(key)


@pytest.mark.parametrize(
    "said",
    [
        f"Incorrect API key provided: {KEY}.",
        f"Incorrect API key provided: {KEY[:8]}{'*' * 12}{KEY[-4:]}. You can find it at ...",
        f"key {KEY[:7]}...{KEY[-4:]} is not valid",
        f"got {KEY[3:20]}",
        f"header 'Authorization: Bearer {KEY}'",
        f"GET /v1/models?key={KEY}",
        "your other key sk-proj-abcdefghijk_lmnop is not valid either",
        "API key AIzaSyA1234567890abcdefghijk not valid",
    ],
)
def test_servers_words_are_shown_without_any_part_of_a_key(said: str) -> None:
    shown = keys.Key("OPENAI_API_KEY", KEY).scrub(said)
    assert "[key]" in shown
    for part in (KEY, KEY[:7], KEY[-4:], "proj-abc", "AIzaSy"):
        assert part not in shown


def test_harmless_words_are_left_as_they_are_but_not_endless() -> None:
    key = keys.Key("OPENAI_API_KEY", KEY)
    harmless = "The model `o3-2025-04-16` does not exist, or you have no access to it."
    assert key.scrub(harmless) == harmless
    assert key.scrub("a\n  b") == "a b"
    assert len(key.scrub("word " * 1000)) < 400


class TestChildren:
    @pytest.fixture(autouse=True)
    def planted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "MY_SERVER_TOKEN", "PROXY_AUTH"):
            monkeypatch.setenv(name, KEY)
        monkeypatch.setenv("HARMLESS", "kept")

    def test_a_child_of_ours_gets_none(self) -> None:
        program = "import os; print(dict(os.environ))"
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment(MORE="told"), capture_output=True, text=True)
        assert KEY not in done.stdout
        assert "kept" in done.stdout
        assert "told" in done.stdout

    def test_a_task_file_sees_none(self, tmp_path: Path) -> None:
        body = "import os\nassert 'planted' not in str(os.environ), 'a key is here'\n"
        path = write(tmp_path, body + simple("x: x + 1", "torch.rand(4)"))
        assert describe(path).signature

    def test_a_variable_that_children_would_see_is_refused(self) -> None:
        from operators.llm import table

        entry = {"name": "mine", "provider": "openai", "price": {"input": 0, "output": 0}}
        entry |= {"base_url": "http://localhost:8000/v1"}
        with pytest.raises(ValueError, match=r"key_env: 'MINE' needs one of KEY, TOKEN"):
            table.model({**entry, "key_env": "MINE"})
        assert table.model({**entry, "key_env": "MY_KEY"}).options["key_env"] == "MY_KEY"
