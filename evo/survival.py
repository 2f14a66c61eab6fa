"""Who survives: mu + lambda with elites, where a place at the top is only lost significantly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from evo.individual import Individual, beats

Select = Callable[[Sequence[Individual], int], list[Individual]]


def accepted(individuals: Iterable[Individual]) -> list[Individual]:
    """Those that may compete: correct, with a sane speedup; of equal kernels the first."""
    unique = {one.digest: one for one in reversed(list(individuals)) if one.fitness.valid}
    return list(reversed(unique.values()))


def beaten(challenger: Individual, incumbent: Individual) -> bool:
    """Whether ``challenger`` wins significantly over ``incumbent``."""
    assert challenger.evaluation is not None
    assert incumbent.evaluation is not None
    return beats(challenger.evaluation, incumbent.evaluation)


def crowned(
    incumbents: Sequence[Individual], challengers: Sequence[Individual], count: int
) -> list[Individual]:
    """At most ``count`` elites, the best first.

    A challenger takes an incumbent's place only by a significant win; without it, noise alone would
    make a new best in every generation.
    """
    elites = list(incumbents[:count])
    newcomers = [*incumbents[count:], *challengers]
    for one in sorted(newcomers, key=lambda one: -one.fitness.values[0]):
        if len(elites) < count:
            elites.append(one)
        elif elites and beaten(one, elites[-1]):
            elites[-1] = one
        else:
            continue
        _rise(elites)
    return elites


def _rise(elites: list[Individual]) -> None:
    """Let the last one pass those that it beats."""
    place = len(elites) - 1
    while place > 0 and beaten(elites[place], elites[place - 1]):
        elites[place - 1], elites[place] = elites[place], elites[place - 1]
        place -= 1


def survivors(
    population: Sequence[Individual],
    arrivals: Sequence[Individual],
    size: int,
    elite: int,
    select: Select,
) -> list[Individual]:
    """The next population, the best first: elites, then a selection of the rest without repeats.

    ``population`` is in its order, the best first; ``arrivals`` are migrants and offspring.
    """
    pool = accepted([*population, *arrivals])
    incumbents = [one for one in population if one in pool]
    challengers = [one for one in pool if one not in incumbents]
    # the best is always kept, also where elite is 0: a run must not lose what it has found
    elites = crowned(incumbents, challengers, max(1, elite))
    rest = [one for one in pool if one not in elites]
    chosen: list[Individual] = []
    while rest and len(elites) + len(chosen) < size:
        (one,) = select(rest, 1)
        rest.remove(one)
        chosen.append(one)
    return elites + sorted(chosen, key=lambda one: -one.fitness.values[0])
