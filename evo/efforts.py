"""Ideas and what came of them: each idea for a kernel, with all that carries it out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from evo.credit import gained
from evo.individual import Individual
from evo.records import Proposal
from operators.idea import Idea


@dataclass(slots=True)
class Effort:
    """An idea for the kernel ``parent`` (empty: a port), its branches, repairs and tunings.

    ``gain`` is the best child's / the parent's speedup; None where none was accepted, or the idea
    is a port's. ``significant`` gains are those whose interval lies wholly below the parent's.
    """

    idea: Idea
    parent: str
    children: list[str] = field(default_factory=list)
    succeeded: int = 0
    gain: float | None = None
    significant: float | None = None

    @property
    def tried(self) -> int:
        """How many kernels carry it out."""
        return len(self.children)


def efforts(individuals: Sequence[Individual], proposals: Iterable[Proposal] = ()) -> list[Effort]:
    """All ideas of a run in the order in which they were had or carried out."""
    by_id = {one.id: one for one in individuals}
    found: dict[tuple[str, Idea], Effort] = {}
    for proposal in proposals:
        found.setdefault((proposal.parent, proposal.idea), Effort(proposal.idea, proposal.parent))
    for child in individuals:
        if child.birth.idea is not None:
            parent = base_of(child)
            effort = found.setdefault((parent, child.birth.idea), Effort(child.birth.idea, parent))
            _count(effort, child, by_id)
    return list(found.values())


def base_of(child: Individual) -> str:
    """The id of the kernel that what came of a child is measured by; empty for a port."""
    return child.birth.base or next(iter(child.birth.parents), "")


def _count(effort: Effort, child: Individual, by_id: dict[str, Individual]) -> None:
    effort.children.append(child.id)
    effort.succeeded += child.fitness.valid
    before = by_id.get(effort.parent)
    if before is None or not (child.fitness.valid and before.fitness.valid):
        return
    ratio = float(child.fitness.values[0] / before.fitness.values[0])
    effort.gain = max(ratio, effort.gain or 0.0)
    if (surely := gained(child, by_id.get)) is not None:
        effort.significant = max(surely, effort.significant or 0.0)
