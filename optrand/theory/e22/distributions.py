"""Noisy distributions of clusters are distributions, and what drawing from them costs ([E22], Theorems 1 and 6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from random import Random

from optrand.baselines import LabelRandomization
from optrand.baselines.cluster import cluster_distribution
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.e22.noise import Distribution, channel, label_ratio
from optrand.theory.instances import listed, prior

__all__ = ["CLAIMS"]


@dataclass(frozen=True)
class _Resampling:
    """A public distribution, and how often labels are drawn from it."""

    distribution: Distribution
    resampling: Fraction

    @property
    def threshold(self) -> Fraction:
        """The least probability, above 0."""
        return min(self.distribution)

    @cached_property
    def ratio(self) -> Fraction:
        """The largest of two probabilities of one noisy label."""
        return label_ratio(self.distribution, self.resampling)

    def __str__(self) -> str:
        return f"q = {listed(self.distribution)}, lambda = {self.resampling}"


def _resamplings(budget: Budget) -> Iterator[_Resampling]:
    random = Random(5)  # noqa: S311
    third = Fraction(1, 3)
    yield _Resampling((Fraction(1, 2),) * 2, Fraction(1, 2))
    yield _Resampling((third, 2 * third), Fraction(1, 2))
    yield _Resampling((third, 2 * third), Fraction(1))
    for _ in range(budget.pick(quick=200, full=5_000)):
        shares = prior(random, random.randint(2, 6))
        threshold = Fraction(random.randint(1, 99), 100 * len(shares))
        yield _Resampling(cluster_distribution(shares, threshold), Fraction(random.randint(1, 100), 100))


def labels_cost_their_rarest(each: _Resampling) -> Comparison:
    """With no share below tau the noisy labels cost at most log(1 + (1 - lambda) / (lambda tau)); as ratios."""
    bound = 1 + (1 - each.resampling) / (each.resampling * each.threshold)
    known = LabelRandomization(each.distribution, each.resampling).ratio
    return worst(at_most(each.ratio, bound), none(int(each.ratio != known)))


def labels_cost_the_average(each: _Resampling) -> Comparison:
    """The same with 1 / K for tau."""
    bound = 1 + (1 - each.resampling) / each.resampling * len(each.distribution)
    return at_most(each.ratio, bound)


@dataclass(frozen=True)
class _Shares:
    """Noisy shares, a threshold and a bias correction."""

    shares: tuple[Fraction, ...]
    threshold: Fraction
    beta: Fraction

    def __str__(self) -> str:
        return f"noisy shares {listed(self.shares)}, tau = {self.threshold}, beta = {self.beta}"


def _shares(budget: Budget) -> Iterator[_Shares]:
    """Shares on a coarse grid with the thresholds 0 and 1/K, then random ones."""
    for k in (2, 3):
        for halves in product((-1, 0, 1, 2, 3), repeat=k):
            for threshold in (Fraction(0), Fraction(1, 2 * k), Fraction(1, k)):
                yield _Shares(tuple(Fraction(x, 2) for x in halves), threshold, Fraction(9, 10))
    random = Random(6)  # noqa: S311
    for _ in range(budget.pick(quick=500, full=20_000)):
        k = random.randint(2, 8)
        shares = tuple(p + Fraction(random.randint(-1_000, 1_000), 1_000) for p in prior(random, k))
        yield _Shares(shares, Fraction(random.randint(0, 100), 100 * k), Fraction(random.randint(0, 999), 1_000))


def distributions_are_well_defined(given: _Shares) -> Comparison:
    """With tau at most 1/K the noisy shares become a distribution with no share below tau, and matrices that invert.

    The determinant of the matrix is ``(1 - beta)**(K - 1)``. With one label, `K = 1`, a noisy share of 1 or more makes
    line 18 of Algorithm 1 divide zero by zero.
    """
    return _well_defined(given, cluster_distribution(given.shares, given.threshold))


def dividing_by_the_sum_is_well_defined(given: _Shares) -> Comparison:
    """The same where clipped shares are divided by their sum, or shares are equal if all are 0."""
    clipped = [max(given.threshold, min(Fraction(1), share)) for share in given.shares]
    total = sum(clipped, Fraction(0))
    return _well_defined(given, tuple(q / total if total else Fraction(1, len(clipped)) for q in clipped))


def _well_defined(given: _Shares, distribution: Distribution) -> Comparison:
    return worst(
        at_most(given.threshold, min(distribution)),
        at_most(max(distribution), 1),
        equal(sum(distribution, Fraction(0)), 1),
        none(int(_determinant(distribution, given.beta) == 0)),
    )


def _determinant(distribution: Distribution, beta: Fraction) -> Fraction:
    """Of ``(1 - beta) I + beta q 1'``, by elimination."""
    labels = range(len(distribution))
    rows = [[channel(out, true, distribution, beta) for true in labels] for out in labels]
    product_of_pivots = Fraction(1)
    for pivot in labels:
        # Of a positive multiple of the identity plus non-negative columns every pivot is positive.
        product_of_pivots *= rows[pivot][pivot]
        for row in rows[pivot + 1 :]:
            share = row[pivot] / rows[pivot][pivot]
            row[:] = [a - share * b for a, b in zip(row, rows[pivot], strict=True)]
    return product_of_pivots


CLAIMS = (
    Claim(
        paper="E22",
        number="Theorem 1",
        part="resampling",
        hypothesis="a public distribution with no share below tau",
        instances=_resamplings,
        printed=labels_cost_their_rarest,
        false=labels_cost_the_average,
    ),
    Claim(
        paper="E22",
        number="Theorem 6",
        hypothesis="at least two labels, tau from 0 to 1/K, beta below 1, any noise",
        instances=_shares,
        printed=distributions_are_well_defined,
        false=dividing_by_the_sum_is_well_defined,
    ),
)
