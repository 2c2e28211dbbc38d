"""What more rows do not mend of a curator's release ([E22], Theorem 2 and Corollary 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

from optrand.baselines.cluster import cluster_distribution
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.e22.contests import Contest, contests
from optrand.theory.e22.deviations import CONSTANT
from optrand.theory.instances import RATIOS

__all__ = ["CLAIMS"]


@dataclass(frozen=True)
class _Residual:
    """A contest on so many rows that neither samples nor the noise on clusters matter, but the threshold does.

    Attributes
    ----------
    contest : Contest
    threshold : Fraction
        `tau`.
    beta, resampling : Fraction
    """

    contest: Contest
    threshold: Fraction
    beta: Fraction
    resampling: Fraction

    @cached_property
    def excess(self) -> Fraction:
        """What is lost by the mean modified loss: its weights are the inverse matrix times the law of noisy labels."""
        return self.contest.excess(tuple(map(self._seen, self.contest.labels, self.contest.shares)))

    def _seen(self, labels: tuple[Fraction, ...], shares: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        q = cluster_distribution(shares, self.threshold)
        kept, drawn = 1 - self.resampling, self.resampling - self.beta
        return tuple((kept * p + drawn * share) / (1 - self.beta) for p, share in zip(labels, q, strict=True))

    def __str__(self) -> str:
        return f"{self.contest}; tau = {self.threshold}, beta = {self.beta}, lambda = {self.resampling}"


def _residuals(budget: Budget) -> Iterator[_Residual]:
    random = Random(13)  # noqa: S311
    for contest in contests(budget.pick(quick=300, full=10_000), labels=4, seed=14):
        for part in (0, random.randint(1, 4)):
            beta, share = (Fraction(random.randint(0, 19), 20) for _ in range(2))
            yield _Residual(contest, Fraction(part, 4 * contest.k), random.choice((Fraction(0), beta)), share)


def _residuals_at_a_budget(budget: Budget) -> Iterator[_Residual]:
    random = Random(15)  # noqa: S311
    for contest in contests(budget.pick(quick=300, full=10_000), labels=4, seed=16):
        tau = min(contest.heterogeneity, Fraction(1, contest.k))
        for ratio in (Fraction(11, 10), random.choice(RATIOS)):
            yield _Residual(contest, tau, Fraction(0), 1 / (1 + (ratio - 1) * tau))


def bias_is_heterogeneity_and_threshold(residual: _Residual) -> Comparison:
    """With any number of rows, the excess risk is at most 8 K |beta - lambda| / (1 - beta) (phi + K tau).

    The constant is that of the proof; its equations 20 to 22 drop the factor abs(beta - lambda).
    """
    return at_most(residual.excess, _factor(residual) * (residual.contest.heterogeneity + _floor(residual)))


def bias_is_the_threshold(residual: _Residual) -> Comparison:
    """The same without phi, as if all examples of a cluster were of one kind."""
    return at_most(residual.excess, _factor(residual) * _floor(residual))


def _factor(residual: _Residual) -> Fraction:
    return 8 * residual.contest.k * abs(residual.beta - residual.resampling) / (1 - residual.beta)


def _floor(residual: _Residual) -> Fraction:
    return residual.contest.k * residual.threshold


def clusters_cost_their_heterogeneity(residual: _Residual) -> Comparison:
    """Excess risk is at most C (K sqrt(dim log(1/gamma) / n) + K**2 phi / (1 + (exp(epsilon) - 1) phi)).

    Tried with C = 16 and the least of phi and 1/K as the threshold, on so many rows that the first summand is 0.
    """
    return at_most(residual.excess, 16 * residual.contest.k**2 * _spread(residual))


def clusters_cost_half_their_heterogeneity(residual: _Residual) -> Comparison:
    """With so many rows the excess risk is at most phi / 2 / (1 + (exp(epsilon) - 1) phi)."""
    return at_most(residual.excess, _spread(residual) / 2)


def _spread(residual: _Residual) -> Fraction:
    return residual.contest.heterogeneity * residual.resampling


CLAIMS = (
    Claim(
        paper="E22",
        number="Theorem 2",
        part="residual",
        hypothesis="two hypotheses, as many rows as one likes in every cluster",
        instances=_residuals,
        printed=bias_is_heterogeneity_and_threshold,
        false=bias_is_the_threshold,
    ),
    Claim(
        paper="E22",
        number="Corollary 2",
        hypothesis="clusters of at least 1 / (epsilon phi) rows",
        instances=_residuals_at_a_budget,
        printed=clusters_cost_their_heterogeneity,
        false=clusters_cost_half_their_heterogeneity,
        quantifier=CONSTANT,
    ),
)
