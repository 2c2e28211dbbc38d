r"""Prices: the cheapest staircase column at each output, for pricing and for the dual bound.

For multipliers :math:`\alpha, \beta` write :math:`h_y(v) = p_y g(v, y) - \alpha_y - \beta_y (v - o)`, where :math:`o`
is the origin of the dual. The cheapest column :math:`s \in [1, E]^k` of an epsilon-DP table at output :math:`v` costs

.. math:: f(v) = \min_s \sum_y s_y h_y(v) = \sum_y \big( h_y(v) + (E - 1) \min(h_y(v), 0) \big), \qquad E = e^\epsilon,

attained by the staircase column of :math:`S = \{y : h_y(v) < 0\}`. Its minima (``docs/mathematics.md``, section 3) are
computed in integers for squared and absolute loss, on the line, an interval or a grid; for Poisson log loss off a grid
in floats, with an allowance for rounding. Any other loss on a grid is evaluated everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import places, quotient, scaled
from optrand.base.validation import Floats
from optrand.certificates import absolute as exact_absolute
from optrand.certificates import squared as exact_squared
from optrand.model import losses
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.solution import Dual

__all__ = ["Prices", "negative_ranges", "price"]

BLOCK = 1 << 22
"""Entries of the ``k x n`` arrays that are worked on at a time."""

ROUNDING = 6 * float(np.finfo(float).eps)
"""Relative rounding error of one entry of such an array: up to ten operations, each half a unit in the last place."""

TINY = float(np.finfo(float).tiny)
"""Smallest positive output at which prices are evaluated."""


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
        Bounds of the rounding errors of the costs.
    """

    problem: Problem
    dual: Dual
    outputs: Floats
    costs: Floats
    errors: Floats

    @property
    def lowest(self) -> float:
        """Lower bound of :math:`f` at all the outputs, rounding allowed for; NaN where floats overflow."""
        with np.errstate(invalid="ignore"):
            return float((self.costs - self.errors).min())

    def signatures(self, chosen: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Membership in the set ``S`` of the best column at the chosen outputs, shape ``(k, len(chosen))``."""
        return _reduced(self.problem, self.dual, self.outputs[chosen])[0] < 0

    def improving(self, tolerance: float) -> NDArray[np.intp]:
        """Positions of the local minima of :math:`f` below ``-tolerance``."""
        padded = np.concatenate(([math.inf], self.costs, [math.inf]))
        dips = (padded[1:-1] <= padded[:-2]) & (padded[1:-1] <= padded[2:]) & (self.costs < -tolerance)
        return np.flatnonzero(dips)


def price(problem: Problem, dual: Dual) -> Prices:
    """Evaluate :math:`f` wherever an allowed output could make it smallest.

    Returns
    -------
    Prices
        At up to ``2k + 1`` stationary points and the ends of the interval, or their neighbours on a grid; for losses
        other than squared at every value of a grid.

    Notes
    -----
    Squared loss costs ``O(k log k)``, and ``O(k log n)`` on a grid; absolute loss ``O(k log k)``, and ``O(k log n +
    n)`` on a grid; Poisson log loss ``O(k log k)``. On a grid it and others cost ``O(n k)``, vectorised, in blocks.
    """
    if problem.loss in (losses.squared, losses.absolute):
        return _exact_prices(problem, dual)
    if not isinstance(problem.outputs, Grid):
        return _poisson_prices(problem, dual)
    outputs = problem.outputs.values
    costs, errors = np.empty(outputs.size), np.empty(outputs.size)
    for block in _blocks(outputs.size, problem.k):
        costs[block], errors[block] = _best_columns(problem, dual, outputs[block])
    return Prices(problem, dual, outputs, costs, errors)


def _exact_prices(problem: Problem, dual: Dual) -> Prices:
    """Prices for squared or absolute loss: one output for pieces of the line whose minima are the same float."""
    slack = 0.0
    if problem.loss == losses.squared:
        minimisers, minima, slack = exact_squared.local_minima(problem, dual)
    else:
        minimisers, minima = exact_absolute.local_minima(problem, dual)
    outputs, first = np.unique(minimisers, return_index=True)
    costs = np.minimum.reduceat(minima, first)
    with np.errstate(invalid="ignore"):
        return Prices(problem, dual, outputs, costs, np.spacing(np.abs(costs)) + slack)


def _poisson_prices(problem: Problem, dual: Dual) -> Prices:
    """Prices for Poisson log loss off a grid: on each piece ``f = w v - q log v - c``, least at ``q / w`` or at an end.

    Each coefficient is a total over all labels, and ``E - 1`` times one over the labels with ``h_y < 0``.
    """
    ranges = negative_ranges(problem, dual)
    roots = np.unique(np.concatenate(ranges))
    edges = np.concatenate(([-math.inf], roots[np.isfinite(roots)], [math.inf]))
    low, high = np.maximum(edges[:-1], max(problem.outputs.low, TINY)), np.minimum(edges[1:], problem.outputs.high)
    allowed, gain = low < high, math.expm1(problem.epsilon)
    with np.errstate(all="ignore"):
        totals = [(every, gain * some[allowed]) for every, some in _poisson_totals(problem, dual, ranges, edges)]
        (w, q, c), sizes = zip(*((every + some, abs(every) + np.abs(some)) for every, some in totals), strict=True)
        outputs = np.clip(q / w, low[allowed], high[allowed])
        logarithms = np.log(outputs)
        costs = w * outputs - q * logarithms - c
        errors = 2 * ROUNDING * (sizes[0] * outputs + sizes[1] * np.abs(logarithms) + sizes[2])
        # Nearer to 0 than any normal float only the label 0 can still gain, by its distance.
        errors += gain * (_misplaced(problem, dual, ranges) + _undecided(problem, dual)) + (gain + 1) * TINY
    outputs, first = np.unique(outputs, return_index=True)
    return Prices(problem, dual, outputs, np.minimum.reduceat(costs, first), np.maximum.reduceat(errors, first))


def _poisson_totals(
    problem: Problem, dual: Dual, ranges: tuple[Floats, Floats], edges: Floats
) -> Iterator[tuple[float, Floats]]:
    r"""Sums of :math:`p_y`, :math:`p_y y` and :math:`\alpha_y`: of all, and on each piece where :math:`h_y < 0`.

    In integers, each rounded once: in running sums of floats large entries would swallow small ones.
    """
    labels = np.flatnonzero(~np.isnan(ranges[0])).tolist()
    first, last = (np.searchsorted(edges, end[labels]).tolist() for end in ranges)
    mass, line, level = places(problem.prior), places(problem.labels), places(dual.alpha)
    weights = scaled(problem.prior, mass)
    pulls = list(map(mul, weights, scaled(problem.labels, line)))
    for amounts, digits in ((weights, mass), (pulls, mass + line), (scaled(dual.alpha, level), level)):
        steps = [0] * edges.size
        for y, start, end in zip(labels, first, last, strict=True):
            steps[start] += amounts[y]
            steps[end] -= amounts[y]
        inside = [quotient(total, 1 << digits) for total in accumulate(steps[:-1])]
        yield quotient(sum(amounts), 1 << digits), np.array(inside)


def _misplaced(problem: Problem, dual: Dual, ranges: tuple[Floats, Floats]) -> float:
    r"""Bound on the sum of :math:`|h_y|` of Poisson log loss at one output, over labels on the wrong side of a root.

    Between a root and its float it is at most what it is at that float.
    """
    total = 0.0
    for roots in ranges:
        chosen = np.isfinite(roots)
        p, y, alpha, v = problem.prior[chosen], problem.labels[chosen], dual.alpha[chosen], roots[chosen]
        at = np.maximum(v, TINY)
        reduced = p * losses.poisson_log.evaluate(at, y) - alpha
        # Smaller outputs are not evaluated.
        beyond = np.where(v > TINY, np.abs(reduced), np.maximum(reduced, 0.0))
        total += float((beyond + ROUNDING * (p * (at + y * np.abs(np.log(at))) + np.abs(alpha))).sum())
    return total


def negative_ranges(problem: Problem, dual: Dual) -> tuple[Floats, Floats]:
    """Range where each :math:`h_y` of Poisson log loss is negative: an open interval a label, or ``(nan, nan)``.

    ``v - y log v < alpha / p`` for ``beta = 0``: Newton's method from outside, where it is monotone.
    """
    starts, ends = np.full(problem.k, np.nan), np.full(problem.k, np.nan)
    with np.errstate(all="ignore"):
        levels = dual.alpha / problem.prior
        least = np.where(problem.labels > 0, losses.poisson_log.evaluate(problem.labels, problem.labels), 0.0)
        dips, flat = np.flatnonzero(least < levels), problem.prior == 0
        starts[dips], ends[dips] = _poisson_roots(problem.labels[dips], levels[dips])
    everywhere = flat & (dual.alpha > 0)
    starts[flat], ends[flat] = np.nan, np.nan
    starts[everywhere], ends[everywhere] = -math.inf, math.inf
    return starts, ends


def _poisson_roots(y: Floats, level: Floats) -> tuple[Floats, Floats]:
    """Roots of ``v - y log v`` at a level that is above its least value, on either side of ``y``."""
    low = np.where(y > 0, np.maximum(np.exp(-level / y), TINY), 0.0)
    high = np.maximum(2 * level, 0) + 4 * y * (1 + np.abs(np.log(np.maximum(y, TINY)))) + TINY
    for _ in range(100):
        rise = np.where(y > 0, (low - y * np.log(low) - level) / (1 - y / low), 0.0)
        fall = np.where(y > 0, (high - y * np.log(high) - level) / (1 - y / high), high - level)
        closer = np.fmin(low - np.fmin(rise, 0), y), np.fmax(high - np.fmax(fall, 0), y)
        if np.array_equal(closer, (low, high)):
            break
        low, high = closer
    return low, high


def _blocks(size: int, k: int) -> Iterator[slice]:
    step = max(1, BLOCK // k)
    return (slice(start, start + step) for start in range(0, size, step))


def _reduced(problem: Problem, dual: Dual, outputs: Floats) -> tuple[Floats, Floats]:
    """:math:`h_y(v)` and the sum of the magnitudes of its terms, shape ``(k, n)`` each."""
    alpha = dual.alpha[:, np.newaxis]
    with np.errstate(over="ignore", invalid="ignore"):
        prior = problem.prior[:, np.newaxis]
        weighted = np.where(prior > 0, prior * problem.loss_table(outputs), 0.0)
        slopes = dual.beta[:, np.newaxis] * (outputs - dual.origin)
        sizes = np.abs(weighted) + np.abs(alpha) + np.abs(slopes)
        if problem.loss == losses.poisson_log:
            # Its two terms may cancel: |y log v| is at most |v - y log v| + v.
            sizes += 2 * problem.prior[:, np.newaxis] * outputs
        return weighted - alpha - slopes, sizes


def _best_columns(problem: Problem, dual: Dual, outputs: Floats) -> tuple[Floats, Floats]:
    """Price of each output, and a bound of its rounding error downward.

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
    return prices, errors


def _undecided(problem: Problem, dual: Dual) -> float:
    """Bound on the dip below 0 of the ``h`` of Poisson log loss whose least value, and so range, rounding hides."""
    p, y, alpha = problem.prior, problem.labels, dual.alpha
    with np.errstate(all="ignore"):
        parts = np.stack((p * y, -p * y * np.log(np.maximum(y, TINY)), -alpha))[:, p > 0]
        noise = 2 * ROUNDING * np.abs(parts).sum(axis=0)
        return float(noise[np.abs(parts.sum(axis=0)) <= noise].sum())
