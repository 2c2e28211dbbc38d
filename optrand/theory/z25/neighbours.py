"""Nearest neighbours learn the means of bits: each step of the bound, and rates ([Z25], eqs. 33 to 36, Appendix C.1).

Rates are not decided, for constants have no names: checked is how they come about, and the trend of exact excess risks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import chain, pairwise, product

import numpy as np
from scipy.optimize import minimize_scalar

from optrand.base.arithmetic import exp_bracket, log_bracket
from optrand.base.validation import Floats
from optrand.baselines import UnaryBits
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import Instance, seeded
from optrand.theory.sums import binomials, bit_sums, total
from optrand.theory.z25.bits import bit_mean, gain

__all__ = ["Coins", "Constant", "Growth", "Neighbours", "Records", "Sample", "Scale", "Slope", "Ties", "Votes"]

MIDDLES = (np.arange(100) + 0.5) / 100  # Where the excess risk is computed.


class Neighbours(Instance, here="eta at 0", there="at the neighbours", odds="exp(epsilon/2)"):
    """The neighbours of a point on the line, the probability of one class at all of them, and its bits."""

    distances: tuple[Fraction, ...]
    here: Fraction
    there: tuple[Fraction, ...]
    bits: tuple[int, ...]
    odds: Fraction


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
    "Z25 Equation 33",
    on=_neighbours,
    given="probabilities that are Lipschitz, neighbours on the line",
    sides=("distance of the output", "bound"),
    corrected=Variant("The output is within as much of the mean of a bit of its class: a tilde is lost.", tilde=True),
    false=Variant(
        "The same of the mean of a bit, with the distance of the nearest neighbour.", tilde=True, nearest=True
    ),
)
def outputs_are_near(found: Neighbours, *, tilde: bool = False, nearest: bool = False) -> Comparison:
    """The output is within noise plus ``(r - 1) / (r + 1) L rho`` of the probability of its class.

    ``rho`` is the distance of the farthest neighbour, ``L`` the Lipschitz constant, ``r = exp(epsilon / 2)``; noise is
    how far the bits are from their own means, on average.
    """
    output = Fraction(sum(found.bits), len(found.bits))
    noise = abs(output - total(bit_mean(p, found.odds) for p in found.there) / len(found.bits))
    known = [(Fraction(0), found.here), *zip(found.distances, found.there, strict=True)]
    slope = max(abs(p - q) / (b - a) for a, p in known for b, q in known if a < b)
    centre = bit_mean(found.here, found.odds) if tilde else found.here
    rho = min(found.distances) if nearest else max(found.distances)
    return at_most(abs(output - centre), noise + gain(found.odds) * slope * rho)


class Coins(Instance, allowed="delta / K"):
    """Means of independent bits, and how often their average may be far off."""

    means: tuple[Fraction, ...]
    allowed: Fraction

    def beyond(self, logarithm: Fraction) -> Fraction:
        """The probability that the average is farther from its mean than ``sqrt(logarithm / (2 k))``."""
        k, expected, chances = len(self.means), sum(self.means), bit_sums(np.array(self.means, dtype=object))
        return total(chance for n, chance in enumerate(chances) if 2 * (n - expected) ** 2 > k * logarithm)


def _coins(budget: Budget) -> Iterator[Coins]:
    """Probabilities just above those at which Hoeffding's inequality, in both forms, counts one more number of ones."""
    random = seeded(34)
    for k, odds in product(range(1, budget.pick(quick=9, full=21)), (Fraction(2), Fraction(11, 10))):
        mixed = tuple(bit_mean(Fraction(random.randint(0, 6), 6), odds) for _ in range(k))
        for means in ((Fraction(1, 2),) * k, (bit_mean(Fraction(1), odds),) * k, mixed):
            for ones in range(k + 1):
                tail = exp_bracket(-2 * float((ones - sum(means)) ** 2) / k)[1] * Fraction(1001, 1000)
                tails = (each.limit_denominator(10**9) for each in (2 * tail, tail) if each <= Fraction(1, 2))
                yield from (Coins(means, each) for each in tails)


@claim(
    "Z25 Equation 34",
    on=_coins,
    given="independent bits",
    sides=("probability of a larger deviation", "delta / K"),
    false=Variant("The same with ``ln(K / delta)``: as if the average were off to one side alone.", sides=1),
)
def averages_of_bits_are_near(coins: Coins, sides: int = 2) -> Comparison:
    """An average of `k` bits is more than ``sqrt(ln(2 K / delta) / (2 k))`` off with probability at most ``delta / K``.

    So it is exactly: the logarithm is rounded so that no event is left out.
    """
    return at_most(coins.beyond(log_bracket(sides / coins.allowed)[0]), coins.allowed)


