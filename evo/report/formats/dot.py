"""DOT: for graphviz; a cluster per island, the winner's path in colour, migrations dashed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evo.report.layout import times
from evo.report.view import RunView

EDGES = {
    "parent": {},
    "migration": {"style": "dashed", "color": "#6f4bb8"},
    "idea": {"style": "dotted", "color": "#999999"},
    "thought": {"style": "dotted", "color": "#cccccc"},
}
ON_PATH = {"color": "#d9480f", "penwidth": "3"}


def write(view: RunView, path: Path) -> None:
    """Write the graph as text; ``dot -Tsvg FILE`` draws it."""
    path.write_text("\n".join(_lines(view)) + "\n", encoding="utf-8")


def _lines(view: RunView) -> Iterator[str]:
    graph = view.graph
    route = [one.id for one in view.path]
    steps = set(itertools.pairwise(route))
    yield f"digraph {_quote(view.info.name)} {{"
    yield '  rankdir=LR; node [shape=box, fontname="sans-serif", fontsize=10];'
    islands = sorted({facts["island"] for _, facts in graph.nodes(data=True) if "island" in facts})
    for island in islands:
        yield f"  subgraph cluster_{island} {{ label={_quote(f'island {island}')};"
        for node, facts in graph.nodes(data=True):
            if facts.get("island") == island:
                yield f"    {_quote(node)} {_attributes(_style(node, facts))};"
        yield "  }"
    for node, facts in graph.nodes(data=True):
        if facts["kind"] == "idea":
            style = {"shape": "note", "label": facts["text"], "tooltip": facts["category"]}
            yield f"  {_quote(node)} {_attributes(style)};"
    for start, end, facts in graph.edges(data=True):
        style = EDGES[facts["kind"]] | (ON_PATH if (start, end) in steps else {})
        yield f"  {_quote(start)} -> {_quote(end)} {_attributes(style)};"
    yield "}"


def _style(node: str, facts: dict[str, Any]) -> dict[str, str]:
    if facts["kind"] == "migrant":
        return {"label": facts["of"], "shape": "ellipse", "style": "dashed", "color": "#6f4bb8"}
    fast = facts.get("speedup")
    outcome = times(fast) if fast is not None else facts["status"]
    style = {"label": f"{node}\n{outcome}", "tooltip": facts.get("idea", facts["operator"])}
    if fast is None:
        style |= {"color": "#b0453e", "fontcolor": "#b0453e"}
    if facts.get("certificate") == "failed":
        style |= {"label": f"{style['label']}\nfailed its certificate", "color": "#b0453e"}
    return style | (ON_PATH if facts["on_path"] else {})


def _attributes(style: dict[str, str]) -> str:
    return "[" + ", ".join(f"{key}={_quote(value)}" for key, value in style.items()) + "]"


def _quote(text: str) -> str:
    """A DOT string: quotes and backslashes escaped, line breaks as ``\\n``."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\0", "")
    return '"' + plain.replace("\r", "").replace("\n", "\\n") + '"'
