"""The pictures: layout, the interactive page against hostile texts, the static figure."""

from __future__ import annotations

import html.parser
import itertools
import json
import math
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.individual import Birth
from evo.report import formats
from evo.report.lanes import plan
from evo.report.layout import grid, swarm, ticks
from evo.report.page import ASSETS, embedded, page, page_data
from evo.report.view import RunView
from operators.idea import Category, Idea
from tests.evo.synthetic_run import individual, info, synthetic, verdict

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node runs the page's script")


@given(st.lists(st.floats(0, 300), max_size=40))
def test_points_of_a_swarm_do_not_overlap(heights: list[float]) -> None:
    offsets = swarm(heights, gap=13, width=1e9)
    places = list(zip(offsets, heights, strict=True))
    for (x, y), (u, v) in itertools.combinations(places, 2):
        assert math.hypot(x - u, y - v) >= 12.9


def test_a_swarm_keeps_to_its_width() -> None:
    offsets = swarm([5.0] * 50, gap=13, width=100)
    assert max(offsets) - min(offsets) <= 100.0001


def test_a_grid_centres_its_last_row() -> None:
    assert grid(4, 3) == [(0, -1.0), (0, 0.0), (0, 1.0), (1, 0.0)]


def test_ticks_are_round_and_few() -> None:
    assert ticks(0.15, 2.5) == [0.2, 0.5, 1.0, 2.0]
    assert len(ticks(1e-3, 1e3)) <= 8


def test_every_kernel_has_a_place_in_its_islands_lane() -> None:
    view = synthetic()
    layout = plan(view)
    lanes = {lane.island: lane for lane in layout.lanes}
    assert {one.id for one in view.individuals} <= set(layout.places)
    for one in view.individuals:
        x, y = layout.places[one.id]
        lane, column = lanes[one.birth.island], layout.columns[one.birth.generation]
        assert lane.top <= y <= lane.top + lane.height
        assert abs(x - column.x) <= column.width / 2
        assert (y >= lane.failures) == (not one.fitness.valid)


def hostile(text: str) -> RunView:
    idea = Idea(text, Category.MEMORY, text)
    birth = Birth(0, 0, "port", text, (), idea)
    one = individual("0-0-0", birth, text, verdict(1.5, reason=text))
    return RunView(replace(info(), name=text, best="0-0-0"), (one,))


class Elements(html.parser.HTMLParser):
    """What a browser would see as elements and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)> <!-- ' \" & \u2028 $x^2$ \\"


def test_hostile_texts_add_no_element_to_the_page() -> None:
    calm, attacked = Elements(), Elements()
    calm.feed(page(hostile("calm")))
    attacked.feed(page(hostile(EVIL)))
    assert [tag for tag, _ in attacked.seen] == [tag for tag, _ in calm.seen]
    assert "</script><script>alert" not in page(hostile(EVIL))


@given(st.text())
def test_embedded_texts_come_back_as_they_were(text: str) -> None:
    inside = embedded({"source": text})
    assert "<" not in inside
    assert json.loads(inside)["source"] == text


def test_the_page_needs_no_network_and_allows_no_other_script() -> None:
    text = page(synthetic())
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    outside = set(re.findall(r"https?://[^\s\"'<]+", text)) - {"http://www.w3.org/2000/svg"}
    assert outside == set()
    elements = Elements()
    elements.feed(text)
    for tag, attributes in elements.seen:
        assert "src" not in attributes
        assert "href" not in attributes
        assert "style" not in attributes, tag  # the policy would drop it


@pytest.mark.parametrize("suffix", ["svg", "png", "graphml", "dot", "json", "html"])
def test_every_format_stands_hostile_texts(tmp_path: Path, suffix: str) -> None:
    formats.write(hostile(EVIL + "\0\x1b[2J"), tmp_path / f"lineage.{suffix}")
    assert (tmp_path / f"lineage.{suffix}").stat().st_size > 100


@pytest.mark.parametrize("suffix", ["svg", "png", "graphml", "dot", "json", "html"])
def test_every_format_stands_a_run_without_a_kernel(tmp_path: Path, suffix: str) -> None:
    formats.write(RunView(info(), ()), tmp_path / f"lineage.{suffix}")


def test_the_same_run_gives_the_same_svg(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        formats.write(synthetic(generations=2), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_two_thousand_kernels_stay_a_usable_page() -> None:
    view = synthetic(islands=4, generations=12, width=40)
    data = page_data(view)
    assert len(view.individuals) > 1900
    assert {node["id"] for node in data["nodes"]} >= set(view.by_id)
    assert data["plan"]["width"] < 4000


DIFF = """
const before = process.argv[1], after = process.argv[2];
const lines = differences(before, after);
const old = lines.filter(([tag]) => tag !== "+").map(([, text]) => text).join("\\n");
const fresh = lines.filter(([tag]) => tag !== "-").map(([, text]) => text).join("\\n");
console.log(JSON.stringify({ old, fresh, changed: lines.filter(([tag]) => tag !== " ").length,
                             shown: unified(lines).length }));
"""


@needs_node
@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("a\nb\nc", "a\nB\nc", 2),
        ("a\nb", "a\nb", 0),
        ("", "x\ny", 3),
        ("\n".join("abcdefghijklmnop"), "\n".join("abcdefgXhijklmop"), 2),
    ],
)
def test_the_pages_diff_is_minimal_and_loses_nothing(before: str, after: str, changed: int) -> None:
    script = (ASSETS / "diff.js").read_text() + DIFF
    done = subprocess.run(
        [str(NODE), "-e", script, before, after], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert (found["old"], found["fresh"]) == (before, after)
    assert found["changed"] == changed
    assert found["shown"] <= changed + 14


@needs_node
def test_the_pages_scripts_parse(tmp_path: Path) -> None:
    scripts = "\n".join(path.read_text() for path in sorted(ASSETS.glob("*.js")))
    (tmp_path / "all.js").write_text(scripts)
    subprocess.run([str(NODE), "--check", str(tmp_path / "all.js")], check=True)


@pytest.mark.parametrize(
    ("suffix", "mark"),
    [
        ("svg", "failed its certificate"),
        ("dot", "failed its certificate"),
        ("json", '"certificate": "failed"'),
        ("html", '"certificate":"failed"'),
        ("graphml", ">failed</data>"),
    ],
)
def test_a_kernel_that_failed_its_certificate_is_marked_in_every_format(
    tmp_path: Path, suffix: str, mark: str
) -> None:
    view = synthetic(generations=2)
    fallen = next(one.id for one in view.path if one.id != view.winner)
    path = tmp_path / f"lineage.{suffix}"

    formats.write(view, path)
    assert mark not in path.read_text()
    formats.write(replace(view, demoted=frozenset({fallen})), path)

    assert mark in path.read_text()
