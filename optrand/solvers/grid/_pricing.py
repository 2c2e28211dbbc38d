r"""Reduced costs of staircase columns on a grid, in floats: they show which columns are missing, and prove nothing.

For multipliers :math:`\alpha, \beta` write :math:`h_y(v) = p_y g(v, y) - \alpha_y - \beta_y (v - o)`, where :math:`o`
is the origin of the dual. The cheapest column :math:`s \in [1, E]^k` of an epsilon-DP table at output :math:`v` costs

.. math:: f(v) = \min_s \sum_y s_y h_y(v) = \sum_y \big( h_y(v) + (E - 1) \min(h_y(v), 0) \big), \qquad E = e^\epsilon,

attained by the staircase column of :math:`S = \{y : h_y(v) < 0\}`. The proven bound that follows from its least value
is :func:`optrand.lower_bound`.
"""

from __future__ import annotations

import math

import numpy as np

from optrand.base._validation import Floats
from optrand.model._problem import Dual, Problem
from optrand.model._randomizer import BLOCK


def reduced_costs(problem: Problem, dual: Dual, outputs: Floats) -> Floats:
    """Compute :math:`h_y(v)` of each label at some outputs, shape ``(k, n)``."""
    with np.errstate(over="ignore", invalid="ignore"):
        prior = problem.prior[:, np.newaxis]
        weighted = np.where(prior > 0, prior * problem.loss_table(outputs), 0.0)
        slopes = dual.beta[:, np.newaxis] * (outputs - dual.origin)
        costs: Floats = weighted - dual.alpha[:, np.newaxis] - slopes
        return costs


def price(problem: Problem, dual: Dual, outputs: Floats) -> Floats:
    """Evaluate :math:`f` at some outputs. Cost ``O(k n)``, in blocks.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.regression([0, 1], [0.5, 0.5], 1.0)
    >>> price(problem, Dual([0.0, 0.1], [0.0, 0.0]), np.array([0.0, 1.0])).round(3).tolist()
    [0.15, -0.022]
    """
    costs, step = np.empty(outputs.size), max(1, BLOCK // problem.k)
    for start in range(0, outputs.size, step):
        block = slice(start, start + step)
        each = reduced_costs(problem, dual, outputs[block])
        with np.errstate(over="ignore", invalid="ignore"):
            terms = np.where(each < 0, math.exp(problem.epsilon), 1.0) * each
            # Along contiguous memory numpy adds in pairs, so that rounding grows with log k.
            costs[block] = np.ascontiguousarray(terms.T).sum(axis=1)
    return costs
