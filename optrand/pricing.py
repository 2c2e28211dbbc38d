r"""The best staircase column for given multipliers: the step that both prices columns and proves optimality.

For multipliers :math:`\alpha, \beta` write :math:`h_y(v) = p_y g(v, y) - \alpha_y - \beta_y v`. Every column of an
epsilon-DP table is a multiple of some :math:`s \in [1, E]^k`, :math:`E = e^\epsilon`, and the cheapest one at output
:math:`v` costs

.. math:: f(v) = \min_s \sum_y s_y h_y(v) = \sum_y \big( h_y(v) + (E - 1) \min(h_y(v), 0) \big),

attained by the staircase column of :math:`S = \{y : h_y(v) < 0\}`. Losses are convex, so :math:`h_y` is negative
between its two roots: sort the roots, and between neighbours :math:`f` is one convex function with a minimum in closed
form. (At a root :math:`f` has a concave kink, so no minimum hides there.) For squared and absolute loss those minima
are computed in integers, on the line, an interval or a grid (:mod:`optrand.exact_squared`,
:mod:`optrand.exact_absolute`). Any other loss on a grid, a table among them, is evaluated everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optrand import exact_absolute, exact_squared, losses
from optrand.outputs import Grid
from optrand.problem import Problem
from optrand.solution import Dual
from optrand.validation import Floats

__all__ = ["Prices", "negative_ranges", "price"]

BLOCK = 1 << 22
"""Entries of the ``k x n`` arrays that are worked on at a time."""

ROUNDING = 6 * float(np.finfo(float).eps)
"""What rounding may change of one entry of such an array: up to ten operations, each half a unit in the last place."""


@dataclass(frozen=True, eq=False)
class Prices:
    """Reduced costs of the best column at each of some outputs.

    Attributes
    ----------
    outputs : (n,) array
        Increasing; on the line, where :math:`f` may have a local minimum.
    costs : (n,) array
        :math:`f` there, for columns scaled to ``s in [1, E]^k``.
    errors : (n,) array
        How far rounding may have moved each cost.
    """

    problem: Problem
    dual: Dual
    outputs: Floats
    costs: Floats
    errors: Floats

    @property
    def lowest(self) -> float:
        """A lower bound of :math:`f` at all the outputs, rounding allowed for; NaN where floats overflow."""
        with np.errstate(invalid="ignore"):
            return float((self.costs - self.errors).min())

    def signatures(self, chosen: NDArray[np.intp]) -> NDArray[np.bool_]:
        """The set ``S`` of the best column at the chosen outputs, shape ``(k, len(chosen))``."""
        return _reduced(self.problem, self.dual, self.outputs[chosen])[0] < 0

    def improving(self, tolerance: float) -> NDArray[np.intp]:
        """Positions of the local minima of :math:`f` below ``-tolerance``."""
        padded = np.concatenate(([math.inf], self.costs, [math.inf]))
        dips = (padded[1:-1] <= padded[:-2]) & (padded[1:-1] <= padded[2:]) & (self.costs < -tolerance)
        return np.flatnonzero(dips)


def price(problem: Problem, dual: Dual) -> Prices:
    """Evaluate :math:`f` wherever an allowed output could make it smallest.

    Parameters
    ----------
    problem : Problem
    dual : Dual

    Returns
    -------
    Prices
        At up to ``2k + 1`` stationary points and the ends of the interval, or their neighbours on a grid; for losses
        other than squared at every value of a grid.

    Notes
    -----
    Squared loss costs ``O(k log k)``, and ``O(k log n)`` on a grid; absolute loss ``O(k log k)``, and ``O(k log n +
    n)`` on a grid; others ``O(k^2)`` or ``O(n k)``, vectorised, in blocks.
    """
    if problem.loss in (losses.squared, losses.absolute):
        return _exact_prices(problem, dual)
    outputs = _candidates(problem, dual)
    costs, errors = np.empty(outputs.size), np.empty(outputs.size)
    for block in _blocks(outputs.size, problem.k):
        costs[block], errors[block] = _best_columns(problem, dual, outputs[block])
    return Prices(problem, dual, outputs, costs, errors)


def _exact_prices(problem: Problem, dual: Dual) -> Prices:
    """Squared or absolute loss: one output for pieces of the line whose minima are the same float."""
    slack = 0.0
    if problem.loss == losses.squared:
        minimisers, minima, slack = exact_squared.local_minima(problem, dual)
    else:
        minimisers, minima = exact_absolute.local_minima(problem, dual)
    outputs, first = np.unique(minimisers, return_index=True)
    costs = np.minimum.reduceat(minima, first)
    with np.errstate(invalid="ignore"):
        return Prices(problem, dual, outputs, costs, np.spacing(np.abs(costs)) + slack)


def _candidates(problem: Problem, dual: Dual) -> Floats:
    """All outputs at which :math:`f` may be smallest: a grid, or those of Poisson log loss off a grid."""
    if isinstance(problem.outputs, Grid):
        return problem.outputs.values
    low, high = problem.outputs.low, problem.outputs.high
    starts, ends = negative_ranges(problem, dual)
    breaks = np.unique(np.concatenate((starts, ends)))
    breaks = breaks[np.isfinite(breaks)]
    points = _stationary_points(problem, starts, ends, breaks)
    points = np.concatenate((points, [x for x in (low, high) if math.isfinite(x)]))
    return np.unique(np.clip(points, max(low, float(np.finfo(float).tiny)), high))


def negative_ranges(problem: Problem, dual: Dual) -> tuple[Floats, Floats]:
    """Where each :math:`h_y` of Poisson log loss is negative: an open interval a label, or ``(nan, nan)``.

    ``v - y log v < alpha / p`` for ``beta = 0``: Newton's method from outside, where it is monotone.
    """
    with np.errstate(all="ignore"):
        y, level = problem.labels, dual.alpha / problem.prior
        starts = np.where(y > 0, np.maximum(np.exp(-level / y), np.finfo(float).tiny), 0.0)
        ends = np.maximum(2 * level, 0) + 4 * y * (1 + np.abs(np.log(np.maximum(y, 1e-300)))) + 1e-300
        for _ in range(100):
            step_start = np.where(y > 0, (starts - y * np.log(starts) - level) / (1 - y / starts), 0.0)
            step_end = np.where(y > 0, (ends - y * np.log(ends) - level) / (1 - y / ends), ends - level)
            starts, ends = np.maximum(starts - np.fmin(step_start, 0), starts), ends - np.fmax(step_end, 0)
        dips = np.where(y > 0, y - y * np.log(np.maximum(y, 1e-300)), 0.0) < level
        flat = problem.prior == 0
        starts, ends = np.where(flat, -math.inf, starts), np.where(flat, math.inf, ends)
        dips |= flat & (dual.alpha > 0)
        return np.where(dips, starts, np.nan), np.where(dips, ends, np.nan)


def _blocks(size: int, k: int) -> Iterator[slice]:
    step = max(1, BLOCK // k)
    return (slice(start, start + step) for start in range(0, size, step))


def _reduced(problem: Problem, dual: Dual, outputs: Floats) -> tuple[Floats, Floats]:
    """:math:`h_y(v)` and the sum of the magnitudes of its terms, shape ``(k, n)`` each."""
    alpha = dual.alpha[:, np.newaxis]
    with np.errstate(over="ignore", invalid="ignore"):
        prior = problem.prior[:, np.newaxis]
        weighted = np.where(prior > 0, prior * problem.loss_table(outputs), 0.0)
        slopes = dual.beta[:, np.newaxis] * outputs
        sizes = np.abs(weighted) + np.abs(alpha) + np.abs(slopes)
        if problem.loss == losses.poisson_log:
            # Its two terms may cancel: |y log v| is at most |v - y log v| + v.
            sizes += 2 * problem.prior[:, np.newaxis] * outputs
        return weighted - alpha - slopes, sizes


def _best_columns(problem: Problem, dual: Dual, outputs: Floats) -> tuple[Floats, Floats]:
    """The price of each output, and how much lower it may be within rounding.

    An ``h`` that is positive by less than its own rounding may be negative and count ``E`` times.
    """
    costs, sizes = _reduced(problem, dual, outputs)
    ratio = math.exp(problem.epsilon)
    # A sum of contiguous numbers adds up at most 128 in a row, by eights.
    summed = min(problem.k, 20 + math.ceil(math.log2(problem.k))) * np.finfo(float).eps
    with np.errstate(over="ignore", invalid="ignore"):
        terms, lower = np.where(costs < 0, ratio, 1.0) * costs, costs - ROUNDING * sizes
        lost = terms - np.where(lower < 0, ratio, 1.0) * lower + summed * np.abs(terms)
        prices, errors = (np.ascontiguousarray(parts.T).sum(axis=1) for parts in (terms, lost))
        if problem.loss == losses.poisson_log and not isinstance(problem.outputs, Grid):
            # Nearer to 0 than any normal float only the label 0 can still gain, by its distance.
            errors += ratio * (_undecided(problem, dual) + float(np.finfo(float).tiny))
    return prices, errors


def _undecided(problem: Problem, dual: Dual) -> float:
    """How far below 0 those ``h`` of Poisson log loss may dip whose least value, and so their range, rounding hides."""
    p, y, alpha = problem.prior, problem.labels, dual.alpha
    with np.errstate(all="ignore"):
        parts = np.stack((p * y, -p * y * np.log(np.maximum(y, np.finfo(float).tiny)), -alpha))[:, p > 0]
        noise = 2 * ROUNDING * np.abs(parts).sum(axis=0)
        return float(noise[np.abs(parts.sum(axis=0)) <= noise].sum())


def _stationary_points(problem: Problem, starts: Floats, ends: Floats, breaks: Floats) -> Floats:
    """The minimiser of the one convex function that :math:`f` of Poisson log loss is between neighbouring roots.

    With ``s`` the best column there it is ``sum s_y p_y y / sum s_y p_y``. Each piece is summed afresh: running sums
    would lose the small entries behind the large ones at large epsilon.
    """
    edges = np.concatenate(([-math.inf], breaks, [math.inf]))
    opened = np.searchsorted(breaks, starts, side="right")
    closed = np.where(ends == math.inf, edges.size, np.searchsorted(breaks, ends, side="right"))
    empty = np.isnan(starts)
    # Over E, so that nothing overflows: the factor cancels.
    least, excess = math.exp(-problem.epsilon), -math.expm1(-problem.epsilon)
    centre = problem.labels[0]
    pulls = problem.prior * (problem.labels - centre)
    points = np.empty(edges.size - 1)
    for block in _blocks(points.size, problem.k):
        pieces = np.arange(points.size)[block, np.newaxis]
        steepness = least + excess * ((opened <= pieces) & (pieces < closed) & ~empty)
        points[block] = centre + (steepness @ pulls) / (steepness @ problem.prior)
    return np.clip(points, edges[:-1], edges[1:])
