"""Nearest neighbours learn the means of bits: each step of the bound, and the bound ([Z25], eqs. 33 to 36)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from random import Random

import numpy as np

from optrand.base.arithmetic import exp_bracket, log_bracket
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.instances import listed
from optrand.theory.z25.bit_sums import bit_sums
from optrand.theory.z25.bits import bit_mean, gain

__all__ = ["CLAIMS"]


@dataclass(frozen=True)
class Neighbours:
    """The neighbours of a point on the line, one class, and its bits.

    Attributes
    ----------
    distances : tuple of Fraction
        From the point, on one side of it.
    here : Fraction
        The probability of the class at the point itself.
    there : tuple of Fraction
        That at the neighbours.
    bits : tuple of int
        One for each neighbour.
    odds : Fraction
        ``exp(epsilon / 2)``.
    """

    distances: tuple[Fraction, ...]
    here: Fraction
    there: tuple[Fraction, ...]
    bits: tuple[int, ...]
    odds: Fraction

    @property
    def k(self) -> int:
        """The number of neighbours."""
        return len(self.bits)

    @property
    def output(self) -> Fraction:
        """The mean of the bits."""
        return Fraction(sum(self.bits), self.k)

    @property
    def noise(self) -> Fraction:
        """How far the mean of the bits is from that of their own means."""
        return abs(self.output - sum((bit_mean(p, self.odds) for p in self.there), Fraction(0)) / self.k)

    @property
    def slope(self) -> Fraction:
        """The least Lipschitz constant that the probabilities admit."""
        known = [(Fraction(0), self.here), *zip(self.distances, self.there, strict=True)]
        return max(abs(p - q) / (b - a) for a, p in known for b, q in known if a < b)

    def __str__(self) -> str:
        return (
            f"exp(epsilon/2) = {self.odds}; eta = {self.here} at 0, {listed(self.there)} at {listed(self.distances)}; "
            f"bits {self.bits}"
        )


def _neighbours(budget: Budget) -> Iterator[Neighbours]:
    one = (Fraction(1),)
    for sure, bit in product(map(Fraction, (1, 0)), (0, 1)):
        for odds in (Fraction(2), Fraction(11, 10), Fraction(50)):
            yield Neighbours(one, sure, one, (bit,), odds)
    random = Random(33)  # noqa: S311
    for _ in range(budget.pick(quick=400, full=10_000)):
        k = random.randint(1, 6)
        distances = tuple(Fraction(d, 10) for d in sorted(random.sample(range(1, 20), k)))
        here, *there = (Fraction(random.randint(0, 12), 12) for _ in range(k + 1))
        bits = tuple(random.randint(0, 1) for _ in range(k))
        yield Neighbours(distances, here, tuple(there), bits, 1 + Fraction(random.randint(1, 60), 10))


def outputs_are_near_the_mean_of_bits(found: Neighbours) -> Comparison:
    """The output is within noise plus ``(r - 1) / (r + 1) L rho`` of the mean of a bit of its class.

    ``rho`` is the distance of the farthest neighbour, ``L`` the Lipschitz constant, ``r = exp(epsilon / 2)``; noise is
    how far the bits are from their own means, on average. The left side has lost a tilde in print: it is read as in
    the next step, where the mean of the bit is written out.
    """
    return at_most(abs(found.output - bit_mean(found.here, found.odds)), _reach(found, max(found.distances)))


def outputs_are_nearer(found: Neighbours) -> Comparison:
    """The same with the distance of the nearest neighbour."""
    return at_most(abs(found.output - bit_mean(found.here, found.odds)), _reach(found, min(found.distances)))


def _reach(found: Neighbours, distance: Fraction) -> Fraction:
    return found.noise + gain(found.odds) * found.slope * distance


@dataclass(frozen=True)
class Coins:
    """Means of independent bits, and how often their average may be far off.

    Attributes
    ----------
    means : tuple of Fraction
    allowed : Fraction
        The probability ``delta / K``.
    """

    means: tuple[Fraction, ...]
    allowed: Fraction

    @cached_property
    def chances(self) -> list[Fraction]:
        """The probability of each number of ones."""
        known: list[Fraction] = bit_sums(np.array(self.means, dtype=object)).tolist()
        return known

    def beyond(self, logarithm: Fraction) -> Fraction:
        """The probability that the average is farther from its mean than ``sqrt(logarithm / (2 k))``."""
        k, expected = len(self.means), sum(self.means, Fraction(0))
        far = (chance for ones, chance in enumerate(self.chances) if 2 * (ones - expected) ** 2 > k * logarithm)
        return sum(far, Fraction(0))

    def __str__(self) -> str:
        return f"means {listed(self.means)}, delta / K = {self.allowed}"


def _coins(budget: Budget) -> Iterator[Coins]:
    random = Random(34)  # noqa: S311
    for k in range(1, budget.pick(quick=9, full=21)):
        for odds in (Fraction(2), Fraction(11, 10)):
            fair = (Fraction(1, 2),) * k
            mixed = tuple(bit_mean(Fraction(random.randint(0, 6), 6), odds) for _ in range(k))
            for means in (fair, (bit_mean(Fraction(1), odds),) * k, mixed):
                yield from (Coins(means, allowed) for allowed in _barely_allowed(means))


def _barely_allowed(means: tuple[Fraction, ...]) -> Iterator[Fraction]:
    """Probabilities just above those at which Hoeffding's inequality, in both forms, counts one more number of ones."""
    expected = sum(means, Fraction(0))
    for ones in range(len(means) + 1):
        tail = exp_bracket(-2 * float((ones - expected) ** 2) / len(means))[1]
        for allowed in (2 * tail * Fraction(1001, 1000), tail * Fraction(1001, 1000)):
            if allowed <= Fraction(1, 2):
                yield allowed.limit_denominator(10**9)


