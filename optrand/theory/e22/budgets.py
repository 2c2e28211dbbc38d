"""Parameters that spend a budget, and what they really spend ([E22], Corollaries 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from optrand.baselines.cluster import cluster_distribution
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, none, worst
from optrand.theory.e22.curator import Curator
from optrand.theory.e22.noise import histograms, label_ratio
from optrand.theory.instances import RATIOS, listed, prior

__all__ = ["CLAIMS"]


@dataclass(frozen=True)
class _Uniform:
    """Randomized response by Algorithm 1 with `tau = 1 / K`."""

    k: int
    ratio: Fraction
    shares: tuple[Fraction, ...]

    def largest(self, resampling: Fraction) -> Fraction:
        """The largest ratio of two probabilities of one noisy label, with the distribution that Algorithm 1 makes."""
        return label_ratio(cluster_distribution(self.shares, Fraction(1, self.k)), resampling)

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

    Compared as ratios; the noisy distribution counts as released.
    """
    return at_most(curator.largest, curator.noise**3)


def the_release_spends_two_epsilon(curator: Curator) -> Comparison:
    """The same with 2 epsilon: compared as ratios."""
    return at_most(curator.largest, curator.noise**2)


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
)
