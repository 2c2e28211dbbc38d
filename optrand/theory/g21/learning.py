"""Learning with randomized response is private, and how fast it learns ([G21], Theorem 9).

Privacy is decided on data sets small enough to follow all iterates in fractions. The rate has a constant that is not
named.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.g21.descent import Descent, Outcome, rate, with_responses
from optrand.theory.g21.gradients import SMALL_RATIOS, Gradients, response_rows
from optrand.theory.instances import listed

__all__ = ["CLAIMS", "FLOATS", "UNNAMED"]

Path = tuple[Fraction, ...]
"""Iterates in order."""

FLOATS = 1e-12
"""What the means of descents are forgiven beside their standard errors."""

UNNAMED = "the constant is not named, and all convex losses and distributions are meant"

MANY_RUNS = 1_600
"""Descents that are drawn where two means are compared."""


@dataclass(frozen=True)
class _Run:
    """Some steps of Algorithm 5 in fractions, on a small data set, with losses ``abs(w - c_y)`` on ``[0, 1]``."""

    centres: Path
    ratio: Fraction
    rows: int
    passes: int = 1

    def __str__(self) -> str:
        return f"losses abs(w - c) with c = {listed(self.centres)}, E = {self.ratio}, {self.rows} rows, from w = 1"

    def law(self, labels: tuple[int, ...]) -> dict[Path, Fraction]:
        """The probability of each sequence of iterates, on rows with these labels."""
        chances: dict[Path, Fraction] = {(Fraction(1),): Fraction(1)}
        table = response_rows(len(self.centres), self.ratio)
        for t, label in enumerate(labels * self.passes, start=1):
            after: dict[Path, Fraction] = {}
            for iterates, chance in chances.items():
                for noisy, here in enumerate(table[label]):
                    path = (*iterates, self._step(iterates[-1], noisy, t))
                    after[path] = after.get(path, Fraction(0)) + chance * here
            chances = after
        return chances

    def _step(self, w: Fraction, noisy: int, t: int) -> Fraction:
        gradients = tuple((Fraction(1) if w >= centre else Fraction(-1),) for centre in self.centres)
        return min(
            max(w - self._size(t) * Gradients(gradients, self.ratio).estimate(noisy)[0], Fraction(0)), Fraction(1)
        )

    def _size(self, t: int) -> Fraction:
        """Of the steps as printed, rounded: privacy has no care for them."""
        return Fraction(f"{math.log(self.ratio) / (6 * len(self.centres) * math.sqrt(t)):.9f}")

    @property
    def largest_ratio(self) -> Fraction:
        """Of two probabilities of one sequence of iterates, on data sets that differ in one label."""
        k = len(self.centres)
        laws = {labels: self.law(labels) for labels in itertools.product(range(k), repeat=self.rows)}
        return max(
            chance / laws[(*labels[:row], label, *labels[row + 1 :])][path]
            for labels, law in laws.items()
            for row, label in itertools.product(range(self.rows), range(k))
            for path, chance in law.items()
        )


def _runs(budget: Budget) -> Iterator[_Run]:
    centres = ((Fraction(0), Fraction(1)), (Fraction(1, 2), Fraction(1, 2)), (Fraction(0), Fraction(1, 2), Fraction(1)))
    for rows, ratio, each in itertools.product(range(1, budget.pick(quick=3, full=5)), SMALL_RATIOS, centres):
        yield _Run(each, ratio, rows)


def descent_is_private(run: _Run) -> Comparison:
    """Algorithm 5, which looks at each row once, is epsilon-LabelDP: even all its iterates together are."""
    return at_most(run.largest_ratio, run.ratio)


def two_passes_are_private(run: _Run) -> Comparison:
    """The same with two passes over the rows, each with noise of its own."""
    return at_most(replace(run, passes=2).largest_ratio, run.ratio)


@dataclass(frozen=True)
class _Learning:
    """Algorithm 5 on an interval."""

    descent: Descent
    epsilon: float

    def __str__(self) -> str:
        return f"{self.descent}, epsilon = {self.epsilon}"

    @cached_property
    def outcome(self) -> Outcome:
        """Its excess risk."""
        return self.of(self.descent)

    def of(self, descent: Descent, *, runs: int = 400) -> Outcome:
        """The excess risk of the same after other steps, or in more descents."""
        k = len(descent.law)
        table = np.full((k, k), 1 / (math.expm1(self.epsilon) + k))
        np.fill_diagonal(table, math.exp(self.epsilon) * table[0, 0])
        return with_responses(descent, table, self.epsilon, runs=runs)

    @cached_property
    def few_and_many(self) -> tuple[Outcome, Outcome]:
        """The excess risk after these steps, and after four times as many."""
        more = replace(self.descent, steps=4 * self.descent.steps)
        return self.of(self.descent, runs=MANY_RUNS), self.of(more, runs=MANY_RUNS)


LAWS = (
    ((0.0, 1.0), (1.0, 0.0)),
    ((0.0, 1.0), (0.6, 0.4)),
    ((0.0, 0.5, 1.0), (0.5, 0.1, 0.4)),
    ((0.0, 0.0, 1.0, 1.0), (0.7, 0.1, 0.1, 0.1)),
)


def _learnings(budget: Budget) -> Iterator[_Learning]:
    for steps, (centres, law), epsilon in itertools.product((2, 3, 6), LAWS, (0.99, 0.1)):
        yield _Learning(Descent(centres, law, steps), epsilon)
        yield _Learning(Descent(centres, law, steps, diameter=3.0, lipschitz=2.0), epsilon)
    for power, (centres, law) in itertools.product(range(8, budget.pick(quick=14, full=18), 2), LAWS):
        yield _Learning(Descent(centres, law, 2**power), 0.99)


def excess_is_bounded(learning: _Learning) -> Comparison:
    """After `n` rows Algorithm 5 is at most a constant times ``D L K log(n) / (epsilon sqrt(n))`` from the least risk.

    The constant that is tried is 1. Means of descents that were drawn count less five standard errors.
    """
    bound = len(learning.descent.law) / learning.epsilon * rate(learning.descent)
    return at_most(learning.outcome.surely, bound, tolerance=FLOATS)


def excess_is_that_without_noise(learning: _Learning) -> Comparison:
    """The same without ``K / epsilon``: privacy costs nothing."""
    return at_most(learning.outcome.surely, rate(learning.descent), tolerance=FLOATS)


def _long_learnings(budget: Budget) -> Iterator[_Learning]:
    for steps in (512, *budget.pick(quick=(), full=(2_048, 8_192))):
        yield _Learning(Descent((0.0, 1.0), (0.75, 0.25), steps), 0.99)
        yield _Learning(Descent((0.0, 0.5, 1.0), (0.8, 0.1, 0.1), steps), 0.99)


def four_times_the_rows_halve_the_excess(learning: _Learning) -> Comparison:
    """The rate as a trend: four times the rows divide the distance from the least risk by 2, logarithms apart.

    Compared are the distance after ``4 n`` rows and half of that after `n`, times ``log(4 n) / log(n)``, with five
    standard errors of the difference.
    """
    return _divided(learning, by=2)


def four_times_the_rows_quarter_the_excess(learning: _Learning) -> Comparison:
    """They divide it by 4."""
    return _divided(learning, by=4)


def _divided(learning: _Learning, *, by: int) -> Comparison:
    n = learning.descent.steps
    share = math.log(4 * n) / (by * math.log(n))
    before, after = learning.few_and_many
    return at_most(after.mean, share * before.mean + 5 * math.hypot(after.error, share * before.error))


CLAIMS = (
    Claim(
        paper="G21",
        number="Theorem 9",
        part="privacy",
        hypothesis="convex loss, each row seen once, any steps, epsilon between 0 and 1",
        instances=_runs,
        printed=descent_is_private,
        false=two_passes_are_private,
    ),
    Claim(
        paper="G21",
        number="Theorem 9",
        part="rate",
        hypothesis="convex L-Lipschitz loss, diameter D, epsilon between 0 and 1, the steps of the theorem, n above 1",
        instances=_learnings,
        printed=excess_is_bounded,
        false=excess_is_that_without_noise,
        quantifier=UNNAMED,
    ),
    Claim(
        paper="G21",
        number="Theorem 9",
        part="trend",
        hypothesis="as for the rate, with rows enough to come near the least risk",
        instances=_long_learnings,
        printed=four_times_the_rows_halve_the_excess,
        false=four_times_the_rows_quarter_the_excess,
        quantifier=UNNAMED,
    ),
)
