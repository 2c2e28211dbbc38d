"""What a learner loses on a curator's release ([E22], Theorem 2, Corollary 1).

The constant in these bounds has no name, and the dimension is `log N / log(1 / alpha)` for the covering number `N` at a
scale `alpha` that is not said. Excess risks are summed where two hypotheses compete.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product

from scipy.stats import binom

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.e22.contests import most_lost
from optrand.theory.e22.deviations import CONSTANT, GAMMAS
from optrand.theory.e22.noise import histograms, law_of_distributions

__all__ = ["CLAIMS", "NoisyChoice"]

TOLERANCE = 1e-9
"""Of quantiles and roots in floats."""


@dataclass(frozen=True)
class _Response:
    """Two labels by uniform randomized response, whose inverse makes up the loss.

    Attributes
    ----------
    size : int
        `n`.
    beta : float
        `beta = lambda`.
    gamma : float
        The probability that a bound may be broken.
    """

    size: int
    beta: float
    gamma: float

    @cached_property
    def excess(self) -> float:
        """The largest excess risk, over labels, that is exceeded with probability `gamma`.

        Of "always 0" and "always 1" the modified loss prefers what most noisy labels say; ties count against it.
        """
        return most_lost(self._misled, self.gamma)

    def _misled(self, ones: float) -> float:
        return float(binom.cdf(self.size // 2, self.size, self.beta / 2 + (1 - self.beta) * ones))

    @property
    def epsilon(self) -> float:
        """What the response costs: `beta = 2 / (1 + exp(epsilon))`."""
        return math.log(2 / self.beta - 1)

    def __str__(self) -> str:
        return f"K = 2, n = {self.size}, beta = lambda = {self.beta}, gamma = {self.gamma}"


def _responses(budget: Budget) -> Iterator[_Response]:
    """Samples of one row and up, with more and more noise."""
    sizes = (1, 2, 5, 20, 100, 1_000, 10_000, *budget.pick(quick=(), full=(100_000,)))
    return (_Response(*case) for case in product(sizes, (0.5, 0.9, 0.99), GAMMAS))


def _low_budgets(budget: Budget) -> Iterator[_Response]:
    return (response for response in _responses(budget) if response.epsilon < 1)


def responses_are_learned_from(response: _Response) -> Comparison:
    """Excess risk is at most C K (sqrt(dim log(1/gamma) / n) + |beta - lambda| (phi + K sigma/s + K tau)) / (1 - beta).

    With probability 1 - gamma. With beta = lambda the second summand is 0. Tried with uniform randomized response of
    two labels, on two hypotheses, at a dimension of 1, C = 1 and gamma of at most 1/2.
    """
    return _learned(response, 2 / (1 - response.beta))


def responses_are_learned_from_like_labels(response: _Response) -> Comparison:
    """The same without 1 - beta."""
    return _learned(response, 2.0)


def responses_are_learned_from_at_epsilon(response: _Response) -> Comparison:
    """With probability 1 - gamma uniform response costs at most C K / epsilon sqrt(dim log(1/gamma) / n).

    Tried with two labels and epsilon below 1, on two hypotheses, at a dimension of 1, C = 2 and gamma of at most 1/2.
    """
    return _learned(response, 4 / response.epsilon)


def responses_are_learned_from_at_root_epsilon(response: _Response) -> Comparison:
    """The same with sqrt(epsilon) for epsilon."""
    return _learned(response, 4 / math.sqrt(response.epsilon))


def _learned(response: _Response, factor: float) -> Comparison:
    return at_most(
        response.excess, factor * math.sqrt(math.log(1 / response.gamma) / response.size), tolerance=TOLERANCE
    )


@dataclass(frozen=True)
class NoisyChoice:
    """One example, two labels, "always 0" and "always 1": the modified loss that tells which to choose has noise.

    Attributes
    ----------
    ones : Fraction
        The probability of label 1.
    counts : tuple of int
        How many rows have each label.
    noisy : tuple of int
        How many have each noisy label.
    noise : Fraction
        `exp(1 / sigma)`; `tau` is 0.
    beta : Fraction
        Equal to `lambda`, so that mean modified losses are risks.
    """

    ones: Fraction
    counts: tuple[int, ...]
    noisy: tuple[int, ...]
    noise: Fraction
    beta: Fraction

    @property
    def risks(self) -> tuple[Fraction, Fraction]:
        """Of both hypotheses."""
        return self.ones, 1 - self.ones

    @cached_property
    def looks(self) -> list[tuple[Fraction, tuple[Fraction, Fraction]]]:
        """The mean modified losses of both hypotheses, and with what probability the noise makes them so."""
        zeros, ones = (Fraction(count, sum(self.noisy)) for count in self.noisy)
        laws = law_of_distributions(self.counts, Fraction(0), self.noise).items()
        kept = 1 - self.beta
        return [(mass, ((ones - self.beta * q[1]) / kept, (zeros - self.beta * q[0]) / kept)) for q, mass in laws]

    @cached_property
    def excess(self) -> Fraction:
        """The mean excess risk; of two that look alike, "always 0" is chosen."""
        return sum((mass * self.risks[look[1] < look[0]] for mass, look in self.looks), Fraction(0)) - min(self.risks)

    @cached_property
    def largest_of_means(self) -> Fraction:
        """The largest distance of a risk from the average, over the noise, of the mean modified loss."""
        means = [sum((mass * look[h] for mass, look in self.looks), Fraction(0)) for h in (0, 1)]
        return max(abs(mean - risk) for mean, risk in zip(means, self.risks, strict=True))

    @cached_property
    def mean_of_largest(self) -> Fraction:
        """The average, over the noise, of the largest distance of a risk from the mean modified loss."""
        return sum((mass * max(abs(look[h] - self.risks[h]) for h in (0, 1)) for mass, look in self.looks), Fraction(0))

    def __str__(self) -> str:
        return (
            f"label 1 with probability {self.ones}; {self.counts[0]} zero(s) and {self.counts[1]} one(s), of the noisy "
            f"labels {self.noisy[1]} one(s); tau = 0, exp(1 / sigma) = {self.noise}, beta = lambda = {self.beta}"
        )


def _noisy_choices(budget: Budget) -> Iterator[NoisyChoice]:
    """All small tables, each with labels for which mean modified losses are risks on average, and with others."""
    rest = Fraction(0), Fraction(1, 2), Fraction(3, 4)
    for size, beta in product(range(3, budget.pick(quick=6, full=10)), (Fraction(1, 2), Fraction(9, 10))):
        for counts, noisy in product(histograms(2, size), repeat=2):
            choice = NoisyChoice(Fraction(0), counts, noisy, Fraction(2), beta)
            mean = sum((mass * look[0] for mass, look in choice.looks), Fraction(0))
            yield from (replace(choice, ones=ones) for ones in (mean, *rest) if 0 <= ones <= 1)


def means_are_bounded_by_means(choice: NoisyChoice) -> Comparison:
    """Mean excess risk is at most twice the largest difference of a risk and the average mean modified loss.

    So with beta = lambda, where what is added for a bias has the factor abs(beta - lambda) = 0.
    """
    return at_most(choice.excess, 2 * choice.largest_of_means)


def means_are_bounded_by_maxima(choice: NoisyChoice) -> Comparison:
    """Mean excess risk is at most twice the average of the largest difference of a risk and mean modified loss."""
    return at_most(choice.excess, 2 * choice.mean_of_largest)


def means_are_bounded_by_half_of_maxima(choice: NoisyChoice) -> Comparison:
    """Mean excess risk is at most the average of the largest difference of a risk and mean modified loss."""
    return at_most(choice.excess, choice.mean_of_largest)


CLAIMS = (
    Claim(
        paper="E22",
        number="Theorem 2",
        hypothesis="any class of hypotheses and population, gamma of at most 1/2",
        instances=_responses,
        printed=responses_are_learned_from,
        false=responses_are_learned_from_like_labels,
        quantifier=CONSTANT,
    ),
    Claim(
        paper="E22",
        number="Theorem 2",
        part="equation 22",
        hypothesis="beta = lambda; means over noise in whole rows, given labels and noisy labels",
        instances=_noisy_choices,
        printed=means_are_bounded_by_means,
        corrected=means_are_bounded_by_maxima,
        false=means_are_bounded_by_half_of_maxima,
    ),
    Claim(
        paper="E22",
        number="Corollary 1",
        hypothesis="epsilon below 1, any class of hypotheses and population, gamma of at most 1/2",
        instances=_low_budgets,
        printed=responses_are_learned_from_at_epsilon,
        false=responses_are_learned_from_at_root_epsilon,
        quantifier=CONSTANT,
    ),
)
