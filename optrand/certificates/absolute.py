r"""Dual bound for absolute loss, in integers.

Between neighbouring labels :math:`f` (:mod:`optrand.certificates.certificate`) is concave, so its minimum is at a label
or at an end of the allowed outputs (``docs/mathematics.md``, section 3). At those points, or at every value of a grid,
it is a running total over the sides of all labels, and over the ranges in which :math:`h_y` is negative. Only :math:`E
= e^\epsilon`, upward, and the charge of a finite bias penalty are rounded.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import accumulate

import numpy as np

from optrand.base.arithmetic import places, quotient, scaled
from optrand.base.validation import Floats
from optrand.certificates.bound import assembled, excess_above, measured, multipliers_below
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.solution import Dual

__all__ = ["local_minima", "lower_bound"]


def lower_bound(problem: Problem, dual: Dual) -> Fraction:
    """Bound of :mod:`optrand.certificates.certificate` for absolute loss.

    Multipliers must be zero where ``bias_penalty * prior`` is. Cost ``O(k log k)`` off a grid, ``O(k log n + n)`` on
    it.

    Examples
    --------
    With ``alpha = 0`` the bound is the mean distance of the prior's median, over ``E``:

    >>> from optrand import losses
    >>> from optrand.model.problem import regression
    >>> problem = regression([0, 1], [0.5, 0.5], 1.0, loss=losses.absolute)
    >>> float(lower_bound(problem, Dual([0.0, 0.0], [0.0, 0.0]))) == 0.5 / math.e
    True
    """
    _, costs, digits = _prices(problem, dual)
    base = multipliers_below(problem, dual, digits)
    return assembled(base, min(costs), problem.k, excess=excess_above(problem.epsilon), digits=digits)


def local_minima(problem: Problem, dual: Dual) -> tuple[Floats, Floats]:
    """Outputs where :math:`f` may be least, increasing, and :math:`f` there, rounded to the nearest float."""
    points, costs, digits = _prices(problem, dual)
    unit = 1 << (digits + excess_above(problem.epsilon)[1])
    return points, np.array([quotient(cost, unit) for cost in costs])


def _candidates(problem: Problem) -> Floats:
    """Labels and ends of the allowed outputs, or the whole of a grid."""
    if isinstance(problem.outputs, Grid):
        return problem.outputs.values
    low, high = problem.outputs.low, problem.outputs.high
    ends = np.array([x for x in (low, high) if math.isfinite(x)])
    return np.union1d(np.clip(problem.labels, low, high), ends)


def _prices(problem: Problem, dual: Dual) -> tuple[Floats, list[int], int]:
    """Candidate outputs, :math:`f` there in units of ``2**-(digits + s)``, ``s`` as in `excess_above`, and `digits`."""
    more, shift = excess_above(problem.epsilon)
    outputs = _candidates(problem)
    line = max(map(places, (problem.labels, outputs, np.array([dual.origin]))))
    mass = max(places(problem.prior), places(dual.alpha) - line, places(dual.beta))
    points = measured(outputs, dual, line)
    slopes, levels = [0] * (len(points) + 1), [0] * (len(points) + 1)
    columns = (problem.prior, mass), (dual.alpha, mass + line), (dual.beta, mass)
    labels = measured(problem.labels, dual, line)
    for y, p, alpha, beta in zip(labels, *(scaled(*column) for column in columns), strict=True):
        middle = bisect_left(points, y)
        left, right = (-p - beta, p * y - alpha), (p - beta, -p * y - alpha)
        for (slope, level), start, end in ((left, 0, middle), (right, middle, len(points))):
            negative = _negative(slope, level, points, start, end)
            for (first, after), factor in (((start, end), 1 << shift), (negative, more)):
                slopes[first] += factor * slope
                slopes[after] -= factor * slope
                levels[first] += factor * level
                levels[after] -= factor * level
    costs = [
        slope * v + level
        for slope, v, level in zip(accumulate(slopes[:-1]), points, accumulate(levels[:-1]), strict=True)
    ]
    return outputs, costs, mass + line


def _negative(slope: int, level: int, points: list[int], start: int, end: int) -> tuple[int, int]:
    """Range of the points from `start` to before `end` at which ``slope * point + level`` is negative."""
    if slope > 0:
        return start, bisect_right(points, (-level - 1) // slope, start, end)
    if slope < 0:
        return bisect_right(points, level // -slope, start, end), end
    return (start, end) if level < 0 else (start, start)
