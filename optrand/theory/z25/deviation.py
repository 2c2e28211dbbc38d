"""How far the outputs of nearest neighbours are from the means of bits, over all classes ([Z25], eq. 36).

Two families in which the probability of a large error can be computed: labels that are all the same, with any number of
classes, whose bits are independent; and two classes whose probabilities change along a line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optrand.base.validation import Floats
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.z25.bit_sums import bit_sums

__all__ = ["CLAIMS", "Constant", "Slope"]

NODES = 200
"""Of the integral over the distance of the `k`-th neighbour, which is smooth."""

ROUNDING = 1e-9
"""What floats are forgiven, and how much an error must be above a bound to count: ties count as errors."""


@dataclass(frozen=True)
class Constant:
    """Labels that are all the same, among `classes`; `k` neighbours.

    The features do not matter: all neighbours are alike.
    """

    classes: int
    k: int
    epsilon: float
    delta: float

    @property
    def bias(self) -> float:
        """What the bound allows for neighbours being elsewhere."""
        return 0.0

    def exceeds(self, allowed: float) -> float:
        """The probability that some class has a larger error: the bits of different classes are independent."""
        right = 1 / (1 + math.exp(-self.epsilon / 2))
        off = np.abs(np.arange(self.k + 1) / self.k - right) > allowed * (1 - ROUNDING)
        one = min(1.0, float(bit_sums(np.full(self.k, right))[off].sum()))
        return 1.0 if one == 1 else -math.expm1(self.classes * math.log1p(-one))

    def __str__(self) -> str:
        return f"K = {self.classes}, all of one label, k = {self.k}, epsilon = {self.epsilon}, delta = {self.delta}"


@dataclass(frozen=True)
class Slope:
    """Features uniform on [0, 1], seen from 0; two classes, the first of probability ``1/2 + slope * x``."""

    size: int
    k: int
    slope: float
    epsilon: float
    delta: float

    @property
    def classes(self) -> int:
        """Two."""
        return 2

    @property
    def bias(self) -> float:
        """The ``(r - 1) / (r + 1) L r_0`` of the bound: the ball of mass ``2 k / N`` ends at just that."""
        return math.tanh(self.epsilon / 4) * self.slope * 2 * self.k / self.size

    def exceeds(self, allowed: float) -> float:
        """The probability that one of the two classes has a larger error.

        Given how many of the neighbours are of the first class, the outputs are independent. Given the distance of the
        last neighbour, all others are uniform up to it.
        """
        right = 1 / (1 + math.exp(-self.epsilon / 2))
        centre = math.tanh(self.epsilon / 4) / 2
        error = 0.0
        for firsts, chance in enumerate(self._firsts()):
            near = 1.0
            for own in (firsts, self.k - firsts):
                ones = bit_sums(np.repeat([right, 1 - right], [own, self.k - own]))
                middle = 1 - right + centre
                near *= float(ones[np.abs(np.arange(self.k + 1) / self.k - middle) <= allowed * (1 - ROUNDING)].sum())
            error += float(chance) * (1 - near)
        return error

    def _firsts(self) -> Floats:
        """The probability of each number of neighbours of the first class."""
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        last = (nodes + 1) / 2
        order = math.comb(self.size, self.k) * self.k
        density = order * last ** (self.k - 1) * (1 - last) ** (self.size - self.k)
        total = np.zeros(self.k + 1)
        for x, weight in zip(last, weights / 2 * density, strict=True):
            firsts = np.full(self.k, 0.5 + self.slope * x / 2)
            firsts[-1] = 0.5 + self.slope * x
            total += weight * bit_sums(firsts)
        return total

    def __str__(self) -> str:
        return (
            f"N = {self.size}, k = {self.k}, eta_1(x) = 1/2 + {self.slope} x at x = 0, epsilon = {self.epsilon}, "
            f"delta = {self.delta}"
        )


def _instances(budget: Budget) -> Iterator[Constant | Slope]:
    for delta in (0.5, 0.1, 0.01):
        for k in (1, 2, 5, 30, 100):
            for classes in (2, 10, 1_000, 1_000_000):
                for epsilon in (1.0, 0.1, 4.0):
                    yield Constant(classes, k, epsilon, delta)
    for size, k in budget.pick(
        quick=((10, 5), (40, 10), (100, 20)), full=((10, 5), (40, 10), (100, 20), (200, 30), (300, 100))
    ):
        for slope in (0.5, 0.1):
            for epsilon in (1.0, 4.0):
                for delta in (0.5, 0.1):
                    yield Slope(size, k, slope, epsilon, delta)


def outputs_are_near_for_all_classes(found: Constant | Slope) -> Comparison:
    """The largest error is at most ``sqrt(ln(2 K / delta) / (2 k)) + (r - 1) / (r + 1) L r_0``, but for a small chance.

    The chance is ``delta + exp(-(1 - ln 2) k)``; ``r_0`` is where the ball of mass ``2 k / N`` ends.
    """
    return _as_often(found, 2 * found.classes / found.delta)


def outputs_are_near_class_by_class(found: Constant | Slope) -> Comparison:
    """The same with ``ln(2 / delta)``: without a union over the classes."""
    return _as_often(found, 2 / found.delta)


def _as_often(found: Constant | Slope, odds: float) -> Comparison:
    allowed = math.sqrt(math.log(odds) / (2 * found.k)) + found.bias
    return at_most(found.exceeds(allowed), found.delta + math.exp((math.log(2) - 1) * found.k), tolerance=ROUNDING)


CLAIMS = (
    Claim(
        paper="Z25",
        number="Equation 36",
        hypothesis="probabilities that are Lipschitz, features with a density, N at least 2 k",
        instances=_instances,
        printed=outputs_are_near_for_all_classes,
        false=outputs_are_near_class_by_class,
    ),
)
