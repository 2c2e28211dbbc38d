"""How fast nearest neighbours learn from bits ([Z25]_, Appendix C.1).

The rates have constants without names and leave out logarithms, so they are not decided here. What is checked is how
they come about, and the trend, on samples whose excess risk can be computed.

References
----------
.. [Z25] Zhao et al., *Enhancing Learning with Label Local Differential Privacy by Vector Approximation*, 2025.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.z25.ties import Ties
from optrand.theory.z25.votes import Votes

__all__ = ["CLAIMS"]

SMALL_EPSILON = 0.02
"""How far ``(r - 1) / (r + 1)`` is from ``epsilon / 4``, as a share, up to epsilon 1."""

SEARCH = 1e-6
"""What a search for the best number of neighbours is forgiven: the bound is flat there."""

TREND = 0.05
"""What a trend is forgiven, for numbers of neighbours are whole numbers."""

SEARCH_STEPS = 100

SIZES = (256, 1_024, 4_096, 16_384, 65_536)
"""Numbers of records."""


@dataclass(frozen=True)
class Scale:
    """A dimension, a number of records and a budget.

    What remains of eq. 36 is ``k**(-1/2) + epsilon (k / N)**(1/d)``, constants and logarithms left out.
    """

    dimension: int
    size: float
    epsilon: float

    def error(self, k: float) -> float:
        """What remains of the bound."""
        return float(k**-0.5 + self.epsilon * (k / self.size) ** (1 / self.dimension))

    @cached_property
    def best(self) -> float:
        """The number of neighbours of least error: in the logarithm of `k` it is convex."""
        low, high = -50.0, math.log(self.size) + 50
        for _ in range(SEARCH_STEPS):
            third = (high - low) / 3
            if self.error(math.exp(low + third)) < self.error(math.exp(high - third)):
                high -= third
            else:
                low += third
        return math.exp((low + high) / 2)

    def radius(self, k: float) -> float:
        """Where the ball of mass ``2 k / N`` ends: uniform features in a cube, its middle, the largest coordinate."""
        return float((2 * k / self.size) ** (1 / self.dimension) / 2)

    def bias(self, k: float) -> float:
        """The second summand of eq. 36 at Lipschitz constant 1."""
        return math.tanh(self.epsilon / 4) * self.radius(k)

    def __str__(self) -> str:
        return f"d = {self.dimension}, N = {self.size:g}, epsilon = {self.epsilon}"


def _scales(budget: Budget) -> Iterator[Scale]:
    for dimension in budget.pick(quick=(1, 2, 5), full=(1, 2, 3, 4, 5, 10, 50)):
        for size in (1e2, 1e4, 1e8):
            for epsilon in (1.0, 0.5, 0.1, 0.01):
                yield Scale(dimension, size, epsilon)


def the_radius_shrinks_with_epsilon(scale: Scale) -> Comparison:
    """The radius ``r_0`` is of the order ``epsilon (k / N)**(1/d)``: at half of epsilon it is half as large."""
    half = replace(scale, epsilon=scale.epsilon / 2)
    return equal(half.radius(10) / scale.radius(10), 0.5, tolerance=SMALL_EPSILON)


def the_bias_shrinks_with_epsilon(scale: Scale) -> Comparison:
    """The second summand of eq. 36 is of the order ``epsilon (k / N)**(1/d)``: at half of epsilon it is half as large.

    The radius, of the order ``(k / N)**(1/d)``, knows nothing of epsilon.
    """
    half = replace(scale, epsilon=scale.epsilon / 2)
    return equal(half.bias(10) / scale.bias(10), 0.5, tolerance=SMALL_EPSILON)


def the_bias_shrinks_with_the_square_of_epsilon(scale: Scale) -> Comparison:
    """The same with a quarter, as it would be if the radius did shrink."""
    half = replace(scale, epsilon=scale.epsilon / 2)
    return equal(half.bias(10) / scale.bias(10), 0.25, tolerance=SMALL_EPSILON)


def errors_balance(scale: Scale) -> Comparison:
    """The best `k` is of the order ``epsilon**(-2d/(d+2)) N**(2/(d+2))``, and the error follows.

    The error over epsilon is then of the order ``(N epsilon**2)**(-1/(d+2))``. Compared with a search: both orders are
    exact, with one constant for each dimension.
    """
    return _balanced(scale, records=scale.size * scale.epsilon**2)


def errors_balance_at_other_sizes(scale: Scale) -> Comparison:
    """The same with ``N epsilon`` in place of ``N epsilon**2`` in the error."""
    return _balanced(scale, records=scale.size * scale.epsilon)


def _balanced(scale: Scale, *, records: float) -> Comparison:
    d, one = scale.dimension, replace(scale, size=1.0, epsilon=1.0)
    best = scale.epsilon ** (-2 * d / (d + 2)) * scale.size ** (2 / (d + 2))
    return worst(
        equal(scale.best, one.best * best, tolerance=SEARCH),
        equal(
            scale.error(scale.best) / scale.epsilon, one.error(one.best) * records ** (-1 / (d + 2)), tolerance=SEARCH
        ),
    )


@dataclass(frozen=True)
class Growth:
    """Two samples, the second of more records or another budget; both with the paper's number of neighbours.

    Attributes
    ----------
    before, after : Votes or Ties
    margin : float
        A ``gamma`` with which the margin condition holds as it is printed: where two classes tie everywhere, any does.
    """

    before: Votes | Ties
    after: Votes | Ties
    margin: float

    @property
    def times(self) -> float:
        """How much ``N epsilon**2`` grows."""
        return self.after.size * self.after.epsilon**2 / (self.before.size * self.before.epsilon**2)

    def falls(self, power: float) -> Comparison:
        """Whether the excess risk falls with that power of ``N epsilon**2``."""
        return at_most(self.after.excess * self.times**power, self.before.excess, tolerance=TREND)

    def __str__(self) -> str:
        return f"{self.before}, then {self.after}"


def _growths(budget: Budget) -> Iterator[Growth]:
    for before, after in pairwise(Votes(size, 1.0) for size in budget.pick(quick=SIZES[:3], full=SIZES[:4])):
        yield Growth(before, after, margin=1)
        yield Growth(before, Votes(after.size, 0.5), margin=1)
    for many, more in pairwise(Ties(size, 1.0) for size in budget.pick(quick=SIZES[2:4], full=SIZES[2:])):
        yield Growth(many, more, margin=2)


def excess_falls(growth: Growth) -> Comparison:
    """The excess risk falls as ``(N epsilon**2)**(-1/(d+2))``."""
    return growth.falls(1 / 3)


def excess_falls_as_the_number_of_records(growth: Growth) -> Comparison:
    """The same with ``1 / (N epsilon**2)``."""
    return growth.falls(1.0)


def excess_falls_with_the_margin(growth: Growth) -> Comparison:
    """Where gaps above 0 and below `t` have a probability of the order of ``t**gamma``, excess risk falls faster.

    Namely as ``(N epsilon**2)**(-(1 + gamma)/(d+2))``; the gap is that between the two likeliest classes.
    """
    return growth.falls((1 + growth.margin) / 3)


def excess_falls_with_the_margin_to_other_classes(growth: Growth) -> Comparison:
    """The same where the gap is that to the likeliest class that is not itself best.

    In all these samples such gaps are below `t` with a probability of the order of `t`: ``gamma = 1``.
    """
    return growth.falls(2 / 3)


def excess_falls_with_a_larger_margin(growth: Growth) -> Comparison:
    """The same with the power of ``gamma = 2``."""
    return growth.falls(1.0)


RATE_NEEDS = (
    "two classes, one feature, records evenly spread, probabilities with a kink where the classes are as likely"
)

CLAIMS = (
    Claim(
        paper="Z25",
        number="Appendix C.1",
        part="radius",
        hypothesis="a density bounded away from zero, epsilon at most 1",
        instances=_scales,
        printed=the_radius_shrinks_with_epsilon,
        corrected=the_bias_shrinks_with_epsilon,
        false=the_bias_shrinks_with_the_square_of_epsilon,
    ),
    Claim(
        paper="Z25",
        number="Appendix C.1",
        part="best k",
        hypothesis="the bound without constants and logarithms, any real k",
        instances=_scales,
        printed=errors_balance,
        false=errors_balance_at_other_sizes,
    ),
    Claim(
        paper="Z25",
        number="Appendix C.1",
        part="rate",
        hypothesis=RATE_NEEDS,
        instances=_growths,
        printed=excess_falls,
        false=excess_falls_as_the_number_of_records,
        quantifier="a constant without a name, logarithms left out, all distributions",
    ),
    Claim(
        paper="Z25",
        number="Appendix C.1",
        part="rate with a margin",
        hypothesis=RATE_NEEDS,
        instances=_growths,
        printed=excess_falls_with_the_margin,
        corrected=excess_falls_with_the_margin_to_other_classes,
        false=excess_falls_with_a_larger_margin,
        quantifier="constants without a name, all distributions with such a margin",
    ),
)
