r"""Local search for better places of a given number of outputs, down the slope of the optimal value.

Let :math:`M` be the optimum on a grid and :math:`\beta` its multipliers of the means. The output :math:`v_i` enters the
Lagrangian as :math:`\sum_y M_{y i} \big(p_y (v_i - y)^2 / 2 - \beta_y v_i\big)`, so where the optimal value is
differentiable in :math:`v_i` its slope is

.. math:: \sum_y M_{y i} \big( p_y (v_i - y) - \beta_y \big).

The value is not convex in the outputs: the search ends in a local optimum.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.arithmetic import privacy_ratio
from optrand.base.validation import Floats, rectangular
from optrand.errors import Infeasible, NotCertified
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.solution import Solution
from optrand.solvers import design

__all__ = ["descend", "optimum_on", "slopes"]

STEPS = 40
"""Rounds of L-BFGS that one descent may take, with a solve or two each."""

MARGIN = 1e-9
"""Distance of the outermost outputs beyond the last feasible place, relative to the range of the labels."""

WORSE = 1e3
"""Loss of a place without an answer, in units of the start's loss."""


def optimum_on(problem: Problem, positions: ArrayLike) -> Solution | None:
    """Optimum on these outputs, stated without those that it does not use; None where there is none.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0)
    >>> optimum_on(problem, [0, 1]) is None, optimum_on(problem, [-4, -1, 2, 5]).randomizer.outputs.tolist()
    (True, [-1.0, 2.0])
    """
    grid = Grid(np.unique(rectangular(positions, "positions")))
    try:
        solution = design(replace(problem, outputs=grid))
    except (Infeasible, NotCertified):
        return None
    used = solution.randomizer.outputs
    return solution if used.size == grid.values.size else optimum_on(problem, used)


def slopes(solution: Solution, positions: Floats) -> Floats:
    r"""Slope of the optimal value in each output; 0 for a position that the solution does not use.

    Examples
    --------
    Two outputs have the loss :math:`\sum_y p_y (v_1 - y)(y - v_0) / 2`:

    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0)
    >>> slopes(optimum_on(problem, [-1, 2]), np.array([-1.0, 2.0])).round(9).tolist()
    [-0.75, 0.75]
    """
    problem, found = solution.problem, solution.randomizer
    if solution.dual is None:
        return np.zeros(positions.size)
    pull = problem.prior[:, np.newaxis] * (found.outputs - problem.labels[:, np.newaxis])
    slope = np.einsum("ki,ki->i", found.matrix, pull - solution.dual.beta[:, np.newaxis])
    at = np.minimum(np.searchsorted(found.outputs, positions), found.n - 1)
    return np.where(found.outputs[at] == positions, slope[at], 0.0)


def descend(problem: Problem, start: Floats, *, until: float = -math.inf) -> Solution | None:
    """Move outputs until the optimal value is at most `until`, or no small move improves it.

    Parameters
    ----------
    problem : Problem
        Squared loss, outputs on the line or an interval.
    start : (n,) array
        For an unbiased problem the outermost are first moved to where it is feasible.
    until : float
        A loss that is good enough.

    Returns
    -------
    Solution or None
        The best that was found, on at most `n` outputs.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0)
    >>> found = descend(problem, np.array([-4.0, 5.0]))
    >>> optimum = optrand.certify(optrand.solve(problem)).require()
    >>> round(found.value, 6), round(optimum.lower, 6)
    (0.460337, 0.460337)
    """
    from scipy.optimize import minimize

    unit = float(np.ptp(problem.labels)) or 1.0
    low, high = _limits(problem, start.size)
    start = np.clip(start, low, high)
    best = optimum_on(problem, start)
    if best is None or best.value <= until:
        return best
    scale = abs(best.value) or 1.0

    def objective(x: Floats) -> tuple[float, Floats]:
        nonlocal best
        positions = np.clip(unit * x, low, high)
        found = optimum_on(problem, positions)
        if found is None:
            return WORSE, np.zeros(x.size)
        if best is None or found.value < best.value:
            best = found
            if best.value <= until:
                raise StopIteration
        return found.value / scale, slopes(found, positions) * unit / scale

    try:
        minimize(
            objective,
            start / unit,
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip((low / unit).tolist(), (high / unit).tolist(), strict=True)),
            options={"maxiter": STEPS},
        )
    except StopIteration:
        return best
    return best


def _limits(problem: Problem, n: int) -> tuple[Floats, Floats]:
    """Range in which each output may move; the outermost of an unbiased problem no further inward than feasible."""
    low, high = np.full(n, problem.outputs.low), np.full(n, problem.outputs.high)
    if problem.unbiased and n > 1:
        width = float(np.ptp(problem.labels))
        reach = width / float(privacy_ratio(problem.epsilon) - 1) + MARGIN * width
        high[0] = max(problem.labels[0] - reach, problem.outputs.low)
        low[-1] = min(problem.labels[-1] + reach, problem.outputs.high)
    return low, high
