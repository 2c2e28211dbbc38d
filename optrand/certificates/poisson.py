r"""Dual bound for Poisson log loss, in integers, with one logarithm for every place at which :math:`f` is evaluated.

With :math:`h_y` and :math:`f` as in :mod:`optrand.certificates.certificate`,

.. math:: h_y(v) = (p_y - \beta_y) v - p_y y \log v - (\alpha_y - \beta_y o)

is convex. Logarithms are rounded *up*, by less than ``WIDTH`` units: that lowers :math:`h_y`, by less than :math:`w_y`
= ``WIDTH`` units of :math:`p_y y`. Where :math:`h_y` is taken for negative on an interval outside of which it is not,
and inside of which it is at most :math:`t_y`, the sum so computed overstates :math:`f` by at most :math:`(E - 1) \sum_y
t_y`, which is subtracted.

**On a grid** the values before the minimum of :math:`h_y`, which has a closed form, and those after it are searched by
halving for the sign of the rounded :math:`h_y`. The neighbour before the first value found had a rounded, and therefore
a true :math:`h_y \geq 0`, and so have, by convexity, all further ones; from there on :math:`h_y < w_y`. So :math:`t_y =
w_y`.

**Off a grid** :math:`\beta = 0`. Beyond the largest label of positive prior no :math:`h_y` falls. Before the least one
none rises, and neither does :math:`f` before :math:`\sum_y p_y y / (E \sum_y p_y)`, where :math:`\sum_y s_y p_y (1 - y
/ v) \leq 0` for all :math:`1 \leq s_y \leq E`. Between those places the roots of each :math:`h_y` come from Newton's
method: it starts where :math:`h_y \geq 0`, and each of its tangents proves that of the whole step, which is rounded
down. So :math:`t_y` is the larger of the values at both ends. Between neighbouring roots :math:`f` is :math:`A v - Q
\log v + C`, least at :math:`Q / A` or at an end.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import mul
from typing import NamedTuple

import numpy as np

from optrand.base.arithmetic import places, scaled
from optrand.certificates.bound import assembled, excess_above, multipliers_below
from optrand.certificates.logarithms import WIDTH, Logarithms
from optrand.certificates.prices import negative_ranges
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.solution import Dual

__all__ = ["lower_bound"]

BITS = 128
"""Binary digits by which logarithms and roots are finer than one part in E."""

PUSH = 46
"""A root in floats is moved outward by ``2**-PUSH`` of itself before Newton's method starts there."""


class Curve(NamedTuple):
    """``slope v - pull log v + level``, in units of ``2**-mass``, ``2**-(mass + line)`` and ``2**-(mass + line)``."""

    slope: int
    pull: int
    level: int


@dataclass(frozen=True)
class _Scaled:
    """Problem and dual in integers.

    The `curves` are the :math:`h_y`, `logarithms` those of places in units of ``2**-line``, in units of ``2**-bits``;
    prices are in units of ``2**-digits``, ``digits = mass + line + bits``.
    """

    curves: list[Curve]
    logarithms: Logarithms
    line: int
    bits: int
    digits: int

    @classmethod
    def of(cls, problem: Problem, dual: Dual, line: int, bits: int) -> _Scaled:
        """Scale to places in units of ``2**-line``, fine enough for the labels and the origin."""
        mass = max(places(problem.prior), places(dual.beta), places(dual.alpha) - line)
        (origin,) = scaled(np.array([dual.origin]), line)
        columns = (problem.labels, line), (problem.prior, mass), (dual.alpha, mass + line), (dual.beta, mass)
        curves = [
            Curve(p - beta, p * y, beta * origin - alpha)
            for y, p, alpha, beta in zip(*(scaled(*column) for column in columns), strict=True)
        ]
        return cls(curves, Logarithms(line, bits), line, bits, mass + line + bits)

    def below(self, curve: Curve, v: int) -> int:
        """Lower bound of the curve at `v`, by less than ``WIDTH * pull``."""
        linear = (curve.slope * v + curve.level) << self.bits
        return linear - curve.pull * self.logarithms.above(v) if curve.pull else linear

    def above(self, curve: Curve, v: int) -> int:
        """Upper bound of the curve at `v`."""
        return self.below(curve, v) + WIDTH * curve.pull


