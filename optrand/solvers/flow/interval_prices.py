r"""The reduced costs of all intervals at once: which arcs a program lacks.

With the sums of the prior's moments folded into the potentials each reduced cost is a closed form in three differences
of node values, so all ``k (k + 1) / 2`` are a matter of a few passes over a triangle, in blocks of rows.
"""

from __future__ import annotations

import numpy as np

from optrand.base.validation import Floats
from optrand.model.arcs import Indices
from optrand.solvers.flow.program import ArcProgram

__all__ = ["violated_intervals"]

BLOCK = 1 << 20
"""Entries that are worked on at a time."""


def violated_intervals(program: ArcProgram, potentials: Floats, tolerance: float) -> tuple[Indices, Indices]:
    """The first and last labels of the intervals that cost less than ``-tolerance``, those best for their first label.

    At the output ``v`` in the box an interval costs ``cost - moment * v + weight * v**2 / 2``.

    Parameters
    ----------
    program : ArcProgram
        For its problem and its units; its own arcs are priced like all others.
    potentials : (k, sides) array
    tolerance : float
        In units of the program.

    Notes
    -----
    ``O(k^2)`` time, 30 ns for ten intervals, and 8 MB a block.
    """
    (low, high), k = program.box, program.k
    folded = program.folded(potentials)
    nodes, total = program.nodes.ends(folded).T, program.nodes.least * folded[-1]
    found = []
    start = 0
    while start < k:
        stop = min(k, start + max(1, BLOCK // (k - start)))
        cost, moment, weight = (
            total[i] + nodes[i, np.newaxis, start + 1 :] - nodes[i, start:stop, np.newaxis] for i in range(3)
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
