r"""The reduced costs of all intervals at once: which arcs a flow program lacks.

With the sums of the prior's moments folded into the potentials each reduced cost is a closed form in three differences
of node values, so all ``k (k + 1) / 2`` are a matter of a few passes over a triangle, in blocks of rows.
"""

from __future__ import annotations

import numpy as np

from optrand.base.validation import Floats
from optrand.model.arcs import Indices
from optrand.solvers.flow.program import FlowProgram

__all__ = ["cheap", "lacking"]

BLOCK = 1 << 20
"""Entries that are worked on at a time."""


def lacking(program: FlowProgram, potentials: Floats, tolerance: float) -> tuple[Indices, Indices]:
    """The first and last labels of the intervals that cost less than ``-tolerance``, those best for their first label.

    Parameters
    ----------
    program : FlowProgram
        For its problem and its units; its own arcs are priced like all others.
    potentials : (k, 2) array
    tolerance : float
        In units of the program.

    Notes
    -----
    ``O(k^2)`` time, 30 ns for ten intervals, and 8 MB a block.
    """
    least, excess = program.least, program.excess
    prior = program.problem.prior / program.problem.prior.sum()
    labels = program.labels.astype(np.longdouble)
    moments = np.stack((prior, prior * labels, prior * labels**2 / 2)).astype(np.longdouble)
    sums = np.concatenate((np.zeros((3, 1), moments.dtype), np.cumsum(moments, axis=1)), axis=1)
    inner = np.concatenate((np.zeros((1, 2)), potentials[:-1], excess * potentials[-1:])).T
    signs = np.array([-1.0, 1.0])
    nodes = np.stack((excess * sums[0], excess * sums[1] + inner[1], excess * sums[2] - inner[0])).astype(np.float64)
    ground = (least * sums[:, -1]).astype(np.float64)
    ground[[2, 1]] += signs * least * potentials[-1]
    return cheap(ground, nodes, program.box, tolerance)


def cheap(ground: Floats, nodes: Floats, box: tuple[float, float], tolerance: float) -> tuple[Indices, Indices]:
    """The first and last labels of the intervals that cost less than ``-tolerance``, those best for their first label.

    At the output ``v`` in the box an interval costs ``cost - moment * v + weight * v**2 / 2``.

    Parameters
    ----------
    ground : (3,) array
        Weight, moment and cost that every interval has.
    nodes : (3, k + 1) array
        What they rise by from the node where an interval begins to that where it ends.
    """
    low, high = box
    k = nodes.shape[1] - 1
    found = []
    start = 0
    while start < k:
        stop = min(k, start + max(1, BLOCK // (k - start)))
        weight, moment, cost = (
            ground[i] + nodes[i, np.newaxis, start + 1 :] - nodes[i, start:stop, np.newaxis] for i in range(3)
        )
        below = np.arange(k - start) < np.arange(stop - start)[:, np.newaxis]
        weight[below] = 1.0
        # At an epsilon beyond the digits of floats a weight may be lost to rounding: no price, and no arc to add.
        with np.errstate(divide="ignore", invalid="ignore"):
            output = np.clip(moment / weight, low, high)
            weight *= output
            weight /= 2
            moment -= weight
            moment *= output
            cost -= moment
        cost[below] = np.inf
        padded = np.pad(cost, ((0, 0), (1, 1)), constant_values=np.inf)
        dips = (cost < -tolerance) & (cost <= padded[:, :-2]) & (cost <= padded[:, 2:])
        found.append(np.stack(np.nonzero(dips)) + start)
        start = stop
    first, last = np.hstack(found)
    return first, last