class Sample(Instance, size="N"):
    """`N` records, of which each is in the ball of mass ``2 k / N`` with that probability."""

    k: int
    size: int


def _samples(budget: Budget) -> Iterator[Sample]:
    sizes = budget.pick(quick=(1, 2, 3, 5, 10, 20, 40), full=(1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 60, 80))
    yield from (Sample(k, k * times) for k in sizes for times in (2, 3, 5, 10))


@claim(
    "Z25 Equation 35",
    on=_samples,
    given="features with a density, N at least 2 k: for smaller N there is no such ball",
    sides=("probability that the neighbour is outside", "bound"),
    false=Variant("The same with ``exp(-k / 2)``.", halved=True),
)
def neighbours_are_in_the_ball(sample: Sample, *, halved: bool = False) -> Comparison:
    """The `k`-th neighbour is outside of the ball of mass ``2 k / N`` with probability at most ``exp(-(1 - ln 2) k)``.

    That is, fewer than `k` of `N` records are inside.
    """
    k, n, mass = sample.k, sample.size, Fraction(2 * sample.k, sample.size)
    allowed = exp_bracket(-k / 2)[0] if halved else 2**k * exp_bracket(-float(k))[0]
    return at_most(total(math.comb(n, i) * mass**i * (1 - mass) ** (n - i) for i in range(k)), allowed)


class Constant(Instance, classes="K"):
    """Labels that are all the same, among `classes`; whatever the features, all `k` neighbours are alike."""

    classes: int
    k: int
    epsilon: float
    delta: float
    size, slope = 1, 0.0

    def exceeds(self, allowed: float) -> float:
        """The probability that some class has such an error, or a larger one: bits of classes are independent."""
        right = float(1 - UnaryBits(self.classes, self.epsilon).flip)
        off = np.abs(np.arange(self.k + 1) / self.k - right) > allowed * (1 - 1e-9)
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

    def exceeds(self, allowed: float) -> float:
        """The probability that a class has such an error, or a larger one; neighbours are uniform up to the last."""
        k, flip = self.k, float(UnaryBits(2, self.epsilon).flip)
        near = np.abs(np.arange(k + 1) / k - 0.5) <= allowed * (1 - 1e-9)
        one = [bit_sums(np.repeat([1 - flip, flip], [own, k - own]))[near].sum() for own in range(k + 1)]
        nodes, weights = np.polynomial.legendre.leggauss(200)
        last = (nodes + 1) / 2
        density = math.comb(self.size, k) * k * last ** (k - 1) * (1 - last) ** (self.size - k)
        firsts = bit_sums(0.5 + self.slope * np.outer(last, [0.5] * (k - 1) + [1]))
        return float((weights / 2 * density @ firsts) @ (1 - np.array(one) * one[::-1]))


def _deviations(budget: Budget) -> Iterator[Constant | Slope]:
    for delta, k, classes in product((0.5, 0.1, 0.01), (1, 2, 5, 30, 100), (2, 10, 1_000, 1_000_000)):
        yield from (Constant(classes, k, epsilon, delta) for epsilon in (1.0, 0.1, 4.0))
    sizes = [(10, 5), (40, 10), (100, 20), *budget.pick(quick=[], full=[(200, 30), (300, 100)])]
    for (size, k), slope, epsilon, delta in product(sizes, (0.5, 0.1), (1.0, 4.0), (0.5, 0.1)):
        yield Slope(size, k, slope, epsilon, delta)


@claim(
    "Z25 Equation 36",
    on=_deviations,
    given="probabilities that are Lipschitz, features with a density, N at least 2 k",
    sides=("probability of a larger error", "delta + exp(-(1 - ln 2) k)"),
    false=Variant("The same with ``ln(2 / delta)``: without a union over the classes.", union=False),
)
def outputs_are_near_for_all_classes(found: Constant | Slope, *, union: bool = True) -> Comparison:
    """The largest error is at most ``sqrt(ln(2 K / delta) / (2 k)) + (r - 1) / (r + 1) L r_0``, but for a small chance.

    The chance is ``delta + exp(-(1 - ln 2) k)``; ``r_0`` is where the ball of mass ``2 k / N`` ends.
    """
    odds = 2 * (found.classes if union else 1) / found.delta
    bias = math.tanh(found.epsilon / 4) * found.slope * 2 * found.k / found.size
    exceeds = found.exceeds(math.sqrt(math.log(odds) / (2 * found.k)) + bias)
    return at_most(exceeds, found.delta + math.exp((math.log(2) - 1) * found.k), tolerance=1e-9)


