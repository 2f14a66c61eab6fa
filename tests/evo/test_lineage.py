"""The graph of a run, and the commands that read runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import networkx
import pytest
from click.testing import CliRunner, Result

from cuda_sandbox.report import Status
from evo.cli.main import main
from evo.individual import Birth, Individual
from evo.lineage import best, build, mothers
from evo.records import Migration, Proposal
from operators.idea import Category, Idea
from tests.evo.synthetic_run import failure, individual, record, synthetic, verdict

FASTER = Idea("vector loads", Category.MEMORY, "catalogue")


def member(
    name: str, parents: tuple[str, ...] = (), speed: float | None = 1.0, idea: Idea | None = None
) -> Individual:
    island, generation = (int(part) for part in name.split("-")[:2])
    operator = "crossover" if len(parents) > 1 else "mutation" if parents else "port"
    outcome = verdict(speed) if speed else failure(Status.TIMEOUT, "no answer within 20 s")
    birth = Birth(island, generation, operator, "catalogue", parents, idea)
    return individual(name, birth, f"source of {name}", outcome)


FAMILY = [
    member("0-0-0", speed=0.5),
    member("1-0-0", speed=0.6),
    member("0-1-0", ("0-0-0",), 0.9, FASTER),
    member("0-1-1", ("0-0-0",), None, FASTER),
    member("1-2-0", ("0-1-0", "1-0-0"), 1.8),
    member("1-2-1", ("0-1-1",), 0.7),
]
MOVES = [Migration("0-1-0", 0, 1, 1, 2), Migration("1-0-0", 1, 0, 1, None)]


def test_failed_kernels_and_ideas_are_in_the_graph() -> None:
    graph = build(FAMILY, MOVES, "1-2-0")
    failed = graph.nodes["0-1-1"]
    assert (failed["status"], failed["reason"]) == ("timeout", "no answer within 20 s")
    ideas = [node for node, facts in graph.nodes(data=True) if facts["kind"] == "idea"]
    assert len(ideas) == 1  # its two branches share it
    assert set(graph.successors(ideas[0])) == {"0-1-0", "0-1-1"}


def test_an_idea_is_credited_with_its_repairs_and_tunings_and_kept_where_nobody_wrote_it() -> None:
    failed = member("0-1-0", ("0-0-0",), None, FASTER)
    mended = member("0-1-0r1", ("0-1-0",), 0.8, FASTER)
    tuned = member("0-1-4", ("0-1-0r1",), 1.5, FASTER)
    for one in (failed, mended, tuned):
        one.birth = replace(one.birth, base="0-0-0")
    forgotten = Idea("fewer registers", Category.PARALLELISM, "llm", "o3")
    proposals = [
        Proposal("0-1-0/mutation/ideate", n, idea, "0-0-0", 0, 1)
        for n, idea in enumerate((FASTER, forgotten))
    ]
    graph = build([FAMILY[0], failed, mended, tuned], (), "0-1-4", proposals)
    first, second = (facts for _, facts in graph.nodes(data=True) if facts["kind"] == "idea")
    assert (first["tried"], first["succeeded"]) == (3, 2)
    assert first["gain"] == pytest.approx(3.0)
    assert (second["text"], second["model"], second["tried"]) == ("fewer registers", "o3", 0)
    assert "gain" not in second
    assert graph.edges["0-0-0", "idea:1"]["kind"] == "thought"


def test_edges_name_operator_idea_gain_and_the_parents_role() -> None:
    graph = build(FAMILY, MOVES, "1-2-0")
    bond = graph.edges["0-0-0", "0-1-0"]
    assert bond["idea"] == "vector loads"
    assert bond["gain"] == pytest.approx(1.8)
    assert graph.edges["0-1-0", "1-2-0"]["role"] == "mother"
    assert graph.edges["1-0-0", "1-2-0"]["role"] == "father"


def test_a_migrant_stands_on_its_new_island_and_its_children_name_it() -> None:
    graph = build(FAMILY, MOVES, "1-2-0")
    assert graph.nodes["0-1-0@1"]["island"] == 1
    assert graph.nodes["0-1-0@1"]["generation"] == 2
    assert graph.edges["0-1-0", "0-1-0@1"]["kind"] == "migration"
    assert graph.edges["0-1-0", "1-2-0"]["via"] == "0-1-0@1"
    assert "1-0-0@0" not in graph  # nobody took it in


def test_the_winners_path_follows_the_mothers_through_a_crossover_and_a_failure() -> None:
    assert [one.id for one in mothers(FAMILY, "1-2-0")] == ["0-0-0", "0-1-0", "1-2-0"]
    assert [one.id for one in mothers(FAMILY, "1-2-1")] == ["0-0-0", "0-1-1", "1-2-1"]
    flagged = [node for node, facts in build(FAMILY, (), "1-2-0").nodes(data=True)
               if facts.get("on_path")]  # fmt: skip
    assert flagged == ["0-0-0", "0-1-0", "1-2-0"]


def test_without_a_correct_kernel_there_is_no_best_and_no_path() -> None:
    failed = [member("0-0-0", speed=None)]
    assert best(failed) is None
    assert mothers(failed, None) == []


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="kernelevo")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    record(synthetic(), folder / "populations" / "softmax-demo")
    return folder


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


@pytest.mark.parametrize("suffix", ["dot", "graphml", "html", "json", "png", "svg"])
def test_lineage_writes_every_format(run: None, suffix: str) -> None:
    result = call("lineage", "softmax-demo", "-o", f"lineage.{suffix}")
    assert result.exit_code == 0, result.output
    content = Path(f"lineage.{suffix}").read_bytes()
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "graphml": b"<?xml", "json": b"{"}
    assert content.startswith(starts.get(suffix, b"<!doctype" if suffix == "html" else b"digraph"))


def test_graphml_and_json_are_read_back_whole(run: None) -> None:
    call("lineage", "softmax-demo", "-o", "a.graphml")
    call("lineage", "softmax-demo", "-o", "a.json")
    graph = networkx.read_graphml("a.graphml")
    data = json.loads(Path("a.json").read_text())
    other = networkx.node_link_graph(data, edges="edges")
    kernels = [node for node, facts in graph.nodes(data=True) if facts["kind"] == "kernel"]
    assert len(kernels) == len(synthetic().individuals)
    assert set(graph.nodes) == set(other.nodes)
    assert data["graph"]["winner"] == synthetic().winner
    assert any(facts["kind"] == "migration" for *_, facts in other.edges(data=True))


def test_an_unknown_suffix_lists_the_valid_ones(run: None) -> None:
    result = call("lineage", "softmax-demo", "-o", "lineage.pdf")
    assert result.exit_code == 2
    assert ".dot, .graphml, .html, .json, .png, .svg" in result.output
    assert "Traceback" not in result.output


def test_a_folder_that_is_not_there_is_named(run: None) -> None:
    result = call("lineage", "softmax-demo", "-o", "nowhere/lineage.svg")
    assert result.exit_code == 2
    assert "cannot write nowhere/lineage.svg: No such file" in result.output


def test_an_unknown_run_is_named_with_the_nearest(run: None) -> None:
    result = call("lineage", "softmax-dem", "-o", "lineage.svg")
    assert result.exit_code == 2
    assert "softmax-demo" in result.output
