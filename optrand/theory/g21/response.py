"""Randomized response on the likeliest labels is private ([G21], Lemma 1 and Corollary 2).

Algorithms 1 and 2 as printed, in fractions, beside the integer tables of the package. The other modules of this paper
use both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import exp_bracket
from optrand.closed_forms import rr, rr_top_k, rr_with_prior
from optrand.mechanism.mechanism import Mechanism
from optrand.theory.engine import Comparison, Space, at_most, claim, corrected, equal, false
from optrand.theory.instances import RATIOS, settings, shares
from optrand.theory.sums import largest_ratio, total

Rows = tuple[tuple[Fraction, ...], ...]
"""Probabilities of the outputs ``0 ... K-1``, a row for each label."""

Table = NDArray[Any]
"""Fractions, in an array of objects."""

ROUNDING = 1e-9
"""Largest difference of the package's integer tables from the printed probabilities."""

ANY_PRIOR = "any prior, zeros and ties among them, epsilon above 0"


def kept_labels(prior: Sequence[Fraction], k: int) -> tuple[int, ...]:
    """Return the `k` labels of the largest prior, of equally likely ones the smaller."""
    return tuple(sorted(sorted(range(len(prior)), key=lambda y: -prior[y])[:k]))


def top_k_rows(prior: Sequence[Fraction], k: int, ratio: Fraction) -> Rows:
    """Return [G21], Algorithm 1, as a table."""
    kept, labels, chance = kept_labels(prior, k), range(len(prior)), 1 / (ratio + k - 1)
    own = {(y, v): (ratio if v == y else 1) * chance for y, v in product(kept, repeat=2)}
    drawn = [Fraction(v in kept, k) for v in labels]
    return tuple(tuple(own.get((y, v), Fraction(0)) if y in kept else drawn[v] for v in labels) for y in labels)


def best_k(prior: Sequence[Fraction], ratio: Fraction, *, others: int = -1) -> int:
    """Return the number of labels that [G21], Algorithm 2, keeps: all are tried, the first of the best is taken."""
    falling = sorted(prior, reverse=True)
    return max(range(1, len(prior) + 1), key=lambda k: ratio * sum(falling[:k]) / (ratio + k + others))


def objective(prior: Sequence[Fraction], rows: Rows) -> Fraction:
    """Return the probability that the output is the label, where labels follow the prior."""
    return total(share * rows[y][y] for y, share in enumerate(prior))


def table(mechanism: Mechanism) -> Rows:
    """Return the exact laws of a mechanism's outputs, by its integer table; zeros for labels that never occur."""
    outputs, rows = mechanism.outputs.astype(int).tolist(), mechanism.weights.tolist()
    found = (dict(zip(outputs, row, strict=True)) for row in rows)
    return tuple(tuple(Fraction(law.get(v, 0), mechanism.total) for v in range(len(rows))) for law in found)


@dataclass(frozen=True)
class Task:
    """A prior and a privacy ratio."""

    prior: tuple[Fraction, ...]
    ratio: Fraction

    @property
    def size(self) -> int:
        """Number of labels."""
        return len(self.prior)

    @property
    def floats(self) -> list[float]:
        """The prior, as the package takes it."""
        return list(map(float, self.prior))

    @property
    def epsilon(self) -> float:
        """The budget, as the package takes it."""
        return math.log1p(self.ratio - 1)

    @cached_property
    def listed(self) -> Rows:
        """RRWithPrior as printed."""
        return top_k_rows(self.prior, best_k(self.prior, self.ratio), self.ratio)

    @cached_property
    def tabulated(self) -> Rows:
        """RRWithPrior of the package."""
        return table(rr_with_prior(self.floats, self.epsilon))

    def compare_ratios(self) -> Comparison:
        """Compare the largest ratios with `E`, and those of integers with a bound below exp(epsilon)."""
        ratios = [largest_ratio(rows) for rows in (self.listed, self.tabulated)]
        return at_most(ratios, [self.ratio, exp_bracket(self.epsilon)[0]])


@dataclass(frozen=True)
class TopK(Task):
    """A prior, a privacy ratio, and the number of labels that are kept."""

    k: int

    @cached_property
    def listed(self) -> Rows:
        """RRTop-k as printed."""
        return top_k_rows(self.prior, self.k, self.ratio)

    @cached_property
    def tabulated(self) -> Rows:
        """RRTop-k of the package."""
        return table(rr_top_k(self.floats, self.k, self.epsilon))

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """The labels that are kept."""
        return kept_labels(self.prior, self.k)


