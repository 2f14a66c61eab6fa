"""``kernelevo mcp``: a real client starts the server as a process and works through its tools."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from evo.cli.main import main
from evo.config import stored
from evo.pack import revision
from evo.recorder import Recorder
from evo.records import RunInfo
from evo.schema import connect
from tests.evo.asking import Asking, asking

if TYPE_CHECKING:
    from mcp.client import Client

mcp = pytest.importorskip("mcp", reason="the extra kernelevo[mcp] is not installed")

ROOT = Path(__file__).resolve().parents[2]
RUN = Path("populations/fake")
SOURCE = 'extern "C" int launch(const float* x, float* out, void*) { return 0; }\n'
TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
"""
RIGHT = """
extern "C" int launch(const float* x, float* out, void*) {
    for (int i = 0; i < X_SIZE; ++i) out[i] = x[i] + 1.0f;
    return 0;
}
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    RUN.mkdir(parents=True)


def talk(dialogue: Callable[[Client], Awaitable[None]], *arguments: str) -> None:
    server = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "evo", "mcp", *arguments],
        env={"PYTHONPATH": str(ROOT)},
    )

    async def session() -> None:
        async with mcp.Client(server, read_timeout_seconds=300) as client:
            await dialogue(client)

    asyncio.run(session())


async def use(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]


def test_an_agent_takes_requests_answers_them_and_looks_at_the_run() -> None:
    run = Asking(RUN)
    for _ in range(2):
        run.sit()
        run.answer_all()
    run.sit()

    async def dialogue(client: Client) -> None:
        assert "judge_draft" in (client.instructions or "")
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names >= {"ask", "tell", "give_back", "judge_draft", "show_lineage", "show_kernel"}
        first = await use(client, "ask", name="anna")
        second = await use(client, "ask", name="ben")
        assert first["request"] != second["request"]
        assert first["prompt"].endswith("branch 0")
        assert first["parents"] == ["0-0-0"]
        reason = await refused(client, "tell", request=first["request"], answer="?", name="anna")
        assert "answer with the complete source" in reason
        reason = await refused(client, "tell", request=first["request"], answer=SOURCE, name="ben")
        assert "is taken by anna" in reason
        told = await use(client, "tell", request=first["request"], answer=SOURCE, name="anna")
        assert told["standing"] == "3 open, 1 of them taken"
        await use(client, "give_back", request=second["request"], name="ben")
        listed = await use(client, "list_requests")
        assert [row["answered"] for row in listed["requests"]].count(True) == 1
        assert all(row["lease"] is None for row in listed["requests"])
        lineage = await use(client, "show_lineage")
        assert [one["id"] for one in lineage["latest"]] == ["0-0-0"]
        kernel = await use(client, "show_kernel", kernel="0-0-0")
        assert kernel["source"].startswith("int answer")
        assert (await use(client, "show_trajectory"))["steps"][0]["id"] == "0-0-0"
        assert (await use(client, "show_run"))["kernels"] == 1
        assert "no kernel '9-9-9'" in await refused(client, "show_kernel", kernel="9-9-9")
        assert "no run 'other'" in await refused(client, "show_run", run="other")

    talk(dialogue, "--run", "fake")
    run.sit()
    assert len(run.open()) == 3


def test_where_nothing_is_open_an_agent_may_wait_and_is_told_why() -> None:
    async def dialogue(client: Client) -> None:
        none = await use(client, "ask", name="anna", run="fake", wait_seconds=1.5)
        assert none == {
            "request": None,
            "why": "nothing is open until the run goes on: kernelevo run fake --until-waiting",
        }
        assert "name a run: there are: fake" in await refused(client, "ask", name="anna")

    run = Asking(RUN)
    run.sit()
    run.answer_all()
    talk(dialogue)


@pytest.mark.slow
def test_a_draft_is_judged_here_and_is_not_booked_to_the_run() -> None:
    from fitness.task import describe

    Path("plus.py").write_text(TASK)
    task = describe("plus.py")
    config = asking(task="plus.py")
    header = task.signature.header("cpp")
    facts = (task, config.fitness.demand, "cpp", header, {}, "2025-01-01")
    Recorder.create(RUN, RunInfo("fake", stored(config), *facts)).close()
    before = revision(connect(RUN / "run.sqlite"))

    async def dialogue(client: Client) -> None:
        verdict = await use(client, "judge_draft", source=RIGHT)
        assert verdict["status"] == "ok", json.dumps(verdict)
        assert verdict["time_ms"]["median"] > 0
        verdict = await use(client, "judge_draft", source=RIGHT.replace("1.0f", "2.0f"))
        assert verdict["status"] == "incorrect"
        verdict = await use(client, "judge_draft", source="int launch(;")
        assert verdict["status"] == "compile_error"
        assert verdict["reason"]

    talk(dialogue, "--run", "fake")
    assert revision(connect(RUN / "run.sqlite")) == before


def test_an_unknown_run_is_refused_before_serving() -> None:
    result = CliRunner().invoke(main, ["mcp", "--run", "nothing"])
    assert result.exit_code == 2
    assert "no run 'nothing'" in result.output


def test_without_the_sdk_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    result = CliRunner().invoke(main, ["mcp"])
    assert result.exit_code == 2
    assert "pip install 'kernelevo[mcp]'" in result.output
