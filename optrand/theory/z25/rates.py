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
from optrand.theory.z25.votes import Votes

__all__ = ["CLAIMS"]

SMALL_EPSILON = 0.02
"""How far ``(r - 1) / (r + 1)`` is from ``epsilon / 4``, as a share, up to epsilon 1."""

SEARCH = 1e-6
"""What a search for the best number of neighbours is forgiven: the bound is flat there."""

TREND = 0.05
"""What a trend is forgiven, for numbers of neighbours are whole numbers."""

SEARCH_STEPS = 100


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
    """Two samples, the second of more records or another budget; both with the paper's number of neighbours."""

    before: Votes
    after: Votes

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
    sizes = budget.pick(quick=(256, 1_024, 4_096), full=(256, 1_024, 4_096, 16_384))
    for before, after in pairwise(Votes(size, 1.0) for size in sizes):
        yield Growth(before, after)
        yield Growth(before, Votes(after.size, 0.5))


def excess_falls(growth: Growth) -> Comparison:
    """The excess risk falls as ``(N epsilon**2)**(-1/(d+2))``."""
    return growth.falls(1 / 3)


def excess_falls_as_the_number_of_records(growth: Growth) -> Comparison:
    """The same with ``1 / (N epsilon**2)``."""
    return growth.falls(1.0)


def excess_falls_with_the_margin(growth: Growth) -> Comparison:
    """Where gaps below `t` have a probability of the order of `t`, excess risk falls as ``(N epsilon**2)**(-2/(d+2))``.

    That is the margin condition with ``gamma = 1``. Two classes: with three or more the condition must be about the gap
    to classes that are not best, see "ties".
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
        false=excess_falls_with_a_larger_margin,
        quantifier="constants without a name, all distributions with such a margin",
    ),
)
