"""What a learner loses on a curator's release ([E22]_, Theorem 2, Corollary 1).

The constant in these bounds has no name, and the dimension is `log N / log(1 / alpha)` for the covering number `N` at a
scale `alpha` that is not said. Excess risks are summed where two hypotheses compete.

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

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.e22.deviations import CONSTANT, Response, responses

__all__ = ["CLAIMS"]

TOLERANCE = 1e-9
"""Of quantiles and roots in floats."""


def _low_budgets(budget: Budget) -> Iterator[Response]:
    return (response for response in responses(budget) if response.epsilon < 1)


def responses_are_learned_from(response: Response) -> Comparison:
    """Excess risk is at most C K (sqrt(dim log(1/gamma) / n) + |beta - lambda| (phi + K sigma/s + K tau)) / (1 - beta).

    With probability 1 - gamma. With beta = lambda the second summand is 0. Tried with uniform randomized response of
    two labels, on two hypotheses, at a dimension of 1, C = 1 and gamma of at most 1/2.
    """
    return _learned(response, 2 / (1 - response.beta))


def responses_are_learned_from_like_labels(response: Response) -> Comparison:
    """The same without 1 - beta."""
    return _learned(response, 2.0)


def responses_are_learned_from_at_epsilon(response: Response) -> Comparison:
    """With probability 1 - gamma uniform response costs at most C K / epsilon sqrt(dim log(1/gamma) / n).

    Tried with two labels and epsilon below 1, on two hypotheses, at a dimension of 1, C = 2 and gamma of at most 1/2.
    """
    return _learned(response, 4 / response.epsilon)


def responses_are_learned_from_at_root_epsilon(response: Response) -> Comparison:
    """The same with sqrt(epsilon) for epsilon."""
    return _learned(response, 4 / math.sqrt(response.epsilon))


def _learned(response: Response, factor: float) -> Comparison:
    return at_most(
        response.excess, factor * math.sqrt(math.log(1 / response.gamma) / response.size), tolerance=TOLERANCE
    )


@dataclass(frozen=True)
class _Unlikely:
    """One row, whose label is always 1; "always 0" and "always 1"; uniform response with beta = lambda = 1/2.

    Attributes
    ----------
    constant : int
        `C`, with the dimension in it.
    """

    constant: int

    @property
    def gamma(self) -> float:
        """So near to 1 that the bound is a tenth of what is lost; probability ``1 - gamma`` is above 0."""
        return math.exp(-1 / (160 * self.constant) ** 2)

    @property
    def excess(self) -> Fraction:
        """The mean excess risk, for the only table that there is."""
        return _Chosen(1, Fraction(1, 2)).excess

    def __str__(self) -> str:
        return f"C = {self.constant}, 1 - gamma = {-math.expm1(-1 / (160 * self.constant) ** 2):.3g}"


def _unlikely(budget: Budget) -> Iterator[_Unlikely]:
    return (_Unlikely(10**power) for power in range(budget.pick(quick=4, full=6)))


def bounds_hold_at_any_probability(unlikely: _Unlikely) -> Comparison:
    """With beta = lambda, the mean excess risk is at most C K / (1 - beta) sqrt(dim log(1/gamma) / n) for any gamma."""
    return _with(unlikely, math.log(1 / unlikely.gamma))


def bounds_hold_with_two_over_gamma(unlikely: _Unlikely) -> Comparison:
    """The same with log(2/gamma) for log(1/gamma)."""
    return _with(unlikely, math.log(2 / unlikely.gamma))


def bounds_hold_with_twice_the_logarithm(unlikely: _Unlikely) -> Comparison:
    """The same with 2 log(1/gamma) for log(1/gamma)."""
    return _with(unlikely, 2 * math.log(1 / unlikely.gamma))


def _with(unlikely: _Unlikely, logarithm: float) -> Comparison:
    return at_most(float(unlikely.excess), unlikely.constant * 4 * math.sqrt(logarithm))


@dataclass(frozen=True)
class _Chosen:
    """A table with labels 1 alone, `n` rows; "always 0" and "always 1"; uniform response with beta = lambda.

    Attributes
    ----------
    size : int
    beta : Fraction
    """

    size: int
    beta: Fraction

    @cached_property
    def _outcomes(self) -> list[tuple[Fraction, tuple[Fraction, Fraction]]]:
        """The probability of each number of noisy zeros, with the mean modified losses of both hypotheses."""
        zero = self.beta / 2
        n = self.size
        chances = [math.comb(n, k) * zero**k * (1 - zero) ** (n - k) for k in range(n + 1)]
        return [
            (chance, (self._mean_loss(1 - Fraction(k, n)), self._mean_loss(Fraction(k, n))))
            for k, chance in enumerate(chances)
        ]

    def _mean_loss(self, wrong: Fraction) -> Fraction:
        return (wrong - self.beta / 2) / (1 - self.beta)

    @property
    def excess(self) -> Fraction:
        """How often "always 0", which costs 1 more, has the smaller mean modified loss."""
        return sum((chance for chance, (zero, one) in self._outcomes if zero < one), Fraction(0))

    @property
    def flattered(self) -> Fraction:
        """By how much, on average, the risk of the hypothesis that wins is above its mean modified loss."""
        return sum((p * (1 - zero if zero < one else -one) for p, (zero, one) in self._outcomes), Fraction(0))

    @property
    def largest_of_means(self) -> Fraction:
        """The largest, of both hypotheses, difference of the risk and the average mean modified loss."""
        means = [sum((p * losses[h] for p, losses in self._outcomes), Fraction(0)) for h in (0, 1)]
        return max(abs(means[0] - 1), abs(means[1]))

    @property
    def mean_of_largest(self) -> Fraction:
        """The average of the largest such difference."""
        return sum((p * max(abs(zero - 1), abs(one)) for p, (zero, one) in self._outcomes), Fraction(0))

    def __str__(self) -> str:
        return f"{self.size} row(s), beta = lambda = {self.beta}"


def _chosen(budget: Budget) -> Iterator[_Chosen]:
    sizes = range(1, budget.pick(quick=6, full=40))
    return (_Chosen(n, Fraction(beta)) for n in sizes for beta in ("1/2", "9/10", "1/10"))


def means_of_the_winner_are_bounded_by_means(chosen: _Chosen) -> Comparison:
    """On average, the winner's risk exceeds its mean modified loss by at most the largest difference of averages."""
    return at_most(chosen.flattered, chosen.largest_of_means)


