r"""A single label with outputs on a grid: one output, or two in a mixture, with the dual.

Without a second label every distribution of the outputs is private. With the costs :math:`c(v) = p g(v, y)` and their
lower convex hull :math:`\hat c` the problem is one of a single number, the mean output,

.. math:: \min_m \; \hat c(m) + \tfrac{\lambda p}{2} (m - y)^2,

or :math:`m = y` where no bias is allowed. The mean is an output of the hull, or a mixture of two neighbouring ones. The
multiplier of the mean is the slope of a line that touches the hull there, and that of the row its height.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optrand.base._validation import Floats
from optrand.model._problem import Dual, Grid, Problem
from optrand.model._randomizer import Randomizer, Solution, Stats


def design_one_label(problem: Problem) -> Solution | None:
    """Compute the best distribution of outputs on a grid for a single label, and its dual.

    Return None if no allowed mean is the label where no bias is allowed. Cost ``O(n)``.
    """
    if problem.k > 1 or not isinstance(problem.outputs, Grid):
        return None
    grid, pull = problem.outputs.values, float(problem.bias_weights[0])
    costs, apart = problem.prior[0] * problem.loss_table(grid)[0], grid - problem.labels[0]
    if not pull:
        best = int(costs.argmin())
        return _solution(problem, best, best, 0.0, 0.0)
    hull = _lower_hull(apart, costs)
    x = apart[hull]
    slopes = np.diff(costs[hull]) / np.diff(x)
    if problem.unbiased:
        # The first corner at the label or beyond it.
        at = int(np.searchsorted(x, 0.0))
        if at == x.size or (at == 0 and x[0] > 0):
            return None
        # At a corner the middle of both slopes keeps all other costs above the line in floats, too.
        mean, slope = 0.0, float(slopes[max(at - 1, 0) : at + (x[at] == 0)].mean())
    else:
        # The first corner beyond which costs and penalty together rise.
        at = int(np.flatnonzero(np.append(slopes, np.inf) + pull * x >= 0)[0])
        mean, slope = float(x[at]), -pull * float(x[at])
        if at and slopes[at - 1] > slope:
            # They rise before that corner already: the mean is inside of the edge.
            mean, slope = float(-slopes[at - 1] / pull), float(slopes[at - 1])
    if x[at] == mean:
        return _solution(problem, int(hull[at]), int(hull[at]), 0.0, slope)
    share = (mean - x[at - 1]) / (x[at] - x[at - 1])
    return _solution(problem, int(hull[at - 1]), int(hull[at]), float(share), slope)


def _lower_hull(x: Floats, costs: Floats) -> NDArray[np.intp]:
    """Return the corners of the lower convex hull of some points, from left to right (Andrew 1979)."""
    corners = list[int]()
    for i, (place, cost) in enumerate(zip(x.tolist(), costs.tolist(), strict=True)):
        while len(corners) > 1:
            before, last = corners[-2:]
            rise = (costs[last] - costs[before]) * (place - x[before])
            if rise < (cost - costs[before]) * (x[last] - x[before]):
                break
            corners.pop()
        corners.append(i)
    return np.array(corners)


def _solution(problem: Problem, left: int, right: int, share: float, slope: float) -> Solution:
    """Return a mixture of two outputs, with the share of the right one, and multipliers measured from the left one."""
    grid: Floats = problem.outputs.values  # type: ignore[union-attr]
    used, table = (grid[[left, right]], [[1 - share, share]]) if left < right else (grid[[left]], [[1.0]])
    cost = problem.prior[0] * problem.loss_table(grid[[left]])[0]
    dual = Dual(cost, np.array([slope]), float(grid[left]))
    return Solution(
        problem, Randomizer(problem.labels, used, np.array(table), problem.epsilon), dual, Stats("one label")
    )
