"""What a learner loses on labels that peers exchange ([E22], Theorem 4)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from random import Random

import numpy as np
from scipy.stats import binom

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.e22.contests import Contest, contests, most_lost

__all__ = ["CLAIMS"]

TOLERANCE = 1e-9
"""Of sums and roots in floats."""

HUNDRED = 100
"""What "of the order of" is allowed to hide."""


@dataclass(frozen=True)
class _Bias:
    """Two hypotheses judged by labels that peers exchange in large clusters: what more rows do not mend.

    Attributes
    ----------
    contest : Contest
        Of two labels.
    flip : Fraction
        At most 1/2.
    """

    contest: Contest
    flip: Fraction

    @cached_property
    def excess(self) -> Fraction:
        """What is lost: every example is seen with the flipped labels of its cluster."""
        turned = (tuple(self.flip + (1 - 2 * self.flip) * share for share in shares) for shares in self.contest.shares)
        return self.contest.excess(tuple(turned))

    def __str__(self) -> str:
        return f"{self.contest}; alpha = {self.flip}"


def _biases(budget: Budget) -> Iterator[_Bias]:
    """One example whose flips tempt to the other hypothesis, two whose cluster does, then random ones."""
    one, none = Fraction(1), Fraction(0)
    for flip in (Fraction(1, 4), Fraction(1, 10), Fraction(1, 2)):
        losses = (((none, flip / (1 - flip)),), ((one, none),))
        yield _Bias(Contest((one,), (0,), ((none, one),), losses), flip)
    random = Random(9)  # noqa: S311
    for contest in contests(budget.pick(quick=400, full=20_000), labels=2, seed=10):
        yield _Bias(contest, Fraction(random.randint(0, 50), 100))


def bias_is_heterogeneity_and_two_flips(bias: _Bias) -> Comparison:
    """With any number of rows, the excess risk among peers is at most phi + 2 alpha."""
    return at_most(bias.excess, bias.contest.heterogeneity + 2 * bias.flip)


def bias_is_heterogeneity_and_a_flip(bias: _Bias) -> Comparison:
    """With any number of rows, the excess risk among peers is at most phi + alpha."""
    return at_most(bias.excess, bias.contest.heterogeneity + bias.flip)


@dataclass(frozen=True)
class _Majority:
    """Two hypotheses, "always 0" and "always 1", judged by the copies of one cluster.

    Attributes
    ----------
    size : int
        `n`, of which all are in one cluster.
    rate, flip : float
        `theta` and `alpha`.
    gamma : float
        The probability that the bound may be broken.
    """

    size: int
    rate: float
    flip: float
    gamma: float

    @cached_property
    def excess(self) -> float:
        """The largest excess risk, over all distributions of labels, that is exceeded with probability `gamma`.

        Labels are 1 with probability `p` above 1/2, and "always 0" costs `2 p - 1` more. Ties, and no copies at all,
        count for it.
        """
        return most_lost(self._misled, self.gamma)

    def _misled(self, ones: float) -> float:
        """The probability that at most half of the copies are 1."""
        n = self.size
        flipped = binom.pmf(np.arange(n + 1), n, self.flip + (1 - 2 * self.flip) * ones)
        sent = binom.pmf(np.arange(n + 1), n, self.rate)
        t = np.arange(n + 1)[:, np.newaxis]
        return float(sent @ binom.cdf(t // 2, t, np.arange(n + 1) / n) @ flipped)

    def __str__(self) -> str:
        return f"n = {self.size}, theta = {self.rate}, alpha = {self.flip}, gamma = {self.gamma}"


def _majorities(budget: Budget) -> Iterator[_Majority]:
    for size in (1, 2, 5, 20, 80, *budget.pick(quick=(), full=(200, 400))):
        for rate, flip in ((1.0, 0.1), (0.05, 0.1), (1.0, 0.0), (0.2, 0.4)):
            yield from (_Majority(size, rate, flip, gamma) for gamma in (0.5, 0.05, 1e-4))


def peers_learn_at_the_rate_of_their_copies(majority: _Majority) -> Comparison:
    """With probability 1 - gamma the excess risk is at most C (sqrt(dim log(1/gamma) / (theta n)) + phi + alpha).

    Tried with one cluster, so that phi = 0, on two hypotheses, at a dimension of 1 and C = 3.
    """
    return _learned(majority, majority.rate)


def peers_learn_at_the_rate_of_their_labels(majority: _Majority) -> Comparison:
    """The same with n for theta n."""
    return _learned(majority, 1.0)


def _learned(majority: _Majority, rate: float) -> Comparison:
    deviation = math.sqrt(math.log(1 / majority.gamma) / (rate * majority.size))
    return at_most(majority.excess, 3 * (deviation + majority.flip), tolerance=TOLERANCE)


@dataclass(frozen=True)
class _Combined:
    """An epsilon and a heterogeneity, below 1."""

    epsilon: Fraction
    heterogeneity: Fraction

    def flip_squared(self, size: Fraction) -> Fraction:
        """The square of `1 / sqrt(theta s)` at `theta = epsilon`: of the flip of Theorem 3 but for `C log s`."""
        return 1 / (self.epsilon * size)

    def __str__(self) -> str:
        return f"epsilon = theta = {self.epsilon}, phi = {self.heterogeneity}"


def _combined(budget: Budget) -> Iterator[_Combined]:
    shares = [Fraction(1, n) for n in (4, 100, 2, *budget.pick(quick=(), full=tuple(range(5, 200, 3))))]
    for epsilon, phi in product(shares, [*shares, Fraction(1, 10**6), Fraction(1, 10**9)]):
        yield _Combined(epsilon, phi)


def clusters_of_one_over_phi_epsilon_squared(combined: _Combined) -> Comparison:
    """From s = 1 / (phi epsilon**2) on, theta = epsilon makes Theorem 3's flip of order phi: at most a hundred times.

    Compared in squares. C log s, above 1, is left out, which favours the claim.
    """
    return _of_order_phi(combined, 1 / (combined.heterogeneity * combined.epsilon**2))


def clusters_of_one_over_phi_squared_epsilon(combined: _Combined) -> Comparison:
    """From s = 1 / (phi**2 epsilon) on, theta = epsilon makes Theorem 3's flip of order phi, but for C log s."""
    size = 1 / (combined.heterogeneity**2 * combined.epsilon)
    return at_most(combined.flip_squared(size), combined.heterogeneity**2)


