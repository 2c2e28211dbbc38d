r"""Dual bounds in floats for absolute and Poisson log loss where bias is free and outputs are not on a grid.

**Absolute loss.** Only labels and ends of the outputs need a look (:mod:`optrand.certificates.absolute`); there
:math:`f` is evaluated.

**Poisson log loss.** Each reduced cost :math:`h_y(v) = p_y v - p_y y \log v - \alpha_y` is convex. So with *any*
:math:`l_y \leq r_y` in the place of its roots, and the labels :math:`S(v)` with :math:`l_y < v < r_y`,

.. math:: f(v) \geq \sum_y h_y(v) + (E - 1) \sum_{y \in S(v)} h_y(v) - (E - 1) \sum_y t_y,

where :math:`t_y` bounds how far :math:`h_y` is above zero inside, at both ends, and below it outside, at both ends and
at its minimum if that is outside. Between neighbouring ends the sum is one convex function, which lies above any of its
tangents. Every operation is charged its rounding error, twice over (``docs/mathematics.md``, section 3).
"""

from __future__ import annotations

import math

import numpy as np

from optrand.base.validation import Floats
from optrand.certificates.extended import UNIT, Extended, assembled_below, excess_above, running, sum_below
from optrand.certificates.prices import negative_ranges
from optrand.model import losses
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.solution import Dual

__all__ = ["LARGEST", "lower_bound"]

LARGEST = 1 << 20
"""Pairs of a label and an output that are evaluated, at most."""

NOTHING = -math.inf


def lower_bound(problem: Problem, dual: Dual) -> float:
    """Bound of the multipliers `alpha`; ``-inf`` where floats prove nothing.

    Examples
    --------
    >>> import optrand
    >>> for loss in (losses.absolute, losses.poisson_log):
    ...     solution = optrand.rr_on_bins([1, 2, 4], [0.5, 0.3, 0.2], 1.0, loss=loss)
    ...     print(0 <= solution.value - lower_bound(solution.problem, solution.dual) < 1e-12)
    True
    True
    """
    if problem.bias_penalty or isinstance(problem.outputs, Grid):
        return NOTHING
    excess, alpha = excess_above(problem.epsilon), dual.alpha.astype(np.longdouble)
    if problem.loss == losses.absolute:
        lowest = _lowest_absolute(problem, alpha, excess)
    elif problem.loss == losses.poisson_log:
        lowest = _lowest_poisson(problem, dual, excess)
    else:
        return NOTHING
    return assembled_below(sum_below(alpha), lowest, problem.k, excess)


def _lowest_absolute(problem: Problem, alpha: Extended, excess: np.longdouble) -> np.longdouble:
    """Lower bound of the least price of a column; cost ``O(k^2)``."""
    low, high = problem.outputs.low, problem.outputs.high
    points = np.union1d(np.clip(problem.labels, low, high), [x for x in (low, high) if math.isfinite(x)])
    if points.size * problem.k > LARGEST:
        return np.longdouble(NOTHING)
    distances = abs(points.astype(np.longdouble) - problem.labels[:, np.newaxis])
    losses_, levels = problem.prior[:, np.newaxis] * distances, alpha[:, np.newaxis]
    # Of the difference, the product, the level taken off, and the factor.
    errors = 4 * UNIT * (losses_ + abs(levels))
    reduced = losses_ - levels - errors
    prices = reduced + excess * np.minimum(reduced, 0)
    sizes = (1 + excess) * (losses_ + abs(levels) + errors)
    lowest: np.longdouble = (prices.sum(axis=0) - 2 * (problem.k + 4) * UNIT * sizes.sum(axis=0)).min()
    return lowest