def tasks(count: int, *, most: int) -> Space:
    """Return priors and ratios of :func:`~optrand.theory.instances.settings`, whose labels have no values here."""
    return lambda times: (Task(setting.prior, setting.ratio) for setting in settings(count, most=most)(times))


def top_ks(count: int, *, most: int) -> Space:
    """Return tasks with each number of labels kept."""
    made = tasks(count, most=most)
    return lambda times: (TopK(each.prior, each.ratio, k) for each in made(times) for k in range(1, each.size + 1))


KEPT = (lambda _: [TopK((Fraction(1),), Fraction(2), 1)]), top_ks(15, most=9)
ANY_NUMBER = "any prior, any number of labels kept, epsilon above 0"


def _draw_others_by_prior(kept: TopK) -> Comparison:
    mass = total(kept.prior[v] for v in kept.kept)
    drawn = [share / mass * (v in kept.kept) for v, share in enumerate(kept.prior)]
    return at_most(largest_ratio([row if y in kept.kept else drawn for y, row in enumerate(kept.listed)]), kept.ratio)


@claim("G21 Lemma 1", *KEPT, given=f"{ANY_NUMBER}; tables as printed and of the package")
@false("The same where any other label gives one of the `k` by its prior, not all alike.", _draw_others_by_prior)
def top_k_is_private(kept: TopK) -> Comparison:
    """RRTop-k, in which a label that is not among the `k` likeliest gives one of these at random, is epsilon-DP."""
    return kept.compare_ratios()


@claim("G21 Appendix A.1", *KEPT, given=f"{ANY_NUMBER}; tables as printed and of the package")
@corrected("The same where `k` is at least 2; where it is 1 the output is certain for all labels.", alike=1)
@false("The output is least likely for a label that is not kept: with probability ``1 / k``.", alike=99)
def another_kept_label_is_least_likely(kept: TopK, *, alike: int = 0) -> Comparison:
    """RRTop-k gives an output least likely for another label that is kept: with probability ``1 / (E + k - 1)``."""
    chance = Fraction(1, kept.k) if kept.k <= alike else 1 / (kept.ratio + kept.k - 1)
    found = [[min(row[v] for row in rows) for v in kept.kept] for rows in (kept.listed, kept.tabulated)]
    return equal(found, chance, tolerance=ROUNDING, scale=1)


@claim("G21 Section 3.1: objective of RRTop-k", *KEPT, given=f"{ANY_NUMBER}; tables as printed and of the package")
@false("The same with ``E / (E + K - 1)``, of randomized response on all labels.", all_labels=True)
def top_k_keeps_the_label(kept: TopK, *, all_labels: bool = False) -> Comparison:
    """RRTop-k keeps a label that follows the prior with ``E / (E + k - 1)`` times the prior of the `k` likeliest."""
    share = kept.ratio / (kept.ratio + (kept.size if all_labels else kept.k) - 1)
    found = [objective(kept.prior, rows) for rows in (kept.listed, kept.tabulated)]
    return equal(found, share * total(kept.prior[y] for y in kept.kept), tolerance=ROUNDING)


def _raise_k_until_kept(task: Task) -> Comparison:
    least = best_k(task.prior, task.ratio)
    ranks = sorted(range(task.size), key=lambda y: -task.prior[y])
    rows = [top_k_rows(task.prior, max(least, ranks.index(y) + 1), task.ratio)[y] for y in range(task.size)]
    return at_most(largest_ratio(rows), task.ratio)


@claim("G21 Corollary 2", tasks(100, most=9), given=f"{ANY_PRIOR}; tables as printed and of the package")
@false("The same where a label that is not kept has the number of labels raised until it is.", _raise_k_until_kept)
def with_prior_is_private(task: Task) -> Comparison:
    """RRWithPrior, which keeps as many labels as is best for the prior, whatever the label is, is epsilon-DP."""
    return task.compare_ratios()


@claim("G21 Section 4: one stage", k=(1, 2, 3, 7, 10, 49), ratio=RATIOS, given="a flat first prior")
@false("The same where the model finds the first label half as likely as each other one.", first=1)
def one_stage_is_randomized_response(k: int, ratio: Fraction, first: int = 2) -> Comparison:
    """One stage of training, whose model gives all labels equal probabilities, asks by randomized response on all."""
    stage = Task(shares([first] + [2] * (k - 1)), ratio)
    return equal(np.array(stage.tabulated), np.array(table(rr(range(k), stage.epsilon))))
