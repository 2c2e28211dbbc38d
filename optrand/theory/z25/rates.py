"""Rates of nearest neighbours that learn from bits, in one dimension without a draw ([Z25], Appendix C.1).

The rates have constants without names and leave out logarithms, so they are not decided here. What is checked is how
they come about, and the trend, on samples whose excess risk can be computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import pairwise, product

import numpy as np
from scipy.optimize import minimize_scalar

from optrand.base.validation import Floats
from optrand.baselines import UnaryBits
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import Instance
from optrand.theory.sums import binomials, bit_sums

__all__ = ["Growth", "Records", "Scale", "Ties", "Votes"]

SEARCH = 1e-6
"""What a search for the best number of neighbours is forgiven: the bound is flat there."""

TREND = 0.05
"""What a trend is forgiven, for numbers of neighbours are whole numbers."""

SIZES = (256, 1_024, 4_096, 16_384, 65_536)
"""Numbers of records."""

MIDDLES = (np.arange(100) + 0.5) / 100
"""Where the excess risk is computed: in the middle of a hundred parts of the unit interval."""


class Scale(Instance, dimension="d", size="N"):
    """A dimension, a number of records and a budget.

    What remains of eq. 36 is ``k**(-1/2) + epsilon r_0``, constants and logarithms left out: ``(r - 1) / (r + 1)`` is
    of the order of ``epsilon`` up to epsilon 1.
    """

    dimension: int
    size: float
    epsilon: float

    def best(self, *, shrinking: int) -> tuple[float, float]:
        """The number of neighbours of least error, and that error: in the logarithm of `k` it is convex.

        The radius is of the order ``epsilon**shrinking (k / N)**(1/d)``.
        """

        def error(logarithm: float) -> float:
            radius = math.exp((logarithm - math.log(self.size)) / self.dimension)
            return math.exp(-logarithm / 2) + self.epsilon ** (1 + shrinking) * radius

        bounds = (-50.0, math.log(self.size) + 50)
        found = minimize_scalar(error, bounds=bounds, method="bounded", options={"xatol": 1e-9, "maxiter": 1_000})
        return math.exp(found.x), found.fun


def _scales(budget: Budget) -> Iterator[Scale]:
    dimensions = budget.pick(quick=(1, 2, 5), full=(1, 2, 3, 4, 5, 10, 50))
    yield from (Scale(*each) for each in product(dimensions, (1e2, 1e4, 1e8), (1.0, 0.5, 0.1, 0.01)))


@claim(
    "Z25",
    "Appendix C.1: best k",
    on=_scales,
    given="epsilon at most 1; the bound without constants and logarithms, any real k",
    corrected=Variant("The same since ``r_0`` is of the order ``(k / N)**(1/d)``: no ball knows epsilon.", shrinking=0),
    false=Variant("As corrected, with ``N epsilon`` for ``N epsilon**2`` in the error.", shrinking=0, power=1),
)
def errors_balance(scale: Scale, shrinking: int = 1, power: int = 2) -> Comparison:
    """Since ``r_0`` is of the order ``epsilon (k / N)**(1/d)``, the best `k` is ``epsilon**(-2d/(d+2)) N**(2/(d+2))``.

    In order; the error is then ``epsilon`` times ``(N epsilon**2)**(-1/(d+2))``. Compared with a search, with one
    constant for each dimension.
    """
    d, epsilon = scale.dimension, scale.epsilon
    k, error = scale.best(shrinking=shrinking)
    one, least = replace(scale, size=1.0, epsilon=1.0).best(shrinking=shrinking)
    return worst(
        equal(k, one * epsilon ** (-2 * d / (d + 2)) * scale.size ** (2 / (d + 2)), tolerance=SEARCH),
        equal(error / epsilon, least * (scale.size * epsilon**power) ** (-1 / (d + 2)), tolerance=SEARCH),
    )


class Records(Instance, size="N"):
    """Records evenly spread on the unit interval, with bits instead of labels."""

    size: int
    epsilon: float

    @property
    def k(self) -> int:
        """The number of neighbours in one dimension, ``(N / epsilon)**(2/3)`` as the paper has it, rounded."""
        return round(math.pow(self.size / self.epsilon, 2 / 3))

    @cached_property
    def right(self) -> float:
        """The probability that a bit is right."""
        return float(1 - UnaryBits(3, self.epsilon).flip)

    def nearest(self, places: Floats) -> Floats:
        """Where the neighbours of places are, a row a place."""
        records = (np.arange(self.size) + 0.5) / self.size
        order = np.argsort(np.abs(records - places[:, np.newaxis]), axis=1, kind="stable")
        found: Floats = records[np.sort(order[:, : self.k], axis=1)]
        return found


class Votes(Records):
    """Records of two classes that cross in the middle, the slope twice as large right of it: distance misleads."""

    @cached_property
    def excess(self) -> float:
        """The probability of naming a class, less the least there is; equal votes are for the first class.

        Each neighbour votes ``Z(1) - Z(2)``, which is -1, 0 or 1. The law of the sum is the Fourier transform of a
        product of characteristic functions, taken at ``2 k + 1`` points: exact, as the sum has so many values.

        Examples
        --------
        >>> votes = Votes(256, 1.0)
        >>> votes.k, round(votes.excess, 4)
        (40, 0.0437)
        """
        eta, turn = _firsts(MIDDLES), np.exp(2j * np.pi * np.arange(2 * self.k + 1) / (2 * self.k + 1))
        transform = np.ones((eta.size, turn.size), dtype=np.complex128)
        for near in _firsts(self.nearest(MIDDLES)).T[:, :, np.newaxis]:
            rise, fall = (p * self.right**2 + (1 - p) * (1 - self.right) ** 2 for p in (near, 1 - near))
            transform *= (1 - rise - fall) + rise * turn + fall / turn
        second = np.fft.fft(transform, axis=1).real[:, self.k + 1 :].sum(axis=1) / turn.size
        return float((np.abs(2 * eta - 1) * np.where(eta >= 0.5, second, 1 - second)).mean())


def _firsts(places: Floats) -> Floats:
    steps = places - 0.5
    return np.clip(0.5 + np.where(steps > 0, 2.0, 1.0) * steps, 0, 1)


class Ties(Records):
    """Records of three classes, the first two of probability ``min(1/3 + x, 1/2)`` each: all are as likely at 0."""

    @cached_property
    def excess(self) -> float:
        """The probability of naming a class, less the least there is; in case of a tie not the third.

        Computed at squares of evenly spread numbers, for it is large near 0 alone. Given how many neighbours are of the
        third class, the others are of the first or the second by the toss of a coin, and the three outputs are
        independent given the three numbers.

        Examples
        --------
        >>> ties = Ties(256, 1.0)
        >>> ties.k, round(ties.excess, 4)
        (40, 0.0185)
        """
        places, weights = MIDDLES**2, 2 * MIDDLES / MIDDLES.size
        thirds = bit_sums(1 - 2 * np.minimum(1 / 3 + self.nearest(places), 0.5))
        return float((weights * (3 * np.minimum(1 / 3 + places, 0.5) - 1) * (thirds @ self._third)).sum())

    @property
    def _third(self) -> Floats:
        """The probability that the third class is named, for each number of neighbours that are of it."""
        k = self.k
        own, other, halves = (binomials(k, chance) for chance in (self.right, 1 - self.right, 0.5))
        outputs = np.array([np.convolve(own[m], other[k - m]) for m in range(k + 1)])
        below = np.cumsum(outputs, axis=1) - outputs
        return np.array(
            [outputs[m] @ (halves[k - m] @ (below[: k - m + 1] * below[k - m :: -1])) for m in range(k + 1)]
        )


class Growth(Instance):
    """Two samples, the second of more records or another budget; both with the paper's number of neighbours.

    The margin condition holds as it is printed with this `margin`: where two classes tie everywhere, with any.
    """

    before: Votes | Ties
    after: Votes | Ties
    margin: float


def _growths(budget: Budget) -> Iterator[Growth]:
    for before, after in pairwise(Votes(size, 1.0) for size in budget.pick(quick=SIZES[:3], full=SIZES[:4])):
        yield Growth(before, after, margin=1)
        yield Growth(before, Votes(after.size, 0.5), margin=1)


def _growths_and_ties(budget: Budget) -> Iterator[Growth]:
    yield from _growths(budget)
    for many, more in pairwise(Ties(size, 1.0) for size in budget.pick(quick=SIZES[2:4], full=SIZES[2:])):
        yield Growth(many, more, margin=2)


TWO_CLASSES = "records evenly spread on [0, 1]; two classes, eta_1 = x up to 1/2, then min(2 x - 1/2, 1)"


@claim(
    "Z25",
    "Appendix C.1: rate",
    on=_growths,
    given=TWO_CLASSES,
    false=Variant("The same with ``N epsilon`` in place of ``N epsilon**2``.", square=1),
    quantifier="a constant without a name, logarithms left out, all distributions",
)
def excess_falls(growth: Growth, power: float = 1 / 3, square: int = 2) -> Comparison:
    """The excess risk falls as ``(N epsilon**2)**(-1/(d+2))``."""
    before, after = growth.before, growth.after
    times = after.size / before.size * (after.epsilon / before.epsilon) ** square
    return at_most(after.excess * times**power, before.excess, tolerance=TREND)


@claim(
    "Z25",
    "Appendix C.1: rate with a margin",
    on=_growths_and_ties,
    given=f"{TWO_CLASSES}; or three classes, eta_1 = eta_2 = min(1/3 + x, 1/2)",
    false=Variant("The same with the power of ``gamma = 2``.", lambda growth: excess_falls(growth, power=1.0)),
    quantifier="constants without a name, all distributions with such a margin",
)
def excess_falls_with_the_margin(growth: Growth) -> Comparison:
    """Where gaps above 0 and below `t` have a probability of the order of ``t**gamma``, excess risk falls faster.

    Namely as ``(N epsilon**2)**(-(1 + gamma)/(d+2))``; the gap is that between the two likeliest classes.
    """
    return excess_falls(growth, power=(1 + growth.margin) / 3)


@excess_falls_with_the_margin.corrected
def _(growth: Growth) -> Comparison:
    """The same where the gap is that to the likeliest class that is not itself best.

    In all these samples such gaps are below `t` with a probability of the order of `t`: ``gamma = 1``.
    """
    return excess_falls(growth, power=2 / 3)
