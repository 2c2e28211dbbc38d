"""Grids that carry an unbiased randomizer, as printed and as they must be ([B23], Algorithms 2 and 3)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

from optrand.base.arithmetic import exp_bracket
from optrand.model.outputs import feasible_output_set
from optrand.theory.b23.columns import response_ends
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.instances import RATIOS, label_set, listed

__all__ = ["CLAIMS", "smallest_ratio"]


def smallest_ratio(labels: tuple[Fraction, ...], low: Fraction, high: Fraction) -> Fraction | float:
    """The smallest ratio of an unbiased randomizer with outputs between two ends; infinite where a label is an end.

    The two ends alone have it: see :func:`optrand.unbiased_range`.

    Examples
    --------
    >>> smallest_ratio((Fraction(0), Fraction(1)), Fraction(-1), Fraction(2))
    Fraction(2, 1)
    """
    if low >= labels[0] or high <= labels[-1]:
        return math.inf
    return max((high - labels[0]) / (high - labels[-1]), (labels[-1] - low) / (labels[0] - low))


@dataclass(frozen=True)
class _InFloats:
    """Labels and an epsilon that are floats."""

    labels: tuple[float, ...]
    epsilon: float

    def __str__(self) -> str:
        return f"labels {', '.join(map(repr, self.labels))}, epsilon {self.epsilon!r}"

    def needed(self, low: float, high: float) -> Fraction | float:
        """The smallest ratio between two ends."""
        return smallest_ratio(tuple(map(Fraction, self.labels)), Fraction(low), Fraction(high))

    @property
    def nearest(self) -> tuple[float, float]:
        """The ends of Algorithm 2, every operation rounded to the nearest float."""
        total, rise = math.fsum(self.labels), math.exp(self.epsilon)
        low, high = (
            ((rise + len(self.labels) - 1) * end - total) / (rise - 1) for end in (min(self.labels), max(self.labels))
        )
        return low, high

    @cached_property
    def outward(self) -> tuple[float, float]:
        """The ends of the package's grid."""
        outputs = feasible_output_set(self.labels, self.epsilon, 2)
        return outputs.low, outputs.high


def _in_floats(budget: Budget) -> Iterator[_InFloats]:
    random = Random(41)  # noqa: S311
    for epsilon in (0.5, 1.0, 2.0, 5.0, 1e-6, 1e-3, 20.0):
        yield _InFloats((0.0, 1.0), epsilon)
    for _ in range(budget.pick(quick=200, full=10_000)):
        start, k = random.randint(-9, 9), random.choice((2, 2, 3, 6))
        steps = [random.randint(1, 40) / 8 for _ in range(k)]
        labels = tuple(start + sum(steps[:i]) for i in range(k))
        yield _InFloats(labels, round(random.uniform(0.05, 8), 2))


def outward_ends_are_enough(given: _InFloats) -> Comparison:
    """The lowest and the highest output of Algorithm 2, rounded outward, carry an unbiased epsilon-DP randomizer."""
    return at_most(given.needed(*given.outward), exp_bracket(given.epsilon)[0])


def nearest_ends_are_enough(given: _InFloats) -> Comparison:
    """The same with every operation rounded to the nearest float."""
    return at_most(given.needed(*given.nearest), exp_bracket(given.epsilon)[1])


@dataclass(frozen=True)
class _Split:
    """Labels, and the ratios of two budgets: the prior's and the randomizer's."""

    labels: tuple[Fraction, ...]
    first: Fraction
    second: Fraction

    def __str__(self) -> str:
        return f"labels {listed(self.labels)}, exp(epsilon_1) = {self.first}, exp(epsilon_2) = {self.second}"

    def feasible(self, ratio: Fraction) -> Comparison:
        """Whether the ends of Algorithm 2 with this ratio carry a randomizer of the second one."""
        return at_most(smallest_ratio(self.labels, *response_ends(self.labels, ratio)), self.second)


def _splits(budget: Budget) -> Iterator[_Split]:
    two = (Fraction(0), Fraction(1))
    for first in RATIOS:
        yield from (_Split(two, first, second) for second in RATIOS)
    random = Random(42)  # noqa: S311
    for _ in range(budget.pick(quick=100, full=3_000)):
        ratios = [1 + Fraction(random.randint(1, 60), random.choice((1, 10))) for _ in range(2)]
        yield _Split(label_set(random, random.randint(2, 6)), *ratios)


def the_budget_of_the_prior_decides(split: _Split) -> Comparison:
    """The grid that Algorithm 2 makes for epsilon_1, the prior's budget, carries a randomizer for epsilon_2."""
    return split.feasible(split.first)


def the_budget_of_the_labels_decides(split: _Split) -> Comparison:
    """The grid that Algorithm 2 makes for epsilon_2, the labels' budget, carries a randomizer for epsilon_2."""
    return split.feasible(split.second)


def the_whole_budget_decides(split: _Split) -> Comparison:
    """The grid that Algorithm 2 makes for epsilon_1 + epsilon_2, the whole budget, carries one for epsilon_2."""
    return split.feasible(split.first * split.second)


CLAIMS = (
    Claim(
        paper="B23",
        number="Algorithm 2",
        hypothesis="at least two labels; labels and epsilon are floats, the ends rounded outward",
        instances=_in_floats,
        printed=outward_ends_are_enough,
        false=nearest_ends_are_enough,
    ),
    Claim(
        paper="B23",
        number="Algorithm 3",
        hypothesis="at least two labels, any two budgets above 0",
        instances=_splits,
        printed=the_budget_of_the_prior_decides,
        corrected=the_budget_of_the_labels_decides,
        false=the_whole_budget_decides,
    ),
)
