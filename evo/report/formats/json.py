"""JSON: networkx's node-link form, for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evo.report.view import RunView


def document(view: RunView) -> dict[str, Any]:
    """The graph as ``{"directed", "multigraph", "graph", "nodes", "edges"}``."""
    import networkx

    data: dict[str, Any] = networkx.node_link_data(view.graph, edges="edges")
    path = [one.id for one in view.path]
    data["graph"] = {"run": view.info.name, "winner": view.winner, "path": path}
    return data


def write(view: RunView, path: Path) -> None:
    """Write the document; ``networkx.node_link_graph(data, edges="edges")`` reads it."""
    text = json.dumps(document(view), indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
