"""How far mean losses are from risks ([E22]_, Lemma 7).

The constant in these bounds has no name, and the dimension is `log N / log(1 / alpha)` for the covering number `N` at a
scale `alpha` that is not said. Classes are tried whose deviations have known laws.

References
----------
.. [E22] Esfandiari et al., *Label differential privacy via clustering*, 2022.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy.stats import binom, kstwo

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.e22.contests import most_lost

__all__ = ["CLAIMS", "CONSTANT", "Response", "deviation", "responses"]

TOLERANCE = 1e-9
"""Of quantiles and roots in floats."""

GAMMAS = (0.5, 0.05, 1e-4)

CONSTANT = "an unnamed constant, over all classes of hypotheses and populations"


@dataclass(frozen=True)
class _Thresholds:
    """One number an example, all different, its label 0, and every threshold of numbers as a hypothesis."""

    size: int
    gamma: float

    @cached_property
    def deviation(self) -> float:
        """What the largest difference of mean loss and risk exceeds with probability `gamma` (Kolmogorov, Smirnov)."""
        return float(kstwo.ppf(1 - self.gamma, self.size))

    def __str__(self) -> str:
        return f"n = {self.size}, gamma = {self.gamma}"


def _thresholds(budget: Budget) -> Iterator[_Thresholds]:
    sizes = (1, 2, 5, 20, 100, 1_000, *budget.pick(quick=(), full=(10_000, 100_000)))
    return (_Thresholds(size, gamma) for size in sizes for gamma in GAMMAS)


def thresholds_deviate_like_roots(thresholds: _Thresholds) -> Comparison:
    """With probability 1 - gamma, mean losses and risks differ by at most C K / (1 - beta) sqrt(dim log(1/gamma) / n).

    Tried without noise (K = 2, beta = lambda = 0) on thresholds of a number, at a dimension of 1, C = 1 and gamma of at
    most 1/2.
    """
    return at_most(thresholds.deviation, 2 * math.sqrt(_rate(thresholds)))


def thresholds_deviate_faster(thresholds: _Thresholds) -> Comparison:
    """The same without the root."""
    return at_most(thresholds.deviation, 2 * _rate(thresholds))


def _rate(thresholds: _Thresholds) -> float:
    return math.log(1 / thresholds.gamma) / thresholds.size


@dataclass(frozen=True)
class Response:
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
    def deviation(self) -> float:
        """How far the mean modified loss of one hypothesis, which always says 0, is off; labels are fair coins."""
        return deviation(self.size, 0.5, self.gamma) / (1 - self.beta)

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


def deviation(size: int, ones: float, gamma: float) -> float:
    """The least distance that the share of ones among so many coins keeps from its mean with probability 1 - gamma.

    Examples
    --------
    >>> deviation(1, 0.5, 0.1), deviation(2, 0.5, 0.6)
    (0.5, 0.0)
    """
    counts = np.arange(size + 1)
    distances = np.abs(counts / size - ones)
    order = np.argsort(distances, kind="stable")
    kept = np.cumsum(binom.pmf(counts, size, ones)[order]) >= (1 - gamma) * (1 - TOLERANCE)
    return float(distances[order][np.argmax(kept)])


def responses(budget: Budget) -> Iterator[Response]:
    """Samples of one row and up, with more and more noise."""
    sizes = (1, 2, 5, 20, 100, 1_000, 10_000, *budget.pick(quick=(), full=(100_000,)))
    return (Response(*case) for case in product(sizes, (0.5, 0.9, 0.99), GAMMAS))


def one_hypothesis_does_not_deviate(response: Response) -> Comparison:
    """The bound of Lemma 7 for a class of one hypothesis: its dimension is log(1) = 0, so C does not count."""
    return at_most(response.deviation, 0)


def one_hypothesis_deviates(response: Response) -> Comparison:
    """For one hypothesis: at most C K / (1 - beta) sqrt((dim + log(2/gamma)) / n), with C = 1 and a dimension of 0."""
    return at_most(response.deviation, 2 / (1 - response.beta) * _coin_rate(response), tolerance=TOLERANCE)


def one_hypothesis_deviates_without_noise(response: Response) -> Comparison:
    """For one hypothesis: at most C K sqrt((dim + log(2/gamma)) / n), with C = 1 and a dimension of 0."""
    return at_most(response.deviation, 2 * _coin_rate(response), tolerance=TOLERANCE)


def _coin_rate(response: Response) -> float:
    return math.sqrt(math.log(2 / response.gamma) / response.size)


@dataclass(frozen=True)
class _Scaled:
    """The mean of fair coins times `b`: one function with `b`-bounded differences."""

    size: int
    b: int
    gamma: float

    @cached_property
    def deviation(self) -> float:
        """What it keeps to its mean with probability ``1 - gamma``."""
        return self.b * deviation(self.size, 0.5, self.gamma)

    def __str__(self) -> str:
        return f"b = {self.b}, n = {self.size}, gamma = {self.gamma}"


def _scaled(budget: Budget) -> Iterator[_Scaled]:
    cases = product((1, 2, 10, 100, *budget.pick(quick=(), full=(10_000,))), (1, 10, 100), (*GAMMAS, 0.9))
    return (_Scaled(n, b, gamma) for n, b, gamma in cases)


def differences_count_by_their_root(scaled: _Scaled) -> Comparison:
    """One function of b-bounded differences deviates by at most sqrt(b log(1/gamma) / n) (equation 12)."""
    return at_most(scaled.deviation, math.sqrt(scaled.b * math.log(1 / scaled.gamma) / scaled.size))


def differences_count_in_full(scaled: _Scaled) -> Comparison:
    """One function of b-bounded differences deviates, either way, by at most b sqrt(log(2/gamma) / (2 n))."""
    root = math.sqrt(math.log(2 / scaled.gamma) / (2 * scaled.size))
    return at_most(scaled.deviation, scaled.b * root, tolerance=TOLERANCE)


def differences_count_by_half(scaled: _Scaled) -> Comparison:
    """One function of b-bounded differences deviates, either way, by at most half of that."""
    root = math.sqrt(math.log(2 / scaled.gamma) / (2 * scaled.size))
    return at_most(scaled.deviation, scaled.b / 2 * root, tolerance=TOLERANCE)


CLAIMS = (
    Claim(
        paper="E22",
        number="Lemma 7",
        hypothesis="any class of hypotheses and population",
        instances=_thresholds,
        printed=thresholds_deviate_like_roots,
        false=thresholds_deviate_faster,
        quantifier=CONSTANT,
    ),
    Claim(
        paper="E22",
        number="Lemma 7",
        part="one hypothesis",
        hypothesis="a class of one hypothesis, two labels by uniform response",
        instances=responses,
        printed=one_hypothesis_does_not_deviate,
        corrected=one_hypothesis_deviates,
        false=one_hypothesis_deviates_without_noise,
    ),
    Claim(
        paper="E22",
        number="Lemma 7",
        part="equation 12",
        hypothesis="one function, whose Rademacher complexity is 0",
        instances=_scaled,
        printed=differences_count_by_their_root,
        corrected=differences_count_in_full,
        false=differences_count_by_half,
    ),
)
