"""The contents that candidates are called on, with their truths, made once per judge."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from torch import Tensor

from cuda_sandbox.signature import Role
from fitness.correctness import (
    Comparison,
    Quick,
    compare,
    plain,
    quick,
    quick_check,
    renewed,
    verdict,
)
from fitness.errors import TaskError
from fitness.evaluation import Demand, Tier
from fitness.fresh import freshened
from fitness.inputs import DISTRIBUTIONS, REINFORCEMENTS, Inputs
from fitness.lazy import Contest, Standing, said
from fitness.loaded import LoadedTask
from fitness.reference import Leaves, exact
from fitness.truth import NotFinite, Truth, find_content, find_truth

TIMED = 4
"""How many contents timed calls are made from, each time by moving and scaling their values."""


@dataclass(frozen=True)
class Content:
    """All leaves by name, and the truth for them."""

    leaves: Mapping[str, Tensor]
    truth: Truth

    @property
    def name(self) -> str:
        """The distribution's."""
        return self.truth.content

    def compare(self, outputs: Sequence[Tensor]) -> list[Comparison]:
        """A kernel's outputs beside the truth."""
        return compare(outputs, self.truth)


@dataclass(frozen=True)
class TimedContent:
    """A content for timed calls: its truth in the outputs' own width, for one quick pass."""

    leaves: Mapping[str, Tensor]
    expected: Quick
    origin: Inputs
    demand: Demand

    def fresh(self, rng: random.Random) -> TimedContent:
        """The like of it that nobody has seen, so that no remembered result serves.

        Itself where there is none: a reference that fails on it.
        """
        leaves = freshened(self.leaves, self.origin.domains, rng)
        try:
            expected = self._expected(leaves)
        except (TaskError, NotFinite):
            return self
        return replace(self, leaves=leaves, expected=expected) if expected else self

    def _expected(self, leaves: Leaves) -> Quick | None:
        """What is right for ``leaves``: whole truths where outputs are more than plain floats."""
        if not plain(self.expected):
            return quick(find_truth(self.origin.task, leaves, "own"), self.demand)
        with exact():
            return renewed(self.expected, self.origin.task.run(leaves))

    def complaint(self, outputs: Sequence[Tensor]) -> str:
        """What is wrong with a timed call's outputs; empty if nothing is."""
        return quick_check(outputs, self.expected)


class Bank:
    """Contents drawn from one secret.

    ``checks`` has one content per distribution on which the reference is finite, and further ones
    where answers that cost no work pass on all of those; ``left_out`` names the other
    distributions. ``timed`` are the task's own inputs with parameters that make no operation the
    identity, drawn several times.
    """

    def __init__(self, task: LoadedTask, demand: Demand, secret: int) -> None:
        self._task = task
        self._demand = demand
        self._inputs = Inputs(task, secret)

    @cached_property
    def checks(self) -> tuple[Content, ...]:
        """One content per distribution, the task's own first.

        Raises TaskError if an answer that costs no work passes on all of them.
        """
        contents, winners = self.contest
        if winners:
            raise TaskError(
                f"{self._task.reference.file.path}: on every distribution of inputs these would "
                f"pass: {said(winners)}. Nothing can be judged by such a task; "
                "`kernelevo audit` says more"
            )
        return contents

    @cached_property
    def contest(self) -> tuple[tuple[Content, ...], tuple[Standing, ...]]:
        """The contents, and which answers that cost no work pass on all of them."""
        contents = [one for one in map(self._content, DISTRIBUTIONS) if one]
        contest = Contest(self._task, self._demand, contents[0].leaves)
        for drawn in contents:
            contest.enter(drawn.leaves, drawn.truth)
        for name in REINFORCEMENTS:
            before = len(contest.winners)
            if before and (content := self._content(name)):
                contest.enter(content.leaves, content.truth)
                contents += [content] if len(contest.winners) < before else []
        return tuple(contents), contest.winners

    def _content(self, name: str) -> Content | None:
        found = find_content(self._inputs, name)
        return Content(*found) if found else None

    @property
    def left_out(self) -> tuple[str, ...]:
        """Distributions on which the reference itself is not finite."""
        used = {content.name for content in self.contest[0]}
        return tuple(name for name in DISTRIBUTIONS if name not in used)

    @cached_property
    def timed(self) -> tuple[TimedContent, ...]:
        """Contents for timed calls."""
        return tuple(self._draw_timed(index) for index in range(1, TIMED + 1))

    def _draw_timed(self, index: int) -> TimedContent:
        leaves = self._inputs.draw("own", index)
        drawn = self._inputs.draw("normal", index)
        for spec in self._task.signature.arguments:
            if spec.role is Role.PARAMETER:
                leaves[spec.name] = drawn[spec.name]
        expected = quick(find_truth(self._task, leaves, "own"), self._demand)
        return TimedContent(leaves, expected, self._inputs, self._demand)

    @cached_property
    def default_tier(self) -> Tier | None:
        """The tier that PyTorch reaches itself, with the flags as they are now."""
        return self.tier_of(self._task.run)

    def tier_of(self, run: Callable[[Leaves], Sequence[Tensor]]) -> Tier | None:
        """The tier that ``run``, from leaves to outputs, reaches on all of ``checks``."""
        found = [
            comparison
            for content in self.checks
            for comparison in content.compare(run(content.leaves))
        ]
        precision = verdict(self._demand, found)[2]
        return precision.tier if precision else None
