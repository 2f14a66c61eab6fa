"""Which model is asked next: by weight, or by what each has brought for its dollars."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from operators.author import Credit
from operators.llm import Model

Choice = Callable[[Sequence[Model], Mapping[str, Credit], random.Random], Model]

# a gain counts by its size: doubling the speed counts as a whole success, as does everything above
_WHOLE = math.log(2.0)
# dollars that a child costs at least, as a share of the mean: what is free is not worth infinitely
# much, as judging its kernels takes time too
_FLOOR = 0.1


def weights(
    models: Sequence[Model],
    credit: Mapping[str, Credit],  # noqa: ARG001
    rng: random.Random,
) -> Model:
    """A model by chance, in proportion to the weights that the user gave."""
    return rng.choices(models, [model.weight for model in models])[0]


def bandit(models: Sequence[Model], credit: Mapping[str, Credit], rng: random.Random) -> Model:
    """The model with the best draw of gain for a dollar.

    Thompson sampling for bandits with costs, after Xia et al., "Thompson Sampling for Budgeted
    Multi-armed Bandits", IJCAI 2015: for each model the share of its children that are significant
    gains is drawn from the Beta distribution of what is known (a gain counts by its size, up to a
    doubling), and divided by the dollars of a child. Those are a mean and not a draw, as they vary
    little beside the gains. A model that never was asked costs what its price lets expect beside
    the others'. So all are tried at first, the better ones ever more often, and none is dropped.
    """
    known = [credit.get(model.name, Credit()) for model in models]
    costs = _costs(models, known)
    draws = [_draw(one, rng) / cost for one, cost in zip(known, costs, strict=True)]
    return models[max(range(len(models)), key=draws.__getitem__)]


CHOICES: Mapping[str, Choice] = MappingProxyType({"weights": weights, "bandit": bandit})


def _draw(credit: Credit, rng: random.Random) -> float:
    """A share of gains that fits what is known, from a uniform prior."""
    success = sum(min(1.0, max(0.0, math.log(gain) / _WHOLE)) for gain in credit.gains)
    return rng.betavariate(1.0 + success, 1.0 + max(0.0, credit.children - success))


def _costs(models: Sequence[Model], known: Sequence[Credit]) -> list[float]:
    """Dollars for a child of each model; the prices stand in for one child that each had."""
    prices = [_price(model) for model in models]
    children = [one.children for one in known]
    spent = sum(one.dollars for one in known)
    expected = sum(n * price for n, price in zip(children, prices, strict=True))
    scale = spent / expected if expected > 0 and spent > 0 else 1.0
    costs = [
        (one.dollars + price * scale) / (one.children + 1)
        for one, price in zip(known, prices, strict=True)
    ]
    least = _FLOOR * sum(costs) / len(costs)
    return [max(cost, least) or 1.0 for cost in costs]


def _price(model: Model) -> float:
    """What a typical call costs beside others: as many tokens in as out."""
    return model.price.input + model.price.output if model.price else 0.0
