"""What ideas and models have brought: the credit that a draw of models and the reports go by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from evo.individual import Individual, beats
from evo.store import Store
from operators.author import Credit

Find = Callable[[str], Individual | None]


def writer(child: Individual, find: Find) -> str:
    """The model whose work a child is: of a tuning, that of the idea's branch which was tuned."""
    birth = child.birth
    if birth.model or not birth.parents or birth.parents[0] == birth.base:
        return birth.model
    mother = find(birth.parents[0])
    return writer(mother, find) if mother is not None else ""


def gained(child: Individual, find: Find) -> float | None:
    """Child's / base's speedup where it is significant: its interval lies wholly below."""
    before = find(child.birth.base) if child.birth.base else None
    if before is None or child.evaluation is None or before.evaluation is None:
        return None
    if not (child.fitness.valid and before.fitness.valid):
        return None
    if not beats(child.evaluation, before.evaluation):
        return None
    return float(child.fitness.values[0] / before.fitness.values[0])


class Credits:
    """Adds up what models brought, generation by generation; each is looked at once.

    ``costs`` is the run that paid for the replies.
    """

    def __init__(self, store: Store, costs: Store) -> None:
        self._store = store
        self._paid = costs
        self._known: dict[tuple[int, int], Mapping[str, Credit]] = {}

    def within(self, horizon: tuple[int, ...]) -> Mapping[str, Credit]:
        """By the names of the models: for each island up to the last generation that counts."""
        total: dict[str, Credit] = {}
        for island, last in enumerate(horizon):
            for name, credit in self._up_to(island, last).items():
                total[name] = _sum(total.get(name, Credit()), credit)
        return total

    def _up_to(self, island: int, last: int) -> Mapping[str, Credit]:
        first = last
        while first >= 0 and (island, first) not in self._known:
            first -= 1
        for number in range(first + 1, last + 1):
            before = self._known.get((island, number - 1), {})
            here = self._of(island, number)
            self._known[island, number] = {
                name: _sum(before.get(name, Credit()), here.get(name, Credit()))
                for name in {**before, **here}
            }
        return self._known.get((island, last), {})

    def _of(self, island: int, generation: int) -> dict[str, Credit]:
        """What the models brought in one closed generation."""
        children: dict[str, int] = defaultdict(int)
        gains: dict[str, list[float]] = defaultdict(list)
        seen: dict[str, Individual] = {}

        def find(identity: str) -> Individual:
            if identity not in seen:
                seen[identity] = self._store.individual(identity)
            return seen[identity]

        born = list(self._store.born(island, generation))
        seen.update((one.id, one) for one in born)
        for child in born:
            name = writer(child, find)
            if not name or child.evaluation is None:
                continue
            children[name] += 1
            if (ratio := gained(child, find)) is not None:
                gains[name].append(ratio)
        costs = self._costs(island, generation)
        return {
            name: Credit(*costs.get(name, (0, 0.0)), children[name], tuple(gains[name]))
            for name in {**costs, **children}
        }

    def _costs(self, island: int, generation: int) -> dict[str, tuple[int, float]]:
        """Calls and dollars of each model; a call's key begins with its island and generation."""
        start = f"{island}-{generation}"
        query = (
            "select model, sum(attempts), sum(dollars) from calls where key > ? and key < ? "
            "group by model"
        )
        rows = self._paid.rows(query, (f"{start}-", f"{start}."))  # "." follows "-"
        return {name: (int(calls), float(dollars)) for name, calls, dollars in rows}


def _sum(one: Credit, other: Credit) -> Credit:
    return Credit(
        one.calls + other.calls,
        one.dollars + other.dollars,
        one.children + other.children,
        one.gains + other.gains,
    )
