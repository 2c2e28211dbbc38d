r"""Dual bound of :mod:`optrand.certificates.certificate` for every loss, in rationals.

Labels, priors and multipliers are floats, so they are dyadic rationals; :math:`E = e^\epsilon` is rounded *up*. Losses
of the user's own are evaluated at every value of their grid, from lower bounds.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optrand.base.validation import Floats
from optrand.certificates import absolute as exact_absolute
from optrand.certificates import poisson as exact_poisson
from optrand.certificates import squared as exact_squared
from optrand.certificates import tables
from optrand.certificates.bound import excess_above
from optrand.model import losses
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.solution import Dual

__all__ = ["lower_bound"]


def rationals(numbers: Floats) -> list[Fraction]:
    """Floats as rationals."""
    return [Fraction(x) for x in numbers.tolist()]


def lower_bound(problem: Problem, dual: Dual) -> Fraction:
    """Bound as a rational; multipliers must be zero where ``bias_penalty * prior`` is.

    Cost for ``k`` labels, and on a grid of ``n`` values:

    ===============  ==================  ==================
    loss             off a grid          on a grid
    ===============  ==================  ==================
    squared          ``O(k log k)``      ``O(k log n)``
    absolute         ``O(k log k)``      ``O(k log n + n)``
    Poisson log      ``O(k log k)``      ``O(k log n + n)``
    classification                       ``O(k + n)``
    any other                            ``O(k n)``
    ===============  ==================  ==================
    """
    loss, outputs = problem.loss, problem.outputs
    if loss == losses.squared:
        return exact_squared.lower_bound(problem, dual)
    if loss == losses.absolute:
        return exact_absolute.lower_bound(problem, dual)
    if loss == losses.poisson_log:
        return exact_poisson.lower_bound(problem, dual)
    grid = outputs.values if isinstance(outputs, Grid) else np.empty(0)
    if isinstance(loss, losses.Tabulated):
        return tables.lower_bound(problem, dual, loss, grid)
    if loss == losses.zero_one:
        return tables.lower_bound_of_classes(problem, dual, grid)
    return _of_any_loss(problem, dual, grid)


def _of_any_loss(problem: Problem, dual: Dual, grid: Floats) -> Fraction:
    """Bound for a loss of which only the brackets are known."""
    alpha, beta, labels, prior = (rationals(x) for x in (dual.alpha, dual.beta, problem.labels, problem.prior))
    origin = Fraction(dual.origin)
    total = sum(alpha, Fraction(0)) + sum((b * (y - origin) for b, y in zip(beta, labels, strict=True)), Fraction(0))
    if not problem.unbiased:
        penalty = Fraction(problem.bias_penalty)
        total -= sum((b * b / (2 * penalty * p) for b, p in zip(beta, prior, strict=True) if b), Fraction(0))
    excess, shift = excess_above(problem.epsilon)
    ratio = 1 + Fraction(excess, 1 << shift)
    lowest = _lowest_on_grid(problem, dual, ratio, grid)
    return total + (lowest * problem.k / (ratio + problem.k - 1) if lowest < 0 else lowest / ratio)


def _lowest_on_grid(problem: Problem, dual: Dual, ratio: Fraction, grid: Floats) -> Fraction:
    """Minimum of ``f`` over a grid, from lower bounds of the losses; cost ``O(n k)``."""
    outputs, origin = rationals(grid), Fraction(dual.origin)
    costs = [Fraction(0)] * len(outputs)
    alpha, beta, labels, prior = (rationals(x) for x in (dual.alpha, dual.beta, problem.labels, problem.prior))
    for y, label in enumerate(labels):
        for i, output in enumerate(outputs):
            if isinstance(problem.loss, losses.Loss):
                low = problem.loss.bracket(output, label)[0]
            else:
                low = Fraction(problem.loss.entries[y, i])
            reduced = prior[y] * low - alpha[y] - beta[y] * (output - origin)
            costs[i] += reduced * ratio if reduced < 0 else reduced
    return min(costs)
