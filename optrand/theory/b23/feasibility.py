"""Grids that carry an unbiased randomizer, as printed and as they must be ([B23]_, Algorithms 2 and 3).

References
----------
.. [B23] Badanidiyuru et al., *Optimal Unbiased Randomizers for Regression with Label Differential Privacy*, 2023.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

from optrand.errors import Infeasible
from optrand.exact import exp_bracket
from optrand.grids import feasible_output_set
from optrand.theory.b23.columns import best_on_grid, half_square, response_ends
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, none, worst
from optrand.theory.instances import RATIOS, Setting, label_set, listed

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
    def printed_ends(self) -> tuple[float, float]:
        """Algorithm 2 as it is printed, every operation rounded to the nearest float."""
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
    for epsilon in (0.5, 1.0, 2.0, 5.0):
        yield _InFloats((0.0, 1.0), epsilon)
    for _ in range(budget.pick(quick=200, full=10_000)):
        start, k = random.randint(-9, 9), random.choice((2, 2, 3, 6))
        steps = [random.randint(1, 40) / 8 for _ in range(k)]
        labels = tuple(start + sum(steps[:i]) for i in range(k))
        yield _InFloats(labels, round(random.uniform(0.05, 8), 2))


def printed_ends_are_enough(given: _InFloats) -> Comparison:
    """The ends of Algorithm 2, computed in floats as printed, carry an unbiased epsilon-DP randomizer."""
    return at_most(given.needed(*given.printed_ends), exp_bracket(given.epsilon)[1])


def outward_ends_are_enough(given: _InFloats) -> Comparison:
    """The ends of Algorithm 2, rounded outward, carry an unbiased epsilon-DP randomizer."""
    return at_most(given.needed(*given.outward), exp_bracket(given.epsilon)[0])


def a_float_nearer_is_enough(given: _InFloats) -> Comparison:
    """The ends of Algorithm 2, rounded outward and moved three floats inward, carry one as well."""
    low, high = given.outward
    for _ in range(3):
        low, high = math.nextafter(low, math.inf), math.nextafter(high, -math.inf)
    return at_most(given.needed(low, high), exp_bracket(given.epsilon)[0])


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
        needed = smallest_ratio(self.labels, *response_ends(self.labels, ratio))
        found = worst(at_most(needed, self.second))
        if len(self.labels) <= 3:
            agreed = self._solvable(ratio) == found.holds
            return worst(found, none(int(not agreed))) if found.holds else found
        return found

    def _solvable(self, ratio: Fraction) -> bool:
        """Whether the linear program of Algorithm 1 has a solution on three outputs from end to end."""
        k = len(self.labels)
        low, high = response_ends(self.labels, ratio)
        setting = Setting(self.labels, (Fraction(1, k),) * k, self.second)
        try:
            best_on_grid(setting, (low, (low + high) / 2, high), half_square)
        except Infeasible:
            return False
        return True


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
        part="in floats",
        hypothesis="labels and epsilon are floats",
        instances=_in_floats,
        printed=printed_ends_are_enough,
        corrected=outward_ends_are_enough,
        false=a_float_nearer_is_enough,
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