def clusters_of_one_over_phi_epsilon(combined: _Combined) -> Comparison:
    """From s = 1 / (phi epsilon) on, theta = epsilon makes Theorem 3's flip of order phi, but for C log s."""
    return _of_order_phi(combined, 1 / (combined.heterogeneity * combined.epsilon))


def _of_order_phi(combined: _Combined, size: Fraction) -> Comparison:
    return at_most(combined.flip_squared(size), (HUNDRED * combined.heterogeneity) ** 2)


CLAIMS = (
    Claim(
        paper="E22",
        number="Theorem 4",
        hypothesis="any population, class and clusters",
        instances=_majorities,
        printed=peers_learn_at_the_rate_of_their_copies,
        false=peers_learn_at_the_rate_of_their_labels,
        quantifier="an unnamed constant, over all populations and classes of hypotheses",
    ),
    Claim(
        paper="E22",
        number="Theorem 4",
        part="bias",
        hypothesis="two hypotheses, as many rows as one likes in every cluster, alpha at most 1/2",
        instances=_biases,
        printed=bias_is_heterogeneity_and_two_flips,
        false=bias_is_heterogeneity_and_a_flip,
    ),
    Claim(
        paper="E22",
        number="Theorem 4",
        part="with Theorem 3",
        hypothesis="epsilon and phi below 1, theta = epsilon, as many rows as one likes",
        instances=_combined,
        printed=clusters_of_one_over_phi_epsilon_squared,
        corrected=clusters_of_one_over_phi_squared_epsilon,
        false=clusters_of_one_over_phi_epsilon,
    ),
)