def lower_bound(problem: Problem, dual: Dual) -> Fraction:
    """Bound of :mod:`optrand.certificates.certificate` for Poisson log loss.

    Multipliers must be zero where ``bias_penalty * prior`` is. Cost ``O(k log n + n)`` on a grid, with a logarithm a
    value; ``O(k log k)`` off it, and some ten logarithms a label.

    Examples
    --------
    With ``alpha = 0`` and all labels above ``e`` every reduced cost is negative near its label:

    >>> from optrand import losses
    >>> from optrand.model.problem import regression
    >>> problem = regression([1, 2], [0.5, 0.5], 1.0, loss=losses.poisson_log)
    >>> float(lower_bound(problem, Dual([0.0, 0.0], [0.0, 0.0]))) == (1.5 - 1.5 * math.log(1.5)) / math.e
    True
    """
    more, shift = excess_above(problem.epsilon)
    bits = BITS + max(0, more.bit_length() - shift)
    if isinstance(problem.outputs, Grid):
        values = problem.outputs.values
        line = max(map(places, (problem.labels, values, np.array([dual.origin]))))
        case = _Scaled.of(problem, dual, line, bits)
        least = _least_on_grid(case, scaled(values, line), (more, shift))
    else:
        case, limits = _between(problem, dual, bits, (more, shift))
        starts, ends = negative_ranges(problem, dual)
        guesses = list(zip(starts.tolist(), ends.tolist(), strict=True))
        least = _least_off_grid(case, guesses, limits, (more, shift))
    base = multipliers_below(problem, dual, case.digits)
    return assembled(base, least, problem.k, excess=(more, shift), digits=case.digits)


def _least_on_grid(case: _Scaled, points: list[int], excess: tuple[int, int]) -> int:
    """Lower bound of ``min f`` on the grid, in units of ``2**-(digits + shift)``."""
    more, shift = excess
    n, slack = len(points), 0
    steps = [[0] * (n + 1) for _ in Curve._fields]
    for curve in case.curves:
        middle = _falling(curve, points)
        first = bisect_left(range(middle), True, key=lambda i, c=curve: case.below(c, points[i]) < 0)  # type: ignore[misc]
        last = bisect_left(range(n), True, middle, key=lambda i, c=curve: case.below(c, points[i]) >= 0)  # type: ignore[misc]
        if first < last:
            slack += WIDTH * curve.pull
        for step, coefficient in zip(steps, curve, strict=True):
            step[0] += coefficient << shift
            step[first] += more * coefficient
            step[last] -= more * coefficient
    totals = zip(*(accumulate(step[:-1]) for step in steps), strict=True)
    return min(case.below(Curve(*total), v) for total, v in zip(totals, points, strict=True)) - more * slack


