"""The prior that is estimated with noise, its privacy and its error ([B23], Algorithm 4 and Appendix C)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

import numpy as np

from optrand.sampling.entropy import SeededEntropy
from optrand.sampling.priors import private_prior
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most

__all__ = ["CLAIMS", "Neighbours", "neighbours"]

RUNS = 60
"""How often the noise is drawn."""

STANDARD_ERRORS = 5


@dataclass(frozen=True)
class Neighbours:
    """Counts, and the two labels between which one person moves."""

    counts: tuple[int, ...]
    source: int
    target: int

    def __str__(self) -> str:
        return f"counts {', '.join(map(str, self.counts))}, one label changes from place {self.source} to {self.target}"

    @property
    def moved(self) -> list[int]:
        """The other counts."""
        return [count + (i == self.target) - (i == self.source) for i, count in enumerate(self.counts)]

    @property
    def distance(self) -> Fraction:
        """The most that the absolute deviations from the counts, summed, can differ at one noisy histogram.

        They are straight between the two counts and constant beyond them: a count, its neighbour, and one place beyond
        either are enough to find the most.
        """
        most = Fraction(0)
        for a, b in zip(self.counts, self.moved, strict=True):
            places = [Fraction(place, 2) for place in range(2 * min(a, b) - 2, 2 * max(a, b) + 3)]
            most += max(abs(place - b) - abs(place - a) for place in places)
        return most


def neighbours(budget: Budget) -> Iterator[Neighbours]:
    """Two counts, then random ones."""
    yield Neighbours((1, 0), 0, 1)
    random = Random(71)  # noqa: S311
    for _ in range(budget.pick(quick=100, full=2_000)):
        k = random.randint(2, 8)
        counts = [random.randint(0, 50) for _ in range(k)]
        source, target = random.sample(range(k), 2)
        counts[source] += 1
        yield Neighbours(tuple(counts), source, target)


def noise_of_scale_two_is_enough(neighbours: Neighbours) -> Comparison:
    """Laplace noise of scale 2 / epsilon makes the histogram epsilon-DP: logarithms of densities differ by epsilon."""
    return at_most(neighbours.distance / 2, 1)


def noise_of_scale_one_is_enough(neighbours: Neighbours) -> Comparison:
    """Laplace noise of scale 1 / epsilon makes the histogram epsilon-DP."""
    return at_most(neighbours.distance, 1)


@dataclass(frozen=True)
class _Estimated:
    """Counts, and a budget for their prior."""

    counts: tuple[int, ...]
    epsilon: float

    def __str__(self) -> str:
        return f"counts {', '.join(map(str, self.counts))}, epsilon_1 = {self.epsilon:g}, {RUNS} seeded runs"

    @cached_property
    def distances(self) -> tuple[float, float]:
        """The mean total variation over runs, and its standard error."""
        true = np.array(self.counts) / sum(self.counts)
        source = SeededEntropy(7)
        runs = [private_prior(self.counts, self.epsilon, source=source).probabilities for _ in range(RUNS)]
        found = np.abs(np.array(runs) - true).sum(axis=1) / 2
        return float(found.mean()), float(found.std(ddof=1) / math.sqrt(RUNS))

    @property
    def expected_noise(self) -> float:
        """Of all counts together, over `n`: ``E|x| = 1 / sinh(epsilon / 2)`` of discrete Laplace noise."""
        return len(self.counts) / (math.sinh(self.epsilon / 2) * sum(self.counts))


def _estimated(budget: Budget) -> Iterator[_Estimated]:
    for n in budget.pick(quick=(400, 10_000), full=(400, 2_000, 10_000, 100_000)):
        for k in budget.pick(quick=(2, 5), full=(2, 5, 20)):
            counts = tuple(n // 2 if i == 0 else n // (2 * (k - 1)) for i in range(k))
            yield from (_Estimated(counts, math.sqrt(k / n) * 2**power) for power in range(-1, 4))


def the_error_is_small(estimated: _Estimated) -> Comparison:
    """The estimate is near: on average within 2 k / (n epsilon_1) in total variation, 2 sqrt(k / n) at sqrt(k / n)."""
    mean, error = estimated.distances
    bound = 2 * len(estimated.counts) / (estimated.epsilon * sum(estimated.counts))
    return at_most(mean - STANDARD_ERRORS * error, min(bound, estimated.expected_noise))


def the_error_is_smaller(estimated: _Estimated) -> Comparison:
    """The estimate is on average within k / (4 n epsilon_1) in total variation."""
    mean, error = estimated.distances
    bound = len(estimated.counts) / (4 * estimated.epsilon * sum(estimated.counts))
    return at_most(mean - STANDARD_ERRORS * error, bound)


CLAIMS = (
    Claim(
        paper="B23",
        number="Algorithm 4",
        part="privacy",
        hypothesis="two histograms that differ in one label",
        instances=neighbours,
        printed=noise_of_scale_two_is_enough,
        false=noise_of_scale_one_is_enough,
    ),
    Claim(
        paper="B23",
        number="Appendix C",
        part="error",
        hypothesis="discrete noise in place of the continuous one",
        instances=_estimated,
        printed=the_error_is_small,
        false=the_error_is_smaller,
        quantifier="the paper says small and names no distance: the one tried is ours",
    ),
)
