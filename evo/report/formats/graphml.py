"""GraphML: the whole graph for Gephi, yEd, Cytoscape, igraph or networkx."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from evo.report.view import RunView

NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(view: RunView, path: Path) -> None:
    """Write every node and edge with its attributes."""
    import networkx

    graph: networkx.DiGraph[str] = networkx.DiGraph(name=_clean(view.info.name))
    for node, facts in view.graph.nodes(data=True):
        graph.add_node(node, **{key: _clean(value) for key, value in facts.items()})
    for start, end, facts in view.graph.edges(data=True):
        graph.add_edge(start, end, **{key: _clean(value) for key, value in facts.items()})
    networkx.write_graphml(graph, path, infer_numeric_types=True)


def _clean(value: Any) -> Any:
    """XML knows no control characters, and a compiler's message may hold some."""
    return NOT_XML.sub("\ufffd", value) if isinstance(value, str) else value
