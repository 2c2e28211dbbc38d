"""How the budget is split between the prior and the labels, and what both tell together ([B23], Appendix C)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

from optrand.theory.b23.columns import best_on_grid, grid, half_square
from optrand.theory.b23.priors import Neighbours, neighbours
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.instances import Setting

__all__ = ["CLAIMS"]


@dataclass(frozen=True)
class _TwoLabels:
    """Two labels, of which the optimal unbiased randomizer is the same for all priors; `n = k / root**2` people."""

    root: Fraction
    epsilon: Fraction
    other: Fraction

    def __str__(self) -> str:
        n = 2 / self.root**2
        return f"labels 0 and 1, n = {n}, epsilon = {self.epsilon}, epsilon_1 = {self.root} or {self.other}"

    def loss(self, first: Fraction) -> float:
        """Of debiased randomized response, the optimum, with the rest of the budget."""
        gain = math.expm1(float(self.epsilon - first))
        return (gain + 1) / gain**2 / 2

    def bound(self, first: Fraction) -> Fraction:
        """What the loss is bounded by, up to factors: what the labels lose, and the error of the prior, `k / (n e)`."""
        return first + self.root**2 / first


def _two_labels(budget: Budget) -> Iterator[_TwoLabels]:
    for root in (Fraction(1, 10), Fraction(1, 50), Fraction(1, 250)):
        for epsilon in (Fraction(1, 2), Fraction(1), Fraction(4)):
            others = budget.pick(quick=(2, 3), full=range(2, 40))
            yield from (_TwoLabels(root, epsilon, root / i) for i in others)
            yield from (_TwoLabels(root, epsilon, root * i / (i - 1)) for i in others)


def the_root_is_best_for_the_bound(two: _TwoLabels) -> Comparison:
    """No other budget of the prior makes the bound epsilon_1 + k / (n epsilon_1) smaller than sqrt(k / n) does."""
    return at_most(two.bound(two.root), two.bound(two.other))


def the_root_is_best(two: _TwoLabels) -> Comparison:
    """No other budget of the prior leaves less expected loss of the labels, whose prior is not used at all."""
    return at_most(two.loss(two.root), two.loss(two.other))


@dataclass(frozen=True)
class _Composed:
    """One person's label changes: what the noisy histogram and the person's own noisy label tell of it."""

    neighbours: Neighbours
    first: Fraction
    second: Fraction

    def __str__(self) -> str:
        return f"{self.neighbours}, exp(epsilon_1) = {self.first}, exp(epsilon_2) = {self.second}"

    @cached_property
    def ratio(self) -> Fraction:
        """The largest ratio of densities of both together, each at its worst place."""
        counts = self.neighbours.moved
        prior = tuple(Fraction(count, sum(counts)) for count in counts)
        setting = Setting(tuple(map(Fraction, range(len(counts)))), prior, self.second)
        _, columns = best_on_grid(setting, grid(setting, 5), half_square)
        source, target = self.neighbours.source, self.neighbours.target
        outputs = {column.output for column in columns}
        row = [
            [
                sum(Fraction(c.mass) * (self.second if c.members[y] else 1) for c in columns if c.output == v)
                for y in (source, target)
            ]
            for v in outputs
        ]
        own = max(Fraction(b) / a for a, b in row)
        # The distance of the histograms is whole; epsilon_1 is spent on two units of it.
        return own * self.first ** int(self.neighbours.distance / 2)


def _composed(budget: Budget) -> Iterator[_Composed]:
    random = Random(72)  # noqa: S311
    for pair in list(neighbours(budget))[: budget.pick(quick=15, full=200)]:
        if len(pair.counts) <= 4:
            yield _Composed(pair, *(1 + Fraction(random.randint(1, 40), 10) for _ in range(2)))


def budgets_add_up(composed: _Composed) -> Comparison:
    """The histogram and the noisy labels together are (epsilon_1 + epsilon_2)-DP."""
    return at_most(composed.ratio, composed.first * composed.second)


def the_larger_budget_counts(composed: _Composed) -> Comparison:
    """The histogram and the noisy labels together are max(epsilon_1, epsilon_2)-DP."""
    return at_most(composed.ratio, max(composed.first, composed.second))


CLAIMS = (
    Claim(
        paper="B23",
        number="Algorithm 3",
        part="privacy",
        hypothesis="two histograms that differ in one label; an optimal randomizer of a grid for the noisy prior",
        instances=_composed,
        printed=budgets_add_up,
        false=the_larger_budget_counts,
    ),
    Claim(
        paper="B23",
        number="Appendix C",
        part="split",
        hypothesis="two labels; what is made small is a bound of the excess loss, up to factors",
        instances=_two_labels,
        printed=the_root_is_best_for_the_bound,
        false=the_root_is_best,
        quantifier="the argument is quoted from another paper and leaves factors open: only its bound is tried",
    ),
)
