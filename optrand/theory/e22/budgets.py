"""Parameters that spend a budget, and what they really spend ([E22]_, Corollaries 1 and 2).

References
----------
.. [E22] Esfandiari et al., *Label differential privacy via clustering*, 2022.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from random import Random

import numpy as np

from optrand.baselines.cluster import cluster_distribution
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.e22.curator import Curator
from optrand.theory.e22.losses import Table, heterogeneity
from optrand.theory.e22.noise import channel, histograms
from optrand.theory.instances import RATIOS, listed, prior
from optrand.validation import Floats

__all__ = ["CLAIMS", "LabelsAlone"]

CELLS = 30
"""Into how many parts of one row Laplace noise is cut."""


@dataclass(frozen=True)
class _Uniform:
    """Randomized response by Algorithm 1 with `tau = 1 / K`."""

    k: int
    ratio: Fraction
    shares: tuple[Fraction, ...]

    def largest(self, resampling: Fraction) -> Fraction:
        """The largest ratio of two probabilities of one noisy label, with the distribution that Algorithm 1 makes."""
        q = cluster_distribution(self.shares, Fraction(1, self.k))
        labels = range(self.k)
        return max(channel(v, a, q, resampling) / channel(v, b, q, resampling) for v, a, b in product(labels, repeat=3))

    @property
    def other(self) -> Fraction:
        """The probability of each other label."""
        return 1 / (self.k - 1 + self.ratio)

    def __str__(self) -> str:
        return f"K = {self.k}, exp(epsilon) = {self.ratio}, noisy shares {listed(self.shares)}"


def _uniforms(budget: Budget) -> Iterator[_Uniform]:
    random = Random(11)  # noqa: S311
    for k in (2, 3, 10, *budget.pick(quick=(), full=(20, 30))):
        for ratio in RATIOS:
            yield _Uniform(k, ratio, prior(random, k))
            yield _Uniform(k, ratio, tuple(Fraction(random.randint(-30, 30), 10) for _ in range(k)))


def uniform_response_spends_epsilon(uniform: _Uniform) -> Comparison:
    """With tau = 1/K and lambda = K / (K - 1 + exp(epsilon)) labels are drawn uniformly and cost epsilon; as ratios.

    Whatever the noise on the distribution of a cluster, it ends at equal shares.
    """
    drawn = cluster_distribution(uniform.shares, Fraction(1, uniform.k))
    alike = none(len(set(drawn)) - 1)
    return worst(at_most(uniform.largest(uniform.k * uniform.other), uniform.ratio), alike)


def uniform_response_among_others_spends_epsilon(uniform: _Uniform) -> Comparison:
    """The same with lambda = (K - 1) / (K - 1 + exp(epsilon)), the probability of another label than one's own."""
    return at_most(uniform.largest((uniform.k - 1) * uniform.other), uniform.ratio)


