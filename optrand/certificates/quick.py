r"""Dual bounds in floats, rounded down: a tenth of a millisecond at 53 labels, seconds at a million.

Here that of squared loss. Twice the reduced cost of a label is :math:`H_y(x) = p_y x^2 - 2 B_y x + C_y`, with :math:`x`
the output measured from a middle label. Let :math:`l_y \leq r_y` be *any* numbers, and :math:`S(x)` the labels with
:math:`l_y < x < r_y`. Then

.. math:: 2 f(x) \geq \sum_y H_y(x) + (E - 1) \sum_{y \in S(x)} H_y(x)
          - (E - 1) \sum_y \max(|H_y(l_y)|, |H_y(r_y)|, H_y^-),

where :math:`H_y^-` is how far :math:`H_y` falls below zero outside of :math:`[l_y, r_y]` if its minimiser is there.
With the roots as floats find them the last sum is rounding. Far from all labels no column is cheap, whatever the roots.
Between neighbouring ends the right side is one quadratic, whose coefficients are running sums in extended precision.
Every operation is charged its rounding error, twice over (``docs/mathematics.md``, section 3): nothing rests on how
well the roots, or the multipliers, were found. Absolute and Poisson log loss where bias is free are those of
:mod:`optrand.certificates.quick_convex`, classification that of :mod:`optrand.certificates.quick_classes`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from optrand.base.lean import kernels_loaded
from optrand.certificates import quick_classes, quick_convex
from optrand.certificates.extended import UNIT, Extended, assembled_below, excess_above, running, sum_below
from optrand.certificates.quick_losses import bins_loss
from optrand.model import losses
from optrand.model.arcs import Arcs
from optrand.model.kept import content, kept
from optrand.model.outputs import Grid, Line
from optrand.model.problem import Problem, unbiased_range
from optrand.model.solution import Dual, Solution

__all__ = ["quick_bound", "quick_gap"]


class _Quadratics(NamedTuple):
    """``a x^2 - 2 b x + c``, and bounds of the errors of its coefficients; arrays or numbers."""

    a: Extended
    b: Extended
    c: Extended
    off_a: Extended
    off_b: Extended
    off_c: Extended

    def at(self, x: Extended) -> Extended:
        value: Extended = (self.a * x - 2 * self.b) * x + self.c
        return value

    def error_at(self, x: Extended) -> Extended:
        """Bound of the error of the computed value, that of the coefficients included."""
        rounding = 4 * UNIT * (self.a * x * x + 2 * abs(self.b * x) + abs(self.c))
        error: Extended = rounding + self.off_a * x * x + 2 * self.off_b * abs(x) + self.off_c
        return error

    def times(self, factor: np.longdouble) -> _Quadratics:
        """All of it times a positive number."""
        off = [
            factor * (1 + UNIT) * error + UNIT * abs(factor * number)
            for number, error in zip(self[:3], self[3:], strict=True)
        ]
        return _Quadratics(factor * self.a, factor * self.b, factor * self.c, *off)


def quick_bound(problem: Problem, dual: Dual) -> float:
    """Lower bound of the loss of every epsilon-DP randomizer that the problem allows, as `optrand.certify` proves it.

    Never above the exact bound of the same multipliers (:func:`optrand.certificates.certificate.lower_bound`); ``-inf``
    where floats prove nothing: tables, on grids all but classification, and absolute loss of a thousand labels or more.

    Examples
    --------
    >>> import optrand
    >>> solution = optrand.solve(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0))
    >>> 0 <= optrand.certify(solution).lower - quick_bound(solution.problem, solution.dual) < 1e-12
    True
    """
    key = content(problem, dual.alpha, dual.beta), dual.origin
    return kept(dual, "_quick_bound", key, lambda: _bound(problem, dual))


def quick_gap(solution: Solution) -> float:
    """Relative gap of squared loss off grids, of bins where bias is free, or of classification, in floats.

    Infinite where its rows, its means where they must be right, or its ratio are off by more than rounding, or where
    floats prove nothing. The bound is proven; the loss is that of the randomizer before the last rounding errors are
    taken out of it, rounded up.
    """
    problem, randomizer, dual = solution.problem, solution.randomizer, solution.dual
    if dual is None:
        return math.inf
    key = content(problem, dual.alpha, dual.beta, *randomizer.numbers), dual.origin, randomizer.epsilon
    return kept(dual, "_quick_gap", key, lambda: _gap(solution, dual))


CLOSE = 1e-12
"""Errors of rows and ratios, and of means as a share of the spread of outputs, that count as rounding."""

SMALL = 5e-11
"""Gap in doubles with which extended precision is not asked."""


def _gap(solution: Solution, dual: Dual) -> float:
    problem, randomizer = solution.problem, solution.randomizer
    gap = _gap_in_doubles(solution, dual)
    if gap <= SMALL:
        return gap
    key = content(problem, randomizer.labels, *randomizer.numbers), randomizer.epsilon
    value = kept(randomizer, "_quick_value", key, lambda: _value(solution))
    if not (math.isfinite(value) and value):
        return math.inf
    return (value - quick_bound(problem, dual)) / abs(value)


def _gap_in_doubles(solution: Solution, dual: Dual) -> float:
    """Relative gap of squared loss off grids at a price of bias or without any, in compiled doubles."""
    problem, arcs = solution.problem, solution.randomizer.arcs
    if problem.loss != losses.squared or not problem.bias_penalty or isinstance(problem.outputs, Grid):
        return math.inf
    # Loading the compiler takes longer than extended precision.
    if arcs is None or arcs.rests.any() or not kernels_loaded():
        return math.inf
    from optrand.certificates.doubles import MOST, Asked, bound_below, loss_above

    if problem.k + arcs.n > MOST:
        return math.inf

    excess = float(excess_above(problem.epsilon))
    asked = Asked(
        problem.labels, problem.prior, excess, problem.bias_penalty, problem.outputs.low, problem.outputs.high
    )
    loss, error = loss_above(asked, arcs.first, arcs.last, arcs.outputs, arcs.masses, CLOSE)
    if not loss < math.inf or (problem.unbiased and not _has_room(problem, error)):
        return math.inf
    gap = (loss - bound_below(asked, dual.alpha, dual.beta, dual.origin)) / loss
    return gap if math.isfinite(gap) else math.inf


def _value(solution: Solution) -> float:
    """Upper bound of the loss, in floats; infinite for randomizers that are off, and for other problems."""
    problem, arcs = solution.problem, solution.randomizer.arcs
    if problem.loss == losses.zero_one:
        return quick_classes.table_loss(problem, solution.randomizer, CLOSE)
    if arcs is None or isinstance(problem.outputs, Grid):
        return math.inf
    if not problem.bias_penalty:
        return bins_loss(problem, arcs, CLOSE)
    return _squared_loss(problem, arcs) if problem.loss == losses.squared else math.inf


def _has_room(problem: Problem, error: float) -> bool:
    """Whether outputs may lie further out than some unbiased randomizer needs, by more than an error of its means."""
    if isinstance(problem.outputs, Line):
        return True
    low, high = unbiased_range(problem.labels, problem.epsilon)
    return problem.outputs.low < low - error and high + error < problem.outputs.high


def _squared_loss(problem: Problem, arcs: Arcs) -> float:
    """Squared loss of arcs without bias, or at a price of it."""
    if not problem.outputs.low <= arcs.outputs.min() <= arcs.outputs.max() <= problem.outputs.high:
        return math.inf
    ratio, middle = np.longdouble(math.exp(problem.epsilon)), problem.labels[problem.k // 2]
    masses, outputs = arcs.masses.astype(np.longdouble), (arcs.outputs.astype(np.longdouble) - middle) + arcs.rests
    labels, prior = problem.labels.astype(np.longdouble) - middle, problem.prior.astype(np.longdouble)

    def mixed(amounts: Extended) -> Extended:
        """Sum of some amounts under each label."""
        steps = np.zeros(arcs.k + 1, np.longdouble)
        np.add.at(steps, arcs.first, amounts)
        np.subtract.at(steps, arcs.last + 1, amounts)
        sums: Extended = amounts.sum() + (ratio - 1) * np.cumsum(steps[:-1])
        return sums

    width = max(np.ptp(problem.labels), np.ptp(outputs)) or 1.0
    rows, means = mixed(masses), mixed(masses * outputs)
    if not (abs(rows - 1).max() <= CLOSE and (masses >= 0).all()):
        return math.inf
    value = float(prior @ (mixed(masses * outputs**2) - 2 * labels * means + labels**2 * rows)) / 2
    if not problem.unbiased:
        value += problem.bias_penalty * float(prior @ (means - labels) ** 2) / 2
    elif not (abs(means - labels).max() <= CLOSE * width and _has_room(problem, CLOSE * width)):
        return math.inf
    return value if value > 0 else math.inf


def _bound(problem: Problem, dual: Dual) -> float:
    if (dual.beta[problem.bias_weights == 0] != 0).any():
        return -math.inf
    with np.errstate(all="ignore"):
        if problem.loss == losses.squared and not isinstance(problem.outputs, Grid):
            bound = _bound_of_squares(problem, dual)
        elif problem.loss == losses.zero_one:
            bound = quick_classes.lower_bound(problem, dual)
        else:
            bound = quick_convex.lower_bound(problem, dual)
    return bound if math.isfinite(bound) else -math.inf


def _bound_of_squares(problem: Problem, dual: Dual) -> float:
    middle = problem.labels[problem.k // 2]
    labels, prior, alpha, beta = (
        x.astype(np.longdouble) for x in (problem.labels, problem.prior, dual.alpha, dual.beta)
    )
    place, shift = labels - middle, np.longdouble(middle) - dual.origin
    off_place = UNIT * (abs(place) + abs(shift))
    # Twice the reduced costs, by the distance from the middle label.
    pull, drift = prior * place, 2 * (alpha + beta * shift)
    each = _Quadratics(
        prior,
        pull + beta,
        pull * place - drift,
        np.zeros_like(prior),
        2 * UNIT * (abs(pull) + abs(beta)) + prior * off_place,
        4 * UNIT * (abs(pull * place) + 2 * abs(alpha) + 2 * abs(beta * shift))
        + 2 * abs(pull) * off_place
        + 2 * abs(beta) * UNIT * abs(shift),
    )
    excess = excess_above(problem.epsilon)
    lowest = _lowest(problem, each, excess, np.longdouble(middle)) / 2
    # The bound of its parts, as in optrand.certificates.bound.
    terms = [alpha, beta * (labels - dual.origin)]
    if not problem.unbiased:
        weights = 2 * np.longdouble(problem.bias_penalty) * prior
        terms.append(-np.where(weights > 0, beta**2 / np.where(weights > 0, weights, 1), 0))
    base = np.longdouble(0)
    for term in terms:
        base += sum_below(term)
    base -= 2 * UNIT * (abs(beta) * (abs(labels) + abs(dual.origin))).sum()
    return assembled_below(base, lowest, problem.k, excess)


def _lowest(problem: Problem, each: _Quadratics, excess: np.longdouble, middle: np.longdouble) -> np.longdouble:
    """Lower bound of twice the least price of a column."""
    weight, pull, cost = each.a.sum(), 2 * abs(each.b).sum(), 2 * abs(each.c).sum()
    # Beyond `far` no price is below (weight far - 2 pull) far - cost: half of the weights, twice the rest.
    pull, cost = (excess + 1) * pull, (excess + 1) * cost
    far = 4 * (pull + np.sqrt(pull * pull + weight * cost)) / weight
    beyond = (weight / 2 * far - 2 * pull) * far - cost
    low, high = problem.outputs.low - middle, problem.outputs.high - middle
    low, high = max(low - UNIT * abs(low), -far), min(high + UNIT * abs(high), far)

    square = each.b * each.b - each.a * each.c
    rooted = square > 0
    outer = each.b + np.copysign(np.sqrt(np.maximum(square, 0)), each.b)
    one, other = outer / each.a, np.where(rooted, each.c / np.where(rooted, outer, 1), 0)
    # Labels of prior zero have no vertex, and at most one root.
    curved = each.a > 0
    vertex, off = (np.where(curved, x / np.where(curved, each.a, 1), 0) for x in (each.b, each.off_b))
    # How far a reduced cost may fall below zero outside of its roots, or rise above inside.
    slack = np.where(rooted, 0.0, np.maximum(each.b * vertex - each.c, 0) + each.error_at(vertex))
    # A vertex beyond all outputs, for sure, is outside of no root.
    inside = (abs(vertex) <= 2 * far) | (abs(each.b) <= 4 * each.off_b)
    slack += np.where(inside, each.a * (8 * UNIT * abs(vertex) + 2 * off) ** 2, 0)
    first, second = np.minimum(one, other), np.maximum(one, other)
    ends = np.clip(first, low, high), np.clip(second, low, high)
    for root, end in zip((first, second), ends, strict=True):
        # A root among the outputs is a zero; at an end of the outputs the sign is what counts.
        height = np.where(ends[0] < ends[1], each.at(end), -each.at(end))
        off_zero = np.where(end == root, abs(height), np.maximum(height, 0)) + each.error_at(end)
        slack += np.where(rooted, off_zero, 0.0)
    more = _Quadratics(*(x[rooted] for x in each)).times(excess)
    events = np.concatenate([end[rooted] for end in ends])
    order = np.argsort(events, kind="stable")
    starts, steps = np.stack(each[:3]), np.stack(more[:3])
    totals, (sums, count) = running(starts)[0][:, -1:], running(np.concatenate((steps, -steps), axis=1)[:, order])
    sums = totals + np.concatenate((np.zeros((3, 1), np.longdouble), sums), axis=1)
    errors = np.stack(each[3:]).sum(axis=1) + 2 * np.stack(more[3:]).sum(axis=1)
    errors += 2 * count * UNIT * (abs(starts).sum(axis=1) + 2 * abs(steps).sum(axis=1))
    pieces = _Quadratics(*sums, *errors)
    best = np.clip(pieces.b / pieces.a, np.append(low, events[order]), np.append(events[order], high))
    if not (pieces.a > 4 * pieces.off_a).all():
        return np.longdouble(-math.inf)
    below = pieces.at(best) - pieces.error_at(best) - pieces.off_a * best**2
    below -= 2 * pieces.off_b**2 / pieces.a + pieces.a * (8 * UNIT * best) ** 2
    within = below.min() - excess * (1 + 2 * slack.size * UNIT) * slack.sum()
    lowest: np.longdouble = min(within, beyond)
    return lowest
