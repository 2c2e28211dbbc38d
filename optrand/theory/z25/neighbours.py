"""Nearest neighbours learn the means of bits: each step of the bound, and the bound ([Z25], eqs. 33 to 36)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from optrand.base.arithmetic import exp_bracket, log_bracket
from optrand.base.validation import Floats
from optrand.baselines import UnaryBits
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.instances import Instance, seeded
from optrand.theory.sums import bit_sums, total
from optrand.theory.z25.bits import bit_mean, gain

__all__ = ["Coins", "Constant", "Neighbours", "Sample", "Slope"]

ROUNDING = 1e-9
"""What floats are forgiven, and how much an error must be above a bound to count: ties count as errors."""


class Neighbours(Instance, here="eta at 0", there="at the neighbours", odds="exp(epsilon/2)"):
    """The neighbours of a point on the line, the probability of one class at all of them, and its bits."""

    distances: tuple[Fraction, ...]
    here: Fraction
    there: tuple[Fraction, ...]
    bits: tuple[int, ...]
    odds: Fraction

    @property
    def output(self) -> Fraction:
        """The mean of the bits."""
        return Fraction(sum(self.bits), len(self.bits))

    @property
    def noise(self) -> Fraction:
        """Distance of the mean of the bits from that of their own means."""
        return abs(self.output - total(bit_mean(p, self.odds) for p in self.there) / len(self.bits))

    @property
    def slope(self) -> Fraction:
        """The least Lipschitz constant that the probabilities admit."""
        known = [(Fraction(0), self.here), *zip(self.distances, self.there, strict=True)]
        return max(abs(p - q) / (b - a) for a, p in known for b, q in known if a < b)


def _neighbours(budget: Budget) -> Iterator[Neighbours]:
    one = (Fraction(1),)
    for sure, bit, odds in product(map(Fraction, (1, 0)), (0, 1), map(Fraction, ("2", "11/10", "50"))):
        yield Neighbours(one, sure, one, (bit,), odds)
    random = seeded(33)
    for _ in range(budget.pick(quick=400, full=10_000)):
        k = random.randint(1, 6)
        distances = tuple(Fraction(d, 10) for d in sorted(random.sample(range(1, 20), k)))
        here, *there = (Fraction(random.randint(0, 12), 12) for _ in range(k + 1))
        bits = tuple(random.randint(0, 1) for _ in range(k))
        yield Neighbours(distances, here, tuple(there), bits, 1 + Fraction(random.randint(1, 60), 10))


@claim(
    "Z25",
    "Equation 33",
    on=_neighbours,
    given="probabilities that are Lipschitz, neighbours on the line",
    corrected=Variant("The output is within as much of the mean of a bit of its class: a tilde is lost.", tilde=True),
    false=Variant("The same of the mean of a bit, with the distance of the nearest neighbour.", tilde=True, rho=min),
)
def outputs_are_near(
    found: Neighbours, *, tilde: bool = False, rho: Callable[[Iterable[Fraction]], Fraction] = max
) -> Comparison:
    """The output is within noise plus ``(r - 1) / (r + 1) L rho`` of the probability of its class.

    ``rho`` is the distance of the farthest neighbour, ``L`` the Lipschitz constant, ``r = exp(epsilon / 2)``; noise is
    how far the bits are from their own means, on average.
    """
    centre = bit_mean(found.here, found.odds) if tilde else found.here
    return at_most(abs(found.output - centre), found.noise + gain(found.odds) * found.slope * rho(found.distances))


class Coins(Instance, allowed="delta / K"):
    """Means of independent bits, and how often their average may be far off."""

    means: tuple[Fraction, ...]
    allowed: Fraction

    @cached_property
    def chances(self) -> list[Fraction]:
        """The probability of each number of ones."""
        return list(bit_sums(np.array(self.means, dtype=object)))

    def beyond(self, logarithm: Fraction) -> Fraction:
        """The probability that the average is farther from its mean than ``sqrt(logarithm / (2 k))``."""
        k, expected = len(self.means), sum(self.means)
        return total(chance for n, chance in enumerate(self.chances) if 2 * (n - expected) ** 2 > k * logarithm)


def _coins(budget: Budget) -> Iterator[Coins]:
    random = seeded(34)
    for k in range(1, budget.pick(quick=9, full=21)):
        for odds in (Fraction(2), Fraction(11, 10)):
            mixed = tuple(bit_mean(Fraction(random.randint(0, 6), 6), odds) for _ in range(k))
            for means in ((Fraction(1, 2),) * k, (bit_mean(Fraction(1), odds),) * k, mixed):
                yield from (Coins(means, allowed) for allowed in _barely_allowed(means))


def _barely_allowed(means: tuple[Fraction, ...]) -> Iterator[Fraction]:
    """Probabilities just above those at which Hoeffding's inequality, in both forms, counts one more number of ones."""
    for ones in range(len(means) + 1):
        tail = exp_bracket(-2 * float((ones - sum(means)) ** 2) / len(means))[1] * Fraction(1001, 1000)
        yield from (each.limit_denominator(10**9) for each in (2 * tail, tail) if each <= Fraction(1, 2))


@claim(
    "Z25",
    "Equation 34",
    on=_coins,
    given="independent bits",
    false=Variant("The same with ``ln(K / delta)``: as if the average were off to one side alone.", sides=1),
)
def averages_of_bits_are_near(coins: Coins, sides: int = 2) -> Comparison:
    """An average of `k` bits is more than ``sqrt(ln(2 K / delta) / (2 k))`` off with probability at most ``delta / K``.

    The exact probability, the logarithm rounded so that no event is left out.
    """
    return at_most(coins.beyond(log_bracket(sides / coins.allowed)[0]), coins.allowed)