def _spent(budget: Budget) -> Iterator[Curator]:
    """Corollary 2's parameters: `tau` is a whole number of rows, and `phi` is tau."""
    cases: list[tuple[tuple[int, ...], int]] = [
        (others, low)
        for k, size in ((2, 3), (2, 4), (3, 4))
        for others in histograms(k, size - 1)
        for low in range(1, -(-size // k))
    ]
    cases += [((1, 5, 5), 3), ((0, 9, 2), 2), *budget.pick(quick=[], full=[((3, 10, 6), 4), ((5, 13, 11), 6)])]
    for ratio in (Fraction(3, 2), Fraction(11, 10)):
        for others, low in cases:
            tau = Fraction(low, sum(others) + 1)
            yield Curator(others, low, ratio, 1 / (1 + (ratio - 1) * tau))


def the_release_spends_three_epsilon(curator: Curator) -> Comparison:
    """With sigma = 1 / epsilon and lambda = 1 / (1 + (exp(epsilon) - 1) tau) the release costs O(epsilon): 3 epsilon.

    Compared as ratios, with noise in whole rows; the noisy distribution counts as released.
    """
    return at_most(curator.whole_rows, curator.noise**3)


def the_release_spends_two_epsilon(curator: Curator) -> Comparison:
    """The same with 2 epsilon: compared as ratios."""
    return at_most(curator.whole_rows, curator.noise**2)


@dataclass(frozen=True)
class LabelsAlone:
    """Corollary 2 with two labels, continuous noise, and nothing released but noisy labels: `beta = 0` keeps the loss.

    Attributes
    ----------
    size : int
        Rows of the cluster.
    epsilon : float
    threshold : float
        `tau`, which is `phi`.
    """

    size: int
    epsilon: float
    threshold: float

    @cached_property
    def spent(self) -> float:
        """At least what is spent, as a share of epsilon: two neighbours, and the release of zeros alone."""
        ratios = (self._zeros(ones, low=True) / self._zeros(ones + 1, low=False) for ones in range(self.size))
        return max(math.log(ratio) for ratio in ratios) / self.epsilon

    def _zeros(self, ones: int, *, low: bool) -> float:
        """A bound on the probability that all noisy labels are 0, from below or from above.

        It grows with the noisy share of label 0, which grows with that label's noisy count and falls with the other:
        each piece of the noise is counted at the end where that is least, or largest.
        """
        share, n = 1 / (1 + math.expm1(self.epsilon) * self.threshold), self.size
        mass, lower, upper = self._cells(n - ones)
        other, other_lower, other_upper = self._cells(ones)
        q = self._share((lower if low else upper)[:, np.newaxis], other_upper if low else other_lower)
        return float(mass @ ((1 - share + share * q) ** (n - ones) * (share * q) ** ones) @ other)

    def _cells(self, count: int) -> tuple[Floats, Floats, Floats]:
        """Pieces of a clipped noisy share: how likely each is, where it begins and ends."""
        n, tau = self.size, self.threshold
        edges = np.linspace(n * tau, n, round(n * (1 - tau) * CELLS) + 1)
        scaled = (edges - count) * self.epsilon
        below = np.where(scaled < 0, np.exp(np.minimum(scaled, 0)) / 2, 1 - np.exp(-np.maximum(scaled, 0)) / 2)
        mass = np.diff(below, prepend=0.0, append=1.0)
        return mass, np.append(edges[0], edges) / n, np.append(edges, edges[-1]) / n

    def _share(self, zero: Floats, one: Floats) -> Floats:
        """Lines 9 to 19 of Algorithm 1."""
        missing = 1 - zero - one
        room = np.where(missing < 0, zero - self.threshold, 1 - zero)
        total = np.where(missing < 0, zero + one - 2 * self.threshold, 2 - zero - one)
        return zero + missing * np.divide(room, total, out=np.zeros_like(missing), where=total > 0)

    def __str__(self) -> str:
        return f"K = 2, {self.size} rows, epsilon = {self.epsilon}, tau = phi = {self.threshold}"


def _labels_alone(budget: Budget) -> Iterator[LabelsAlone]:
    for size in (2, 4, 6, 8, 12, *budget.pick(quick=(), full=(20, 30))):
        yield from (LabelsAlone(size, eps, tau) for eps in (0.01, 0.1, 1.0) for tau in (0.25, 0.1, 0.4))


def labels_spend_two_epsilon(labels: LabelsAlone) -> Comparison:
    """With the parameters of Corollary 2, for which Theorem 1 gives 2 epsilon, noisy labels alone cost at most that."""
    return at_most(labels.spent, 2)


def labels_spend_three_epsilon(labels: LabelsAlone) -> Comparison:
    """With the parameters of Corollary 2 noisy labels alone cost at most 3 epsilon."""
    return at_most(labels.spent, 3)


def labels_spend_three_halves_of_epsilon(labels: LabelsAlone) -> Comparison:
    """With the parameters of Corollary 2 noisy labels alone cost at most 3/2 epsilon."""
    return at_most(labels.spent, 3 / 2)


@dataclass(frozen=True)
class _Heterogeneous:
    """Examples in clusters, and a privacy ratio."""

    weights: tuple[Fraction, ...]
    clusters: tuple[int, ...]
    labels: Table
    ratio: Fraction

    @property
    def k(self) -> int:
        """The number of labels."""
        return len(self.labels[0])

    @property
    def phi(self) -> Fraction:
        """The heterogeneity."""
        return heterogeneity(self.weights, self.clusters, self.labels)

    def __str__(self) -> str:
        return (
            f"examples of weight {listed(self.weights)} in clusters {', '.join(map(str, self.clusters))} with labels "
            f"{'; '.join(map(listed, self.labels))}: phi = {self.phi}; exp(epsilon) = {self.ratio}"
        )


def _heterogeneous(budget: Budget) -> Iterator[_Heterogeneous]:
    half, sure = Fraction(1, 2), (Fraction(1), Fraction(0))
    yield _Heterogeneous((half, half), (0, 0), (sure, sure[::-1]), Fraction(2))
    random = Random(12)  # noqa: S311
    for _ in range(budget.pick(quick=100, full=5_000)):
        k, count = random.randint(2, 5), random.randint(2, 4)
        labels = tuple(prior(random, k) for _ in range(count))
        clusters = tuple(random.randint(0, 1) for _ in range(count))
        yield _Heterogeneous(prior(random, count), clusters, labels, random.choice(RATIOS))


def heterogeneity_is_a_threshold(given: _Heterogeneous) -> Comparison:
    """The heterogeneity phi can be the threshold of Algorithm 1, which lies in [0, 1/K]."""
    return at_most(given.phi, Fraction(1, given.k))


def heterogeneity_up_to_equal_shares_is_a_threshold(given: _Heterogeneous) -> Comparison:
    """The least of phi and 1/K can be the threshold tau, and its lambda makes the noisy labels cost epsilon.

    Where phi = 0 every label would be resampled; lambda must be below 1.
    """
    tau = min(given.phi, Fraction(1, given.k))
    if tau == 0:
        return equal(1 / (1 + (given.ratio - 1) * tau), 1)
    resampling = 1 / (1 + (given.ratio - 1) * tau)
    return worst(at_most(tau, Fraction(1, given.k)), equal(1 + (1 - resampling) / (resampling * tau), given.ratio))


def half_the_heterogeneity_is_a_threshold(given: _Heterogeneous) -> Comparison:
    """Half of phi, the average total variation as it is usually defined, can be the threshold."""
    return at_most(given.phi / 2, Fraction(1, given.k))


CLAIMS = (
    Claim(
        paper="E22",
        number="Corollary 1",
        part="privacy",
        hypothesis="tau = 1/K, any noise, epsilon above 0",
        instances=_uniforms,
        printed=uniform_response_spends_epsilon,
        false=uniform_response_among_others_spends_epsilon,
    ),
    Claim(
        paper="E22",
        number="Corollary 2",
        part="privacy",
        hypothesis="tau = phi of at most 1/K, sigma = 1 / epsilon, lambda = 1 / (1 + (exp(epsilon) - 1) phi)",
        instances=_spent,
        printed=the_release_spends_three_epsilon,
        false=the_release_spends_two_epsilon,
    ),
    Claim(
        paper="E22",
        number="Corollary 2",
        part="noisy labels alone",
        hypothesis="continuous noise; as beta = 0, only noisy labels are released",
        instances=_labels_alone,
        printed=labels_spend_two_epsilon,
        corrected=labels_spend_three_epsilon,
        false=labels_spend_three_halves_of_epsilon,
    ),
    Claim(
        paper="E22",
        number="Corollary 2",
        part="threshold",
        hypothesis="any population and clusters",
        instances=_heterogeneous,
        printed=heterogeneity_is_a_threshold,
        corrected=heterogeneity_up_to_equal_shares_is_a_threshold,
        false=half_the_heterogeneity_is_a_threshold,
    ),
)