def _limits(problem: Problem) -> tuple[np.longdouble, np.longdouble]:
    """Allowed outputs between which the least price of a column is attained, for Poisson log loss."""
    charged = problem.labels[problem.prior > 0]
    prior, labels = problem.prior.astype(np.longdouble), problem.labels.astype(np.longdouble)
    mean = (prior @ labels) / prior.sum() * (1 - 4 * problem.k * UNIT)
    falling = mean / (excess_above(problem.epsilon) + 1) * (1 - 8 * UNIT)
    low, high = np.longdouble(problem.outputs.low), np.longdouble(problem.outputs.high)
    start = max(low, min(high, max(np.longdouble(charged[0]), falling)))
    return start, min(high, max(start, np.longdouble(charged[-1])))


def _lowest_poisson(problem: Problem, dual: Dual, excess: np.longdouble) -> np.longdouble:
    """Lower bound of the least price of a column; cost ``O(k log k)``."""
    start, end = _limits(problem)
    if not 0 < start < math.inf:
        return np.longdouble(NOTHING)
    prior, labels, alpha = (x.astype(np.longdouble) for x in (problem.prior, problem.labels, dual.alpha))
    pull = prior * labels

    def bracket(v: Extended) -> tuple[Extended, Extended]:
        """Bounds of each label's reduced cost at a place of its own."""
        logs = np.log(v)
        value = prior * v - pull * logs - alpha
        error = 8 * UNIT * (prior * v + pull * (abs(logs) + 1) + abs(alpha))
        return value - error, value + error

    lefts, rights, least = _ends(problem, dual, start, end)
    inside = lefts < rights
    below_left, above_left = bracket(lefts)
    below_right, above_right = bracket(rights)
    missing = np.maximum(0, -bracket(least)[0])
    outside = np.maximum(np.where(lefts > start, -below_left, 0), np.where(rights < end, -below_right, 0))
    outside = np.maximum(outside, np.where((lefts <= least) & (least <= rights), 0, missing))
    slack = np.where(inside, np.maximum(np.maximum(above_left, above_right), np.maximum(outside, 0)), missing)

    events = np.concatenate((lefts[inside], rights[inside]))
    order = np.argsort(events, kind="stable")
    sums, offs = [], []
    for terms in (prior, pull, -alpha):
        steps = excess * terms[inside]
        moved, count = running(np.concatenate((steps, -steps))[order])
        sums.append(terms.sum() + np.append(np.longdouble(0), moved))
        offs.append(2 * (count + terms.size) * UNIT * (abs(terms).sum() + 2 * abs(steps).sum()))
    first, last = np.append(start, events[order]), np.append(events[order], end)
    below = _tangents(sums, offs, first, last).min()
    lowest: np.longdouble = below - excess * (1 + 4 * problem.k * UNIT) * slack.sum()
    return lowest


def _ends(
    problem: Problem, dual: Dual, start: np.longdouble, end: np.longdouble
) -> tuple[Extended, Extended, Extended]:
    """About where each reduced cost begins and ceases to be negative, and where it is least."""
    least: Extended = np.clip(problem.labels.astype(np.longdouble), start, end)
    roots: tuple[Floats, Floats] = negative_ranges(problem, dual)
    lefts, rights = (np.where(np.isnan(root), least, np.clip(root, start, end)) for root in roots)
    return lefts, np.maximum(lefts, rights), least


def _tangents(sums: list[Extended], offs: list[np.longdouble], first: Extended, last: Extended) -> Extended:
    """Lower bounds of ``w v - q log v + c`` between some places, by tangents where it is about least.

    Parameters
    ----------
    sums : list of (n,) arrays
        ``w``, ``q`` and ``c``.
    offs : list
        Bounds of their errors.
    first, last : (n,) arrays
    """
    (w, q, c), (off_w, off_q, off_c) = sums, offs
    place = np.clip(q / w, first, last)
    logs = np.log(place)
    slope, off_slope = w - q / place, off_w + off_q / place + 4 * UNIT * (w + q / place)
    error = off_w * place + off_q * abs(logs) + off_c + 8 * UNIT * (w * place + q * (abs(logs) + 1) + abs(c))
    rise = np.maximum(0, slope + off_slope) * (place - first) + np.maximum(0, off_slope - slope) * (last - place)
    below: Extended = (w * place - q * logs + c) - error - rise * (1 + 8 * UNIT)
    return below