class Sample(Instance, size="N"):
    """`N` records, of which each is in the ball of mass ``2 k / N`` with that probability."""

    k: int
    size: int

    @property
    def short(self) -> Fraction:
        """The probability that fewer than `k` records are in the ball."""
        mass = Fraction(2 * self.k, self.size)
        return total(math.comb(self.size, n) * mass**n * (1 - mass) ** (self.size - n) for n in range(self.k))


def _samples(budget: Budget) -> Iterator[Sample]:
    sizes = budget.pick(quick=(1, 2, 3, 5, 10, 20, 40), full=(1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 60, 80))
    yield from (Sample(k, k * times) for k in sizes for times in (2, 3, 5, 10))


@claim(
    "Z25",
    "Equation 35",
    on=_samples,
    given="features with a density, N at least 2 k: for smaller N there is no such ball",
    false=Variant("The same with ``exp(-k / 2)``.", power=lambda k: exp_bracket(-k / 2)[0]),
)
def neighbours_are_in_the_ball(
    sample: Sample, power: Callable[[int], Fraction] = lambda k: 2**k * exp_bracket(-float(k))[0]
) -> Comparison:
    """The `k`-th neighbour is outside of the ball of mass ``2 k / N`` with probability at most ``exp(-(1 - ln 2) k)``.

    That is, fewer than `k` of `N` records are inside: a binomial probability.
    """
    return at_most(sample.short, power(sample.k))


class Constant(Instance, classes="K"):
    """Labels that are all the same, among `classes`; whatever the features, all `k` neighbours are alike."""

    classes: int
    k: int
    epsilon: float
    delta: float
    bias = 0.0

    def exceeds(self, allowed: float) -> float:
        """The probability that some class has a larger error: the bits of different classes are independent."""
        right = float(1 - UnaryBits(self.classes, self.epsilon).flip)
        off = np.abs(np.arange(self.k + 1) / self.k - right) > allowed * (1 - ROUNDING)
        one = min(1.0, float(bit_sums(np.full(self.k, right))[off].sum()))
        return 1.0 if one == 1 else -math.expm1(self.classes * math.log1p(-one))


class Slope(Instance, size="N"):
    """Features uniform on [0, 1], seen from 0; two classes, the first of probability ``1/2 + slope * x``."""

    size: int
    k: int
    slope: float
    epsilon: float
    delta: float
    classes = 2

    @property
    def bias(self) -> float:
        """The ``(r - 1) / (r + 1) L r_0`` of the bound: the ball of mass ``2 k / N`` ends at just that."""
        return math.tanh(self.epsilon / 4) * self.slope * 2 * self.k / self.size

    def exceeds(self, allowed: float) -> float:
        """The probability that one of the two classes has a larger error.

        Given how many of the neighbours are of the first class, the outputs are independent. Given the distance of the
        last neighbour, all others are uniform up to it.
        """
        flip = float(UnaryBits(2, self.epsilon).flip)
        near = np.abs(np.arange(self.k + 1) / self.k - 0.5) <= allowed * (1 - ROUNDING)
        one = [bit_sums(np.repeat([1 - flip, flip], [own, self.k - own]))[near].sum() for own in range(self.k + 1)]
        return float(self._firsts() @ (1 - np.array(one) * one[::-1]))

    def _firsts(self) -> Floats:
        """The probability of each number of neighbours of the first class."""
        nodes, weights = np.polynomial.legendre.leggauss(200)
        last = (nodes + 1) / 2
        density = math.comb(self.size, self.k) * self.k * last ** (self.k - 1) * (1 - last) ** (self.size - self.k)
        firsts = 0.5 + self.slope * np.outer(last, [0.5] * (self.k - 1) + [1])
        law: Floats = weights / 2 * density @ bit_sums(firsts)
        return law


def _deviations(budget: Budget) -> Iterator[Constant | Slope]:
    for delta, k, classes in product((0.5, 0.1, 0.01), (1, 2, 5, 30, 100), (2, 10, 1_000, 1_000_000)):
        yield from (Constant(classes, k, epsilon, delta) for epsilon in (1.0, 0.1, 4.0))
    sizes = [(10, 5), (40, 10), (100, 20), *budget.pick(quick=[], full=[(200, 30), (300, 100)])]
    for (size, k), slope, epsilon, delta in product(sizes, (0.5, 0.1), (1.0, 4.0), (0.5, 0.1)):
        yield Slope(size, k, slope, epsilon, delta)


@claim(
    "Z25",
    "Equation 36",
    on=_deviations,
    given="probabilities that are Lipschitz, features with a density, N at least 2 k",
    false=Variant("The same with ``ln(2 / delta)``: without a union over the classes.", union=False),
)
def outputs_are_near_for_all_classes(found: Constant | Slope, *, union: bool = True) -> Comparison:
    """The largest error is at most ``sqrt(ln(2 K / delta) / (2 k)) + (r - 1) / (r + 1) L r_0``, but for a small chance.

    The chance is ``delta + exp(-(1 - ln 2) k)``; ``r_0`` is where the ball of mass ``2 k / N`` ends.
    """
    odds = 2 * (found.classes if union else 1) / found.delta
    exceeds = found.exceeds(math.sqrt(math.log(odds) / (2 * found.k)) + found.bias)
    return at_most(exceeds, found.delta + math.exp((math.log(2) - 1) * found.k), tolerance=ROUNDING)
