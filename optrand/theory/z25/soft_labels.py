"""ALIBI's soft labels: Bayes' rule, and what rivals of the truth do to it ([Z25], eqs. 29 and 30)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from random import Random

from optrand.baselines import Alibi
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import listed

__all__ = ["CLAIMS"]

ROUNDING = 1e-12
"""What floats are forgiven."""


@dataclass(frozen=True)
class Noisy:
    """A noisy vector.

    Attributes
    ----------
    coordinates : tuple of Fraction
        The one-hot vector plus noise; the first class is the true one.
    epsilon : float
        The noise has scale ``2 / epsilon``.
    """

    coordinates: tuple[Fraction, ...]
    epsilon: float

    @property
    def k(self) -> int:
        """The number of classes."""
        return len(self.coordinates)

    @cached_property
    def soft(self) -> list[float]:
        """The soft label, as the package computes it."""
        numbers: list[float] = Alibi(self.k, self.epsilon).soft_labels(list(map(float, self.coordinates))).tolist()
        return numbers

    @cached_property
    def fits(self) -> tuple[Fraction, ...]:
        """For each class, minus the distance from its one-hot vector: the paper's ``f``, in ``O(K^2)``."""
        return tuple(
            -sum((abs(o - (j == c)) for j, o in enumerate(self.coordinates)), Fraction(0)) for c in range(self.k)
        )

    def at_least_the_truth(self, numbers: tuple[Fraction, ...]) -> int:
        """How many of the other classes have a number that is not below that of the first one."""
        return sum(number >= numbers[0] for number in numbers[1:])

    def __str__(self) -> str:
        return f"o = {listed(self.coordinates)}, epsilon = {self.epsilon}"


def _noisy(budget: Budget) -> Iterator[Noisy]:
    levels = tuple(map(Fraction, ("0", "1", "2", "-1", "1/2")))
    for k in (2, 3):
        for coordinates in product(levels, repeat=k):
            for epsilon in (1.0, 1e-6, 100.0):
                yield Noisy(coordinates, epsilon)
    random = Random(29)  # noqa: S311
    for _ in range(budget.pick(quick=300, full=10_000)):
        coordinates = tuple(Fraction(random.randint(-30, 40), 10) for _ in range(random.randint(2, 12)))
        yield Noisy(coordinates, random.choice((0.1, 1.0, 4.0, 20.0)))


def soft_labels_are_posteriors(noisy: Noisy) -> Comparison:
    """Under a uniform prior the probability of class ``c``, given its noisy vector, is a softmax of ``f(c) / lambda``.

    ``f(c)`` is minus the distance of the noisy vector from the one-hot vector of ``c``. Compared with Bayes' rule on
    densities of single coordinates, and with the package, which takes a time linear in the number of classes.
    """
    return _are_posteriors(noisy, noisy.fits)


def the_noisy_vector_is_enough(noisy: Noisy) -> Comparison:
    """The same with twice the noisy coordinate in place of ``f``: right where all of them are between 0 and 1."""
    return _are_posteriors(noisy, tuple(2 * o for o in noisy.coordinates))


def _are_posteriors(noisy: Noisy, scores: tuple[Fraction, ...]) -> Comparison:
    scale = 2 / noisy.epsilon
    densities = [
        math.prod(math.exp(-abs(o - (j == c)) / scale) / (2 * scale) for j, o in enumerate(noisy.coordinates))
        for c in range(noisy.k)
    ]
    exponentials = [math.exp((score - max(scores)) / scale) for score in scores]
    return worst(
        *(
            equal(density / sum(densities), share, tolerance=ROUNDING, scale=1)
            for density, exponential, soft in zip(densities, exponentials, noisy.soft, strict=True)
            for share in (exponential / sum(exponentials), soft)
        )
    )


def truth_has_rivals(noisy: Noisy) -> Comparison:
    """The soft label of the truth is at most one over the number of other classes that fit as well.

    And that is at most one over the number of other classes whose noisy coordinate is as high. Both without dividing,
    for there may be none.
    """
    fit, high = noisy.at_least_the_truth(noisy.fits), noisy.at_least_the_truth(noisy.coordinates)
    return worst(at_most(noisy.soft[0] * fit, 1, tolerance=ROUNDING), at_most(high, fit))


def whoever_fits_is_high(noisy: Noisy) -> Comparison:
    """The same, the second step the other way round: who fits as well is as high."""
    fit, high = noisy.at_least_the_truth(noisy.fits), noisy.at_least_the_truth(noisy.coordinates)
    return worst(at_most(noisy.soft[0] * fit, 1, tolerance=ROUNDING), at_most(fit, high))


CLAIMS = (
    Claim(
        paper="Z25",
        number="Equation 29",
        hypothesis="a uniform prior",
        instances=_noisy,
        printed=soft_labels_are_posteriors,
        false=the_noisy_vector_is_enough,
    ),
    Claim(
        paper="Z25",
        number="Equation 30",
        hypothesis="a uniform prior, any noisy vector; one over none is infinite",
        instances=_noisy,
        printed=truth_has_rivals,
        false=whoever_fits_is_high,
    ),
)