def means_of_the_winner_are_bounded_by_largest(chosen: _Chosen) -> Comparison:
    """On average, the winner's risk exceeds its mean modified loss by at most the average of the largest difference."""
    return at_most(chosen.flattered, chosen.mean_of_largest)


def means_of_the_winner_are_bounded_by_half(chosen: _Chosen) -> Comparison:
    """The same with half of that average."""
    return at_most(chosen.flattered, chosen.mean_of_largest / 2)


@dataclass(frozen=True)
class _Scale:
    """Uniform response of `k` labels."""

    k: int
    ratio: Fraction

    def inverse(self, k: int) -> Fraction:
        """``1 / (1 - beta)`` of so many labels."""
        return 1 + k / (self.ratio - 1)

    def __str__(self) -> str:
        return f"K = {self.k}, exp(epsilon) = {self.ratio}"


def _scales(budget: Budget) -> Iterator[_Scale]:
    ratios = [Fraction(text) for text in ("2", "11/10", "1001/1000")]
    return (_Scale(k, ratio) for k in (2, 3, 10, *budget.pick(quick=(), full=(100, 10**6))) for ratio in ratios)


def the_factor_doubles(scale: _Scale) -> Comparison:
    """Of uniform response, the factor K / (1 - beta) of Theorem 2 at most doubles with K, as K / epsilon does."""
    return at_most(2 * scale.k * scale.inverse(2 * scale.k), 2 * scale.k * scale.inverse(scale.k))


def the_largest_loss_doubles(scale: _Scale) -> Comparison:
    """Of uniform response, 1 / (1 - beta), above all modified losses, at most doubles with K, as K / epsilon does."""
    return at_most(scale.inverse(2 * scale.k), 2 * scale.inverse(scale.k))


def the_largest_loss_hardly_grows(scale: _Scale) -> Comparison:
    """Of uniform response, 1 / (1 - beta) grows by at most half when K doubles."""
    return at_most(scale.inverse(2 * scale.k), scale.inverse(scale.k) * Fraction(3, 2))


CLAIMS = (
    Claim(
        paper="E22",
        number="Theorem 2",
        hypothesis="any class of hypotheses and population",
        instances=responses,
        printed=responses_are_learned_from,
        false=responses_are_learned_from_like_labels,
        quantifier=CONSTANT,
    ),
    Claim(
        paper="E22",
        number="Theorem 2",
        part="gamma near 1",
        hypothesis="any constant C and any gamma below 1",
        instances=_unlikely,
        printed=bounds_hold_at_any_probability,
        corrected=bounds_hold_with_two_over_gamma,
        false=bounds_hold_with_twice_the_logarithm,
    ),
    Claim(
        paper="E22",
        number="Theorem 2",
        part="equation 22",
        hypothesis="means over what the mechanism draws",
        instances=_chosen,
        printed=means_of_the_winner_are_bounded_by_means,
        corrected=means_of_the_winner_are_bounded_by_largest,
        false=means_of_the_winner_are_bounded_by_half,
    ),
    Claim(
        paper="E22",
        number="Corollary 1",
        hypothesis="epsilon below 1, any class of hypotheses and population",
        instances=_low_budgets,
        printed=responses_are_learned_from_at_epsilon,
        false=responses_are_learned_from_at_root_epsilon,
        quantifier=CONSTANT,
    ),
    Claim(
        paper="E22",
        number="Corollary 1",
        part="from Theorem 2",
        hypothesis="any epsilon above 0",
        instances=_scales,
        printed=the_factor_doubles,
        corrected=the_largest_loss_doubles,
        false=the_largest_loss_hardly_grows,
    ),
)
