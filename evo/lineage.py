"""The lineage of a run as a networkx graph: every kernel, failures included, and every idea.

Node kinds: ``kernel`` (id ``ISLAND-GENERATION-SLOT``), ``idea`` (``idea:N``) and ``migrant``
(``ID@ISLAND``: the copy of kernel ID that arrived on another island).
Edge kinds: ``parent`` (parent to child), ``thought`` (a kernel to an idea that was had for it),
``idea`` (idea to the kernels that carry it out, repairs and tunings included) and ``migration``
(kernel to migrant). An idea's credit: ``tried`` kernels carry it out, ``succeeded`` of them were
accepted, ``gain`` is the best of them over the kernel that it was had for.

A child's parents are always the kernels themselves; where it knew a parent through a migrant, the
edge's ``via`` names it.

The winner's path runs from the port to the winner along the mothers: the first parent, which is
the one whose code the child started from (after a crossover too; the other is the father).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evo.efforts import efforts
from evo.individual import Individual
from evo.records import Migration, Proposal

if TYPE_CHECKING:
    import networkx

    Graph = networkx.DiGraph[str]


def speedup(individual: Individual) -> float | None:
    """Speedup over the run's baseline (its fitness); None unless the kernel was accepted."""
    return float(individual.fitness.values[0]) if individual.fitness.valid else None


def status(individual: Individual) -> str:
    """The verdict's status, or ``pending`` while there is none."""
    return str(individual.evaluation.status) if individual.evaluation else "pending"


def headline(individual: Individual) -> str:
    """What was done to make it, in a line: the idea, else the operator and its note."""
    birth = individual.birth
    if birth.idea:
        title = f"mended: {birth.idea.title}" if birth.operator == "repair" else birth.idea.title
        return f"{title} ({birth.note})" if birth.note else title
    return f"{birth.operator}: {birth.note}" if birth.note else birth.operator


def best(individuals: Iterable[Individual]) -> str | None:
    """The id of the fastest accepted kernel; the earliest of equals; None if none is correct."""
    fastest, found = 0.0, None
    for individual in individuals:
        if (value := speedup(individual)) is not None and value > fastest:
            fastest, found = value, individual.id
    return found


def mothers(individuals: Sequence[Individual], winner: str | None) -> list[Individual]:
    """The winner's path: from the port to ``winner`` along the first parents."""
    by_id = {individual.id: individual for individual in individuals}
    path: list[Individual] = []
    step = by_id.get(winner) if winner else None
    while step is not None and step not in path:
        path.append(step)
        step = by_id.get(step.birth.parents[0]) if step.birth.parents else None
    return path[::-1]


def gain(individual: Individual, mother: Individual | None) -> float | None:
    """Child's speedup / mother's, where both were accepted."""
    if mother is None:
        return None
    child, before = speedup(individual), speedup(mother)
    return child / before if child is not None and before else None


def build(
    individuals: Sequence[Individual],
    migrations: Sequence[Migration] = (),
    winner: str | None = None,
    proposals: Sequence[Proposal] = (),
    certificates: Mapping[str, str] | None = None,
) -> Graph:
    """The graph of the run. Attributes are plain scalars; what is unknown is left out.

    ``certificates``: ``passed`` or ``failed`` by the ids of the kernels that were to get one.
    """
    import networkx

    graph: Graph = networkx.DiGraph()
    path = {individual.id for individual in mothers(individuals, winner)}
    for individual in individuals:
        flags: dict[str, Any] = {
            "winner": individual.id == winner,
            "on_path": individual.id in path,
        }
        if certificates and individual.id in certificates:
            flags["certificate"] = certificates[individual.id]
        graph.add_node(individual.id, **_facts(individual), **flags)
    _add_migrants(graph, migrations)
    _add_births(graph, individuals)
    _add_ideas(graph, individuals, proposals)
    return graph


def _facts(individual: Individual) -> dict[str, Any]:
    birth, verdict = individual.birth, individual.evaluation
    facts: dict[str, Any] = {
        "kind": "kernel",
        "island": birth.island,
        "generation": birth.generation,
        "operator": birth.operator,
        "author": birth.author,
        "model": birth.model,
        "language": individual.kernel.language,
        "digest": individual.digest,
        "status": status(individual),
        "reason": verdict.reason if verdict else "",
        "speedup": speedup(individual),
    }
    if birth.idea:
        facts |= {"idea": birth.idea.text, "category": str(birth.idea.category)}
    if birth.note:
        facts["note"] = birth.note
    if verdict and verdict.time_ms:
        time = verdict.time_ms
        facts |= {"time_ms": time.median, "time_low_ms": time.low, "time_high_ms": time.high}
    if verdict and verdict.precision and verdict.precision.tier:
        facts["tier"] = str(verdict.precision.tier)
    return {name: value for name, value in facts.items() if value is not None}


def _add_migrants(graph: Graph, migrations: Sequence[Migration]) -> None:
    for move in migrations:
        node = f"{move.individual}@{move.target}"
        if move.taken_in is None or move.individual not in graph or node in graph:
            continue  # a copy that nobody took in yet is on no island
        facts = {"of": move.individual, "island": move.target, "generation": move.taken_in}
        graph.add_node(node, kind="migrant", **facts)
        earlier = f"{move.individual}@{move.source}"  # it may have travelled before
        start = earlier if earlier in graph else move.individual
        graph.add_edge(start, node, kind="migration")


def _add_births(graph: Graph, individuals: Sequence[Individual]) -> None:
    by_id = {individual.id: individual for individual in individuals}
    for child in individuals:
        for place, parent in enumerate(child.birth.parents):
            if parent in by_id and not graph.has_edge(parent, child.id):
                role = "mother" if place == 0 else "father"
                graph.add_edge(parent, child.id, **_bond(graph, by_id[parent], child, role))


def _bond(graph: Graph, parent: Individual, child: Individual, role: str) -> dict[str, Any]:
    bond: dict[str, Any] = {"kind": "parent", "role": role, "operator": child.birth.operator}
    if child.birth.idea:
        bond["idea"] = child.birth.idea.text
    if (ratio := gain(child, parent)) is not None:
        bond["gain"] = ratio
    via = f"{parent.id}@{child.birth.island}"
    if parent.birth.island != child.birth.island and via in graph:
        bond["via"] = via
    return bond


def _add_ideas(
    graph: Graph, individuals: Sequence[Individual], proposals: Sequence[Proposal]
) -> None:
    """One node per idea and the kernel that it was had for: all that carry it out share it."""
    for number, effort in enumerate(efforts(individuals, proposals)):
        node = f"idea:{number}"
        facts = {
            "text": effort.idea.text,
            "category": str(effort.idea.category),
            "author": effort.idea.author,
            "model": effort.idea.model,
            "parent": effort.parent,
            "tried": effort.tried,
            "succeeded": effort.succeeded,
        }
        if effort.gain is not None:
            facts["gain"] = effort.gain
        graph.add_node(node, kind="idea", **facts)
        if effort.parent in graph:
            graph.add_edge(effort.parent, node, kind="thought")
        for child in effort.children:
            graph.add_edge(node, child, kind="idea")
