r"""The cheapest column and the bound of a dual for absolute loss off a grid, in integers alone.

Without multipliers of bias :math:`h_y(v) = p_y |v - y| - \alpha_y`. Between neighbouring labels it is straight, so
:math:`\min(h_y, 0)` and :math:`f` (:mod:`optrand.pricing`) are concave there, and beyond the last label on either side
:math:`f` does not fall: it is least at a label or at an end of the allowed outputs. At those points it is a difference
of running totals, over all labels and over those with :math:`|v - y| < \alpha_y / p_y`. Nothing is rounded but
:math:`E = e^\epsilon`, upward.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import accumulate

import numpy as np

from optrand.column_bound import assembled, excess_above
from optrand.dyadic import places, quotient, scaled
from optrand.problem import Problem
from optrand.solution import Dual
from optrand.validation import Floats

__all__ = ["local_minima", "lower_bound"]


def lower_bound(problem: Problem, dual: Dual) -> Fraction:
    """The bound of :mod:`optrand.certificate`; multipliers of bias must be zero.

    Parameters
    ----------
    problem : Problem
        With absolute loss, on the line or on an interval.
    dual : Dual

    Returns
    -------
    Fraction

    Notes
    -----
    Cost ``O(k log k)``.

    Examples
    --------
    With ``alpha = 0`` no reduced cost is negative, and the bound is the mean distance of the prior's median, over
    ``E``:

    >>> from optrand import losses
    >>> from optrand.problem import regression
    >>> problem = regression([0, 1], [0.5, 0.5], 1.0, loss=losses.absolute)
    >>> float(lower_bound(problem, Dual([0.0, 0.0], [0.0, 0.0]))) == 0.5 / math.e
    True
    """
    _, costs, digits = _prices(problem, dual)
    base = sum(scaled(dual.alpha, digits))
    return assembled(base, min(costs), problem.k, excess=excess_above(problem.epsilon), digits=digits)


def local_minima(problem: Problem, dual: Dual) -> tuple[Floats, Floats]:
    """The outputs where :math:`f` may be least, increasing, and :math:`f` there, rounded to the nearest float."""
    points, costs, digits = _prices(problem, dual)
    unit = 1 << (digits + excess_above(problem.epsilon)[1])
    return points, np.array([quotient(cost, unit) for cost in costs])


def _prices(problem: Problem, dual: Dual) -> tuple[Floats, list[int], int]:
    """Candidate outputs, :math:`f` there in units of ``2**-(digits + s)``, ``s`` as in `excess_above`, and `digits`."""
    more, shift = excess_above(problem.epsilon)
    ends = np.array([x for x in (problem.outputs.low, problem.outputs.high) if math.isfinite(x)])
    line = max(places(problem.labels), places(ends))
    mass = max(places(problem.prior), places(dual.alpha) - line)
    outputs = np.union1d(np.clip(problem.labels, problem.outputs.low, problem.outputs.high), ends)
    points = scaled(outputs, line)
    slopes, levels = [0] * (len(points) + 1), [0] * (len(points) + 1)
    columns = (scaled(problem.labels, line), scaled(problem.prior, mass), scaled(dual.alpha, mass + line))
    for y, p, alpha in zip(*columns, strict=True):
        middle, everywhere = bisect_left(points, y), (0, len(points))
        ranges = [(everywhere, 1 << shift)]
        if alpha > 0:
            # |v - y| < alpha / p in integers.
            reach = (alpha - 1) // p if p else None
            near = everywhere if reach is None else (bisect_left(points, y - reach), bisect_right(points, y + reach))
            ranges.append((near, more))
        for (start, end), factor in ranges:
            # Below y it is -p v + (p y - alpha), from y on p v - (p y + alpha).
            slope, pull, least = factor * p, factor * p * y, factor * alpha
            turn = min(max(middle, start), end)
            slopes[start] -= slope
            slopes[turn] += 2 * slope
            slopes[end] -= slope
            levels[start] += pull - least
            levels[turn] -= 2 * pull
            levels[end] += pull + least
    costs = [
        slope * v + level
        for slope, v, level in zip(accumulate(slopes[:-1]), points, accumulate(levels[:-1]), strict=True)
    ]
    return outputs, costs, mass + line
