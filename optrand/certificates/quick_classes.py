r"""Dual bound and value of classification in floats, rounded to the safe side.

At the output that is the label :math:`y` the price of the cheapest column is :math:`\sum_z w(-\alpha_z) + w(-p_y -
\alpha_y) - w(-\alpha_y)` with :math:`w(c) = c + (E - 1) \min(c, 0)`; at any other output it is the first sum. All are
evaluated, with bounds of their rounding (``docs/mathematics.md``, section 3).
"""

from __future__ import annotations

import math

import numpy as np

from optrand.certificates.extended import UNIT, Extended, assembled_below, excess_above, sum_below
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Dual

__all__ = ["lower_bound", "table_loss"]


def lower_bound(problem: Problem, dual: Dual) -> float:
    """Bound for ``zero_one``; cost ``O(k + n)``.

    Examples
    --------
    >>> import optrand
    >>> solution = optrand.rr_with_prior([0.5, 0.3, 0.2], 1.0)
    >>> 0 <= -lower_bound(solution.problem, solution.dual) - solution.value < 1e-14
    True
    """
    if not isinstance(problem.outputs, Grid):
        return -math.inf
    excess, grid = excess_above(problem.epsilon), problem.outputs.values
    alpha, prior = dual.alpha.astype(np.longdouble), problem.prior.astype(np.longdouble)

    def weighted(costs: Extended) -> Extended:
        prices: Extended = costs + excess * np.minimum(costs, 0)
        return prices

    elsewhere, own = weighted(-alpha), weighted(-prior - alpha)
    total = sum_below(elsewhere) - 4 * UNIT * abs(elsewhere).sum()
    prices = total + (own - elsewhere)
    prices -= 8 * UNIT * (abs(total) + (excess + 1) * (prior + abs(alpha)))
    some = np.isin(problem.labels, grid)
    least = prices[some].min(initial=math.inf)
    if some.sum() < grid.size:
        least = min(least, total)
    return assembled_below(sum_below(alpha), least, problem.k, excess)


def table_loss(problem: Problem, randomizer: Randomizer, close: float) -> float:
    """Minus the probability of a correct output, rounded up.

    Infinite if rows or ratios are off by more than `close`, or an output is not allowed. Cost ``O(k n)``.
    """
    table, outputs = randomizer.matrix, randomizer.outputs
    low, high = table.min(axis=0), table.max(axis=0)
    private = (low >= 0).all() and (high <= math.exp(problem.epsilon) * (1 + close) * low).all()
    allowed = isinstance(problem.outputs, Grid) and np.isin(outputs, problem.outputs.values).all()
    if not (private and allowed and abs(table.sum(axis=1) - 1).max() <= close):
        return math.inf
    rows = np.minimum(np.searchsorted(problem.labels, outputs), problem.k - 1)
    own = table[rows, np.arange(outputs.size)] * (problem.labels[rows] == outputs)
    kept = (problem.prior[rows] * own).astype(np.longdouble)
    return math.nextafter(-float(sum_below(kept) * (1 - 8 * float(np.finfo(float).eps))), math.inf)