def _falling(curve: Curve, points: list[int]) -> int:
    """Number of points before the minimum of the curve."""
    if curve.slope > 0:
        return bisect_left(points, -(-curve.pull // curve.slope))
    return len(points) if curve.slope or curve.pull else 0


def _between(problem: Problem, dual: Dual, bits: int, excess: tuple[int, int]) -> tuple[_Scaled, tuple[int, int]]:
    """Scaled case with units that are fine where it matters, and the places between which ``f`` is least."""
    more, shift = excess
    low, high = max(problem.outputs.low, 0.0), problem.outputs.high
    ends = np.array([end for end in (low, high, dual.origin) if math.isfinite(end)])
    line, mass = max(places(problem.labels), places(ends)), places(problem.prior)
    weights, labels = scaled(problem.prior, mass), scaled(problem.labels, line)
    # The place up to which f does not rise is this quotient, in units of 2**-line.
    above, below = sum(map(mul, weights, labels)) << shift, sum(weights) * ((1 << shift) + more)
    finer = max(0, bits + 1 - (above.bit_length() - below.bit_length())) if above else 0
    charged = problem.labels[problem.prior > 0]
    first, last, bottom = scaled(np.array([charged[0], charged[-1], low]), line + finer)
    top = scaled(np.array([high]), line + finer)[0] if math.isfinite(high) else max(last, bottom)
    start = max(bottom, min(top, max(first, (above << finer) // below)))
    return _Scaled.of(problem, dual, line + finer, bits), (start, min(top, max(start, last)))


def _least_off_grid(
    case: _Scaled, guesses: list[tuple[float, float]], limits: tuple[int, int], excess: tuple[int, int]
) -> int:
    """Lower bound of ``min f`` between the limits, in units of ``2**-(digits + shift)``."""
    (start, end), (more, shift) = limits, excess
    if start == end:
        prices = (case.below(curve, start) for curve in case.curves)
        return sum((price << shift) + more * min(price, 0) for price in prices)
    totals, events, slack = [0, 0, 0], list[tuple[int, Curve]](), 0
    for curve, guess in zip(case.curves, guesses, strict=True):
        totals = [total + (coefficient << shift) for total, coefficient in zip(totals, curve, strict=True)]
        found = _negative(case, curve, guess, limits)
        if found:
            slack += max(0, *(case.above(curve, v) for v in found))
            steps = Curve(*(more * coefficient for coefficient in curve))
            events += [(found[0], steps), (found[1], Curve(*(-step for step in steps)))]
    least, left = list[int](), start
    for right, steps in [*sorted(events), (end, Curve(0, 0, 0))]:
        if left < right:
            least.append(_minimum(case, Curve(*totals), left, right))
        totals, left = [total + step for total, step in zip(totals, steps, strict=True)], right
    return min(least) - more * slack


def _negative(
    case: _Scaled, curve: Curve, guess: tuple[float, float], limits: tuple[int, int]
) -> tuple[int, int] | None:
    """Range between the limits outside of which the curve is not negative; None if it is so nowhere."""
    start, end = limits
    # A label is where its curve is least; a curve without slope has no prior, and is a constant.
    lowest = min(max(curve.pull // curve.slope if curve.slope else start, start), end)
    if case.below(curve, lowest) >= 0:
        return None
    if not curve.pull:
        return start, min(end, -(curve.level // curve.slope)) if curve.slope else end
    first, last = (
        limit if limit == lowest or case.below(curve, limit) < 0 else _outside(case, curve, limit, (lowest, near))
        for limit, near in zip(limits, guess, strict=True)
    )
    return first, last


def _outside(case: _Scaled, curve: Curve, limit: int, towards: tuple[int, float]) -> int:
    """Place just outside a root: between the limit, where the curve is not negative, and its minimum, where it is."""
    lowest, guess = towards
    sign, v = (1 if limit < lowest else -1), limit
    if math.isfinite(guess):
        above, below = guess.as_integer_ratio()
        near = (above << case.line) // below
        near -= sign * ((near >> PUSH) + 1)
        if min(limit, lowest) < near < max(limit, lowest) and case.below(curve, near) >= 0:
            v = near
    while v != lowest:
        fall = abs(curve.slope * v - curve.pull) << case.bits
        step = max(0, case.below(curve, v)) * v // fall
        if step >= abs(lowest - v):
            return lowest
        v += sign * step
        if step <= v >> (case.bits // 2):
            break
    return v


def _minimum(case: _Scaled, curve: Curve, left: int, right: int) -> int:
    """Lower bound of the least value of the curve between two places."""
    if curve.slope * left >= curve.pull:
        return case.below(curve, left)
    if curve.slope * right <= curve.pull:
        return case.below(curve, right)
    logarithm = case.logarithms.above(-(-curve.pull // curve.slope))
    return ((curve.pull + curve.level) << case.bits) - curve.pull * logarithm
