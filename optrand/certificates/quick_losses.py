r"""Loss of randomized response on bins in floats, rounded up.

With the masses :math:`c_j` of the bins, their outputs :math:`v_j`, and the bin :math:`j(y)` of a label it is

.. math:: \sum_j c_j \sum_y p_y g(v_j, y) + (E - 1) \sum_y p_y c_{j(y)} g(v_{j(y)}, y).
"""

from __future__ import annotations

import math

import numpy as np

from optrand.certificates.extended import UNIT, Extended, sum_above
from optrand.certificates.quick_convex import LARGEST
from optrand.model import losses
from optrand.model.arcs import Arcs
from optrand.model.problem import Problem

__all__ = ["bins_loss"]


def bins_loss(problem: Problem, arcs: Arcs, close: float) -> float:
    """Loss of arcs that part the labels, where bias is free.

    Infinite for other arcs or losses, for rows that are off by more than `close`, and for outputs that are not allowed.
    Cost ``O(k n)``, up to :data:`~optrand.certificates.quick_convex.LARGEST`.
    """
    if arcs.n * problem.k > LARGEST or not _parted(arcs):
        return math.inf
    excess = np.longdouble(math.expm1(problem.epsilon))
    masses, outputs = arcs.masses.astype(np.longdouble), arcs.outputs.astype(np.longdouble) + arcs.rests
    low, high = problem.outputs.low, problem.outputs.high
    rows = masses.sum() + excess * masses
    if not (abs(rows - 1).max() <= close and (masses >= 0).all() and low <= outputs.min() and outputs.max() <= high):
        return math.inf
    labels, prior = problem.labels.astype(np.longdouble), problem.prior.astype(np.longdouble)
    own = np.repeat(np.arange(arcs.n), arcs.last - arcs.first + 1)
    with np.errstate(all="ignore"):
        each, sizes = _costs(problem, outputs[:, np.newaxis], labels)
        weights = masses[:, np.newaxis] * prior
        weights[own, np.arange(problem.k)] *= 1 + excess
        above = sum_above((weights * each).ravel()) + 16 * UNIT * (weights * sizes).sum()
    value = math.nextafter(float(above), math.inf)
    return value if math.isfinite(value) else math.inf


def _parted(arcs: Arcs) -> bool:
    """Whether every label is in one arc, in order."""
    ends = arcs.first[0] == 0 and arcs.last[-1] == arcs.k - 1
    return bool(ends and np.array_equal(arcs.first[1:], arcs.last[:-1] + 1))


def _costs(problem: Problem, outputs: Extended, labels: Extended) -> tuple[Extended, Extended]:
    """Losses, and the sizes of their terms."""
    if problem.loss == losses.squared:
        squares = np.square(outputs - labels) / 2
        return squares, squares
    if problem.loss == losses.absolute:
        distances: Extended = abs(outputs - labels)
        return distances, distances
    if problem.loss == losses.poisson_log:
        logs: Extended = np.log(outputs)
        values, sizes = outputs - labels * logs, outputs + labels * (abs(logs) + 1)
        return values.astype(np.longdouble), sizes.astype(np.longdouble)
    nothing: Extended = np.full(np.broadcast_shapes(outputs.shape, labels.shape), math.inf, np.longdouble)
    return nothing, nothing
