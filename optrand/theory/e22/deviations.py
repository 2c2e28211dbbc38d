"""How far mean losses are from risks ([E22], Lemma 7).

The constant in these bounds has no name, and the dimension is `log N / log(1 / alpha)` for the covering number `N` at a
scale `alpha` that is not said. Classes are tried whose deviations have known laws.
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

__all__ = ["CLAIMS", "CONSTANT", "GAMMAS", "deviation"]

TOLERANCE = 1e-9
"""Of quantiles and roots in floats."""

GAMMAS = (0.5, 0.05, 1e-4)
"""None near 1, where `log(1/gamma)` tends to 0 and `log(2/gamma)` has to stand for it."""

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
    cases = product((1, 2, 10, 100, *budget.pick(quick=(), full=(10_000,))), (1, 10, 100), GAMMAS)
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
        hypothesis="any class of hypotheses and population, gamma of at most 1/2",
        instances=_thresholds,
        printed=thresholds_deviate_like_roots,
        false=thresholds_deviate_faster,
        quantifier=CONSTANT,
    ),
    Claim(
        paper="E22",
        number="Lemma 7",
        part="equation 12",
        hypothesis="one function, whose Rademacher complexity is 0; gamma of at most 1/2",
        instances=_scaled,
        printed=differences_count_by_their_root,
        corrected=differences_count_in_full,
        false=differences_count_by_half,
    ),
)
