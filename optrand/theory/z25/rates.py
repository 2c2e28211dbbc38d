"""How fast nearest neighbours learn from bits ([Z25], Appendix C.1).

The rates have constants without names and leave out logarithms, so they are not decided here. What is checked is how
they come about, and the trend, on samples whose excess risk can be computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.z25.ties import Ties
from optrand.theory.z25.votes import Votes

__all__ = ["CLAIMS"]

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

    What remains of eq. 36 is ``k**(-1/2) + epsilon r_0``, constants and logarithms left out: ``(r - 1) / (r + 1)`` is
    of the order of ``epsilon`` up to epsilon 1.
    """

    dimension: int
    size: float
    epsilon: float

    def error(self, k: float, *, shrinking: int) -> float:
        """What remains of the bound, if the radius is of the order ``epsilon**shrinking (k / N)**(1/d)``."""
        return float(k**-0.5 + self.epsilon ** (1 + shrinking) * (k / self.size) ** (1 / self.dimension))

    def best(self, *, shrinking: int) -> tuple[float, float]:
        """The number of neighbours of least error, and that error: in the logarithm of `k` it is convex."""
        low, high = -50.0, math.log(self.size) + 50
        for _ in range(SEARCH_STEPS):
            third = (high - low) / 3
            left, right = (self.error(math.exp(at), shrinking=shrinking) for at in (low + third, high - third))
            low, high = (low, high - third) if left < right else (low + third, high)
        k = math.exp((low + high) / 2)
        return k, self.error(k, shrinking=shrinking)

    def __str__(self) -> str:
        return f"d = {self.dimension}, N = {self.size:g}, epsilon = {self.epsilon}"


def _scales(budget: Budget) -> Iterator[Scale]:
    for dimension in budget.pick(quick=(1, 2, 5), full=(1, 2, 3, 4, 5, 10, 50)):
        for size in (1e2, 1e4, 1e8):
            for epsilon in (1.0, 0.5, 0.1, 0.01):
                yield Scale(dimension, size, epsilon)


def errors_balance_in_a_shrinking_ball(scale: Scale) -> Comparison:
    """Since ``r_0`` is of the order ``epsilon (k / N)**(1/d)``, the best `k` is ``epsilon**(-2d/(d+2)) N**(2/(d+2))``.

    In order; the error is then ``epsilon`` times ``(N epsilon**2)**(-1/(d+2))``. Compared with a search.
    """
    return _balanced(scale, records=scale.size * scale.epsilon**2, shrinking=1)


def errors_balance(scale: Scale) -> Comparison:
    """Since ``r_0`` is of the order ``(k / N)**(1/d)``, the best `k` is ``epsilon**(-2d/(d+2)) N**(2/(d+2))``.

    In order; the error is then ``epsilon`` times ``(N epsilon**2)**(-1/(d+2))``. The ball of mass ``2 k / N`` knows
    nothing of epsilon. Compared with a search: both orders are exact, with one constant for each dimension.
    """
    return _balanced(scale, records=scale.size * scale.epsilon**2, shrinking=0)


def errors_balance_at_other_sizes(scale: Scale) -> Comparison:
    """The same with ``N epsilon`` in place of ``N epsilon**2`` in the error."""
    return _balanced(scale, records=scale.size * scale.epsilon, shrinking=0)


def _balanced(scale: Scale, *, records: float, shrinking: int) -> Comparison:
    d = scale.dimension
    k, error = scale.best(shrinking=shrinking)
    one, least = replace(scale, size=1.0, epsilon=1.0).best(shrinking=shrinking)
    return worst(
        equal(k, one * scale.epsilon ** (-2 * d / (d + 2)) * scale.size ** (2 / (d + 2)), tolerance=SEARCH),
        equal(error / scale.epsilon, least * records ** (-1 / (d + 2)), tolerance=SEARCH),
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


def _growths_and_ties(budget: Budget) -> Iterator[Growth]:
    yield from _growths(budget)
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


TWO_CLASSES = "records evenly spread on [0, 1]; two classes, eta_1 = x up to 1/2, then min(2 x - 1/2, 1)"

CLAIMS = (
    Claim(
        paper="Z25",
        number="Appendix C.1",
        part="best k",
        hypothesis="epsilon at most 1; the bound without constants and logarithms, any real k",
        instances=_scales,
        printed=errors_balance_in_a_shrinking_ball,
        corrected=errors_balance,
        false=errors_balance_at_other_sizes,
    ),
    Claim(
        paper="Z25",
        number="Appendix C.1",
        part="rate",
        hypothesis=TWO_CLASSES,
        instances=_growths,
        printed=excess_falls,
        false=excess_falls_as_the_number_of_records,
        quantifier="a constant without a name, logarithms left out, all distributions",
    ),
    Claim(
        paper="Z25",
        number="Appendix C.1",
        part="rate with a margin",
        hypothesis=f"{TWO_CLASSES}; or three classes, eta_1 = eta_2 = min(1/3 + x, 1/2)",
        instances=_growths_and_ties,
        printed=excess_falls_with_the_margin,
        corrected=excess_falls_with_the_margin_to_other_classes,
        false=excess_falls_with_a_larger_margin,
        quantifier="constants without a name, all distributions with such a margin",
    ),
)
