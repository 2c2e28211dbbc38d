r"""Optima of at most two outputs, with their duals: the narrowest interval, and a single label on a grid.

The ends of the narrowest interval with an unbiased randomizer are the outputs of the only one there.

Without a second label every distribution of the outputs is private. With the costs :math:`c(v) = p g(v, y)` and their
lower convex hull :math:`\hat c` the problem is one of a single number, the mean output,

.. math:: \min_m \; \hat c(m) + \tfrac{\lambda p}{2} (m - y)^2,

or :math:`m = y` where no bias is allowed. The mean is an output of the hull, or a mixture of two neighbouring ones. The
multiplier of the mean is the slope of a line that touches the hull there, and that of the row its height.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._validation import Floats, check_labels
from optrand.errors import InvalidInput
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._tabulation import Solution, Stats, tabulate
from optrand.model._problem import Dual, Interval, Problem, unbiased_range, unbiased_regression
from optrand.model._randomizer import Randomizer


def two_ends(labels: ArrayLike, prior: ArrayLike, epsilon: float) -> Mechanism:
    r"""Draw one of two outputs, the ends of the narrowest interval that holds an unbiased randomizer.

    With :math:`E = e^\epsilon` and labels from :math:`y_0` to :math:`y_{k-1}` the ends are :math:`L = (E y_0 - y_{k-1})
    / (E - 1)` and :math:`U = (E y_{k-1} - y_0) / (E - 1)` (:func:`optrand.unbiased_range`), and

    .. math:: \Pr[U \mid y] = x_y := \frac{y - L}{D}, \qquad \Pr[L \mid y] = 1 - x_y, \qquad D = U - L.

    Parameters
    ----------
    labels : (k,) array
        Two or more distinct numbers in any order. They are sorted, and the prior with them.
    prior : (k,) array
        Probabilities, on which the value depends and not the randomizer.
    epsilon : float
        Privacy budget in nats.

    Returns
    -------
    Mechanism
        For unbiased regression with outputs in this interval, of value :math:`\tfrac12 \sum_y p_y (y - L) (U - y)`.

    Notes
    -----
    It is the only unbiased randomizer with outputs there, and the dual proves its value (``docs/mathematics.md``,
    section 6). In floats the ends are off by rounding, of which the bound takes :math:`E` times its share of the
    interval: the certified gap is near 1e-15 at a small epsilon, and some 1e-11 at an epsilon of 7. Cost ``O(k)``.

    Examples
    --------
    >>> mechanism = two_ends([0, 1, 2], [0.5, 0.3, 0.2], math.log(3))
    >>> mechanism.outputs.round(9).tolist(), mechanism.matrix.round(9).tolist()
    ([-1.0, 3.0], [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]])
    >>> round(mechanism.value, 9), mechanism.certificate.gap < 1e-12
    (1.65, True)
    """
    if check_labels(labels).size == 1:
        raise InvalidInput("two_ends needs two labels or more: a single label is its own unbiased output")
    interval = Interval(*unbiased_range(labels, epsilon))
    return tabulate(design_two_ends(unbiased_regression(labels, prior, epsilon, outputs=interval)))


def design_two_ends(problem: Problem) -> Solution:
    """Compute the table of the two ends of a problem's interval in floats, with the dual of :func:`two_ends`.

    The problem is unbiased regression of squared loss on two labels or more, with outputs in an interval. The wider it
    is than the narrowest one, the further the bound lies below the value.
    """
    labels, low, high = problem.labels, problem.outputs.low, problem.outputs.high
    width = high - low
    shares = np.column_stack(((high - labels) / width, (labels - low) / width))
    randomizer = Randomizer(labels, np.array([low, high]), np.clip(shares, 0.0, 1.0), problem.epsilon)
    return Solution(problem, randomizer, _compute_dual(problem), Stats("two_ends"))


def _compute_dual(problem: Problem) -> Dual | None:
    """Return the multipliers of :func:`two_ends`, or None if floats cannot hold them."""
    prior, epsilon, interval = problem.prior, problem.epsilon, problem.outputs
    width = interval.high - interval.low
    # Measured from the middle of the interval, nothing cancels.
    origin = float(interval.low + width / 2)
    apart = problem.labels - origin
    with np.errstate(over="ignore", invalid="ignore"):
        # E / (E^2 - 1) and E / (E - 1), which overflow at no epsilon.
        steep = max(-np.exp(-epsilon) / np.expm1(-2 * epsilon) / 2, -1 / np.expm1(-epsilon) / 8)
        end = math.fsum(prior) * steep * width**2
        # Reduced costs at the two ends of the interval (section 6), where the parabola is zero.
        at_low, at_high = np.zeros(problem.k), np.zeros(problem.k)
        at_low[[0, -1]] = -end, np.exp(epsilon) * end
        at_high[[0, -1]] = np.exp(epsilon) * end, -end
        beta = (at_low - at_high) / width - prior * apart
        alpha = prior * (apart**2 + width**2 / 4) / 2 - (at_low + at_high) / 2
    return Dual(alpha, beta, origin) if np.isfinite(alpha).all() and np.isfinite(beta).all() else None


def design_one_label(problem: Problem) -> Solution | None:
    """Compute the best distribution of outputs on a grid for a single label, and its dual.

    Return None if no bias is allowed and the label is not an allowed mean. Cost ``O(n)``.
    """
    grid: Floats = problem.outputs.values  # type: ignore[union-attr]
    pull = float(problem.bias_weights[0])
    costs, apart = problem.prior[0] * problem.loss_table(grid)[0], grid - problem.labels[0]
    if not pull:
        best = int(costs.argmin())
        return _mix_two(problem, best, best, 0.0, 0.0)
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
        return _mix_two(problem, int(hull[at]), int(hull[at]), 0.0, slope)
    share = (mean - x[at - 1]) / (x[at] - x[at - 1])
    return _mix_two(problem, int(hull[at - 1]), int(hull[at]), float(share), slope)


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


def _mix_two(problem: Problem, left: int, right: int, share: float, slope: float) -> Solution:
    """Return a mixture of two outputs, with the share of the right one, and multipliers measured from the left one."""
    grid: Floats = problem.outputs.values  # type: ignore[union-attr]
    used, table = (grid[[left, right]], [[1 - share, share]]) if left < right else (grid[[left]], [[1.0]])
    cost = problem.prior[0] * problem.loss_table(grid[[left]])[0]
    dual = Dual(cost, np.array([slope]), float(grid[left]))
    return Solution(
        problem, Randomizer(problem.labels, used, np.array(table), problem.epsilon), dual, Stats("one label")
    )
