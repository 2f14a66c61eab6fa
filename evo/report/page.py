"""The interactive lineage: one offline HTML file with its data, style and script inside.

Sources, ideas and reasons are hostile: they travel as JSON with ``<`` escaped and reach the page
as text nodes, and the page's policy allows only its own script, by hash, and no network.
"""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import json
from pathlib import Path
from typing import Any

from evo.lineage import gain, headline
from evo.report.lanes import plan
from evo.report.plain import finite, verdict
from evo.report.view import RunView

ASSETS = Path(__file__).parent / "assets"
SCRIPTS = ("diff.js", "picture.js", "panel.js", "main.js")


def page(view: RunView) -> str:
    """The HTML text."""
    script = "\n".join(_asset(name) for name in SCRIPTS)
    parts = {
        "title": html.escape(f"{view.info.name}: lineage"),
        "script": script,
        "script_hash": _digest(script),
        "style": _asset("lineage.css"),
        "style_hash": _digest(_asset("lineage.css")),
        "data": embedded(page_data(view)),
    }
    text = _asset("lineage.html")
    for chunk in ("title", "script_hash", "style_hash", "style", "script", "data"):
        text = text.replace("{{ " + chunk + " }}", parts[chunk], 1)
    return text


def embedded(data: Any) -> str:
    """JSON that is safe inside a ``<script>`` element, whatever the strings hold."""
    text = json.dumps(finite(data), ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page_data(view: RunView) -> dict[str, Any]:
    """Run, plan, nodes, edges and the sources, each stored once."""
    layout = plan(view)
    sources: dict[str, int] = {}
    return {
        "run": {
            "name": view.info.name,
            "subtitle": subtitle(view),
            "baseline": view.baseline,
            "winner": view.winner,
            "path": [one.id for one in view.path],
        },
        "plan": {
            "width": layout.width,
            "height": layout.height,
            "lanes": [finite(lane) for lane in layout.lanes],
            "columns": [finite(column) for column in layout.columns],
        },
        "nodes": [_node(view, name, place, sources) for name, place in layout.places.items()],
        "edges": _edges(view),
        "sources": list(sources),
    }


def subtitle(view: RunView) -> str:
    """Task, state, counts and devices in a line."""
    accepted = sum(one.fitness.valid for one in view.individuals)
    facts = [
        f"task {view.info.task.name}",
        view.state,
        f"{len(view.individuals)} kernels, {accepted} accepted",
        f"speedup over PyTorch ({view.baseline})",
        *view.devices,
    ]
    return " \u00b7 ".join(facts)


def _node(
    view: RunView, name: str, place: tuple[float, float], sources: dict[str, int]
) -> dict[str, Any]:
    facts = dict(view.graph.nodes[name])
    x, y = (round(value, 1) for value in place)
    if facts["kind"] == "migrant":
        origin = view.graph.nodes[facts["of"]]
        shown = {key: origin[key] for key in ("status", "speedup") if key in origin}
        one = view.by_id[facts["of"]]
        return facts | shown | {
            "id": name, "x": x, "y": y, "on_path": False, "headline": headline(one)
        }  # fmt: skip
    one = view.by_id[name]
    for key in ("idea", "time_ms", "time_low_ms", "time_high_ms", "tier", "digest", "reason"):
        facts.pop(key, None)  # they stand in the verdict
    found = verdict(one.evaluation)
    extra = {
        "id": name,
        "x": x,
        "y": y,
        "headline": headline(one),
        "parents": list(one.birth.parents),
        "gain": gain(one, view.base(one)),
        "time_ms": found.get("time_ms"),
        "verdict": found,
        "source": sources.setdefault(one.kernel.source, len(sources)),
    }
    return facts | {key: value for key, value in extra.items() if value is not None}


def _edges(view: RunView) -> list[dict[str, Any]]:
    route = [one.id for one in view.path]
    steps = set(itertools.pairwise(route))
    for pair in list(steps):  # where a step changed islands, the migration belongs to it
        if via := view.graph.edges[pair].get("via"):
            steps |= {(start, via) for start in view.graph.predecessors(via)}
    edges = []
    for start, end, facts in view.graph.edges(data=True):
        if facts["kind"] in ("idea", "thought"):
            continue
        edge = {"from": start, "to": end, "kind": facts["kind"]}
        edge |= {key: facts[key] for key in ("role", "via") if key in facts}
        if (start, end) in steps:
            edge["path"] = True
        edges.append(edge)
    return edges


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