class Scale(Instance, dimension="d", size="N"):
    """What remains of eq. 36: ``k**(-1/2) + epsilon r_0``, constants and logarithms left out."""

    dimension: int
    size: float
    epsilon: float

    def best(self, *, shrinking: int) -> tuple[float, float]:
        """The `k` of least error, and that error, if ``r_0`` is ``epsilon**shrinking (k / N)**(1/d)``."""

        def error(logarithm: float) -> float:
            radius = math.exp((logarithm - math.log(self.size)) / self.dimension)
            return math.exp(-logarithm / 2) + self.epsilon ** (1 + shrinking) * radius

        bounds = (-50.0, math.log(self.size) + 50)  # Of the logarithm of k, in which the error is convex.
        found = minimize_scalar(error, bounds=bounds, method="bounded", options={"xatol": 1e-9, "maxiter": 1_000})
        return math.exp(found.x), found.fun


def _scales(budget: Budget) -> Iterator[Scale]:
    dimensions = budget.pick(quick=(1, 2, 5), full=(1, 2, 3, 4, 5, 10, 50))
    yield from (Scale(*each) for each in product(dimensions, (1e2, 1e4, 1e8), (1.0, 0.5, 0.1, 0.01)))


@claim(
    "Z25 Appendix C.1: best k",
    on=_scales,
    given="epsilon at most 1; the bound without constants and logarithms, any real k",
    sides=("best k, or the error over epsilon", "its order, with one constant a dimension"),
    corrected=Variant("The same since ``r_0`` is of the order ``(k / N)**(1/d)``: no ball knows epsilon.", shrinking=0),
    false=Variant("As corrected, with ``N epsilon`` for ``N epsilon**2`` in the error.", shrinking=0, power=1),
)
def errors_balance(scale: Scale, shrinking: int = 1, power: int = 2) -> Comparison:
    """Since ``r_0`` is of the order ``epsilon (k / N)**(1/d)``, the best `k` is ``epsilon**(-2d/(d+2)) N**(2/(d+2))``.

    In order, with one constant a dimension; the error is then ``epsilon`` times ``(N epsilon**2)**(-1/(d+2))``.
    """
    d, n, epsilon = scale.dimension, scale.size, scale.epsilon
    k, error = scale.best(shrinking=shrinking)
    one, least = Scale(d, 1.0, 1.0).best(shrinking=shrinking)
    return worst(
        equal(k, one * epsilon ** (-2 * d / (d + 2)) * n ** (2 / (d + 2)), tolerance=1e-6),
        equal(error / epsilon, least * (n * epsilon**power) ** (-1 / (d + 2)), tolerance=1e-6),
    )


class Records(Instance, size="N"):
    """Records evenly spread on the unit interval, with bits instead of labels."""

    size: int
    epsilon: float

    @property
    def k(self) -> int:
        """The number of neighbours in one dimension, ``(N / epsilon)**(2/3)`` as the paper has it, rounded."""
        return round(math.pow(self.size / self.epsilon, 2 / 3))

    def nearest(self, places: Floats) -> Floats:
        """Where the neighbours of places are, a row a place."""
        records = (np.arange(self.size) + 0.5) / self.size
        order = np.argsort(np.abs(records - places[:, np.newaxis]), axis=1, kind="stable")
        return np.take(records, np.sort(order[:, : self.k], axis=1))


class Votes(Records):
    """Records of two classes that cross in the middle, the slope twice as large right of it: distance misleads."""

    @cached_property
    def excess(self) -> float:
        """The probability of naming a class, less the least there is; equal votes are for the first class.

        Each neighbour votes ``Z(1) - Z(2)``: -1, 0 or 1. The law of the sum, of ``2 k + 1`` values, is the Fourier
        transform of a product of characteristic functions at as many points.
        """
        places, right = (MIDDLES, self.nearest(MIDDLES)), float(1 - UnaryBits(2, self.epsilon).flip)
        eta, etas = (np.clip(0.5 + np.maximum(x - 0.5, 2 * (x - 0.5)), 0, 1) for x in places)
        turn = np.exp(2j * np.pi * np.arange(2 * self.k + 1) / (2 * self.k + 1))
        transform = np.ones((eta.size, turn.size), dtype=np.complex128)
        for near in etas.T[:, :, np.newaxis]:
            rise, fall = (p * right**2 + (1 - p) * (1 - right) ** 2 for p in (near, 1 - near))
            transform *= (1 - rise - fall) + rise * turn + fall / turn
        second = np.fft.fft(transform, axis=1).real[:, self.k + 1 :].sum(axis=1) / turn.size
        return float((np.abs(2 * eta - 1) * np.where(eta >= 0.5, second, 1 - second)).mean())