def averages_of_bits_are_near(coins: Coins) -> Comparison:
    """An average of `k` bits is more than ``sqrt(ln(2 K / delta) / (2 k))`` off with probability at most ``delta / K``.

    The exact probability, the logarithm rounded so that no event is left out.
    """
    return at_most(coins.beyond(log_bracket(2 / coins.allowed)[0]), coins.allowed)


def averages_of_bits_are_nearer(coins: Coins) -> Comparison:
    """The same with ``ln(K / delta)``: as if the average were off to one side alone."""
    return at_most(coins.beyond(log_bracket(1 / coins.allowed)[0]), coins.allowed)


@dataclass(frozen=True)
class Sample:
    """`N` records, of which each is in the ball of mass ``2 k / N`` with that probability."""

    k: int
    size: int

    @cached_property
    def short(self) -> Fraction:
        """The probability that fewer than `k` records are in the ball."""
        mass = Fraction(2 * self.k, self.size)
        return sum(
            (math.comb(self.size, n) * mass**n * (1 - mass) ** (self.size - n) for n in range(self.k)), Fraction(0)
        )

    def __str__(self) -> str:
        return f"k = {self.k}, N = {self.size}"


def _samples(budget: Budget) -> Iterator[Sample]:
    for k in budget.pick(quick=(1, 2, 3, 5, 10, 20, 40), full=(1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 60, 80)):
        for times in (2, 3, 5, 10):
            yield Sample(k, k * times)


def neighbours_are_in_the_ball(sample: Sample) -> Comparison:
    """The `k`-th neighbour is outside of the ball of mass ``2 k / N`` with probability at most ``exp(-(1 - ln 2) k)``.

    That is, fewer than `k` of `N` records are inside: a binomial probability.
    """
    return at_most(sample.short, 2**sample.k * exp_bracket(-float(sample.k))[0])


def neighbours_are_surely_in_the_ball(sample: Sample) -> Comparison:
    """The same with ``exp(-k / 2)``."""
    return at_most(sample.short, exp_bracket(-sample.k / 2)[0])


CLAIMS = (
    Claim(
        paper="Z25",
        number="Equation 33",
        hypothesis="probabilities that are Lipschitz, neighbours on the line",
        instances=_neighbours,
        printed=outputs_are_near_the_mean_of_bits,
        false=outputs_are_nearer,
    ),
    Claim(
        paper="Z25",
        number="Equation 34",
        hypothesis="independent bits",
        instances=_coins,
        printed=averages_of_bits_are_near,
        false=averages_of_bits_are_nearer,
    ),
    Claim(
        paper="Z25",
        number="Equation 35",
        hypothesis="features with a density, N at least 2 k: for smaller N there is no such ball",
        instances=_samples,
        printed=neighbours_are_in_the_ball,
        false=neighbours_are_surely_in_the_ball,
    ),
)