class Ties(Records):
    """Records of three classes, the first two of probability ``min(1/3 + x, 1/2)`` each: all are as likely at 0."""

    @cached_property
    def excess(self) -> float:
        """The probability of naming a class, less the least there is; in case of a tie not the third.

        Computed at squares of evenly spread numbers, for it is large near 0 alone. Neighbours that are not of the third
        class toss a coin, and the outputs are independent given the number of neighbours of each class.
        """
        k, right = self.k, float(1 - UnaryBits(3, self.epsilon).flip)
        places, weights = MIDDLES**2, 2 * MIDDLES / MIDDLES.size
        own, other, halves = (binomials(k, chance) for chance in (right, 1 - right, 0.5))
        outputs = np.array([np.convolve(own[m], other[k - m]) for m in range(k + 1)])
        below = np.cumsum(outputs, axis=1) - outputs
        # The probability that the third class is named, for each number of neighbours that are of it.
        third = [outputs[m] @ (halves[k - m] @ (below[: k - m + 1] * below[k - m :: -1])) for m in range(k + 1)]
        thirds = bit_sums(1 - 2 * np.minimum(1 / 3 + self.nearest(places), 0.5)) @ np.array(third)
        return float((weights * (3 * np.minimum(1 / 3 + places, 0.5) - 1) * thirds).sum())


class Growth(Instance):
    """Two samples, and a `margin` with which the condition holds as printed: any, where two classes tie everywhere."""

    before: Votes | Ties
    after: Votes | Ties
    margin: float


def _growths(budget: Budget) -> Iterator[Growth]:
    sizes = budget.pick(quick=(256, 1_024, 4_096), full=(256, 1_024, 4_096, 16_384))
    for before, after in pairwise(Votes(size, 1.0) for size in sizes):
        yield from (Growth(before, each, margin=1) for each in (after, Votes(after.size, 0.5)))


def _ties(budget: Budget) -> Iterator[Growth]:
    sizes = budget.pick(quick=(4_096, 16_384), full=(4_096, 16_384, 65_536))
    yield from (Growth(*each, margin=2) for each in pairwise(Ties(size, 1.0) for size in sizes))


TWO_CLASSES = "records evenly spread on [0, 1]; two classes, eta_1 = x up to 1/2, then min(2 x - 1/2, 1)"


@claim(
    "Z25 Appendix C.1: rate",
    on=_growths,
    given=TWO_CLASSES,
    sides=("excess risk after, scaled up by the rate", "excess risk before"),
    false=Variant("The same with ``N epsilon`` in place of ``N epsilon**2``.", square=1),
    quantifier="a constant without a name, logarithms left out, all distributions",
)
def excess_falls(growth: Growth, power: float = 1 / 3, square: int = 2) -> Comparison:
    """The excess risk falls as ``(N epsilon**2)**(-1/(d+2))``."""
    before, after = growth.before, growth.after
    times = after.size / before.size * (after.epsilon / before.epsilon) ** square
    return at_most(after.excess * times**power, before.excess, tolerance=0.05)  # Numbers of neighbours are whole.


@claim(
    "Z25 Appendix C.1: rate with a margin",
    on=lambda budget: chain(_growths(budget), _ties(budget)),
    given=f"{TWO_CLASSES}; or three classes, eta_1 = eta_2 = min(1/3 + x, 1/2)",
    sides=("excess risk after, scaled up by the rate", "excess risk before"),
    corrected=Variant(
        "The same where the gap is that to the likeliest class that is not itself best.", excess_falls, power=2 / 3
    ),
    false=Variant("The same with the power of ``gamma = 2``.", excess_falls, power=1.0),
    quantifier="constants without a name, all distributions with such a margin",
)
def excess_falls_with_the_margin(growth: Growth) -> Comparison:
    """Where gaps above 0 and below `t` have a probability of the order of ``t**gamma``, excess risk falls faster.

    Namely as ``(N epsilon**2)**(-(1 + gamma)/(d+2))``; the gap is that between the two likeliest classes.
    """
    return excess_falls(growth, power=(1 + growth.margin) / 3)
