r"""The graph whose shortest path is the best partition into bins.

Nodes are the gaps between labels, ``0 ... k``; the arc from ``a`` to ``b + 1`` is the bin of the labels ``a ... b``.
Each of the ``m`` bins of a partition has the mass :math:`1 / (E + m - 1)`, so that with :math:`x = E - 1` and the
costs :math:`\Phi^* + x K_S` of :mod:`optrand.solvers.bins.costs` its loss is a ratio of two path sums,

.. math:: V = \frac{x \sum_S K_S + m \Phi^*}{x + m}, \qquad
          \lambda = \frac{\Phi^* - V}{x} = \frac{\Phi^* - \sum_S K_S}{x + m}.

A partition is best exactly if it is a shortest path under the lengths :math:`K_S + \lambda` of its own
:math:`\lambda`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from optrand.base.validation import Floats
from optrand.model.problem import Problem
from optrand.solvers.bins.costs import BinCosts, Starts, bin_costs

__all__ = ["BinGraph"]

BLOCK = 1 << 17
"""Arcs whose costs are worked out at a time: about what a processor's cache holds."""

KEPT = 1 << 24
"""Arcs whose costs are kept from one path to the next, 128 MB; beyond that they are worked out again."""


@dataclass(frozen=True, eq=False)
class BinGraph:
    """All ``k (k + 1) / 2`` bins of a problem without bias penalty, by rows of one first label.

    Attributes
    ----------
    problem : Problem
        With a positive prior.
    """

    problem: Problem
    _kept: dict[int, Floats] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def costs(self) -> BinCosts:
        """Costs of bins under the problem's loss."""
        return bin_costs(self.problem)

    @cached_property
    def gain(self) -> float:
        """``exp(epsilon) - 1``."""
        return math.expm1(self.problem.epsilon)

    def outputs(self, starts: Starts) -> Floats:
        """The best output of each bin of a partition, among those that the problem allows."""
        allowed = self.problem.outputs
        outputs: Floats = np.clip(self.costs.origin + self.costs.outputs(starts), allowed.low, allowed.high)
        return outputs

    def lengths(self, starts: Starts) -> Floats:
        """``K`` of each bin of a partition, summed afresh over its labels."""
        outputs = self.costs.outputs(starts)
        own = self.costs.own(spread(outputs, starts, self.problem.k))
        lengths: Floats = np.add.reduceat(own, starts) + self.costs.excess(outputs) / self.gain
        return lengths

    def penalty(self, starts: Starts) -> float:
        r""":math:`\lambda`: what one more bin costs, for a partition."""
        return (self.costs.least - math.fsum(self.lengths(starts))) / (self.gain + starts.size)

    def value(self, starts: Starts) -> float:
        """The loss of a partition."""
        lengths, bins = math.fsum(self.lengths(starts)), starts.size
        return (self.gain * lengths + bins * self.costs.least) / (self.gain + bins)

    def shortest(self, penalty: float) -> Starts:
        """The partition of least ``sum (K + penalty)``, of equal ones one with long bins."""
        k = self.problem.k
        distances, following = np.zeros(k + 1), np.zeros(k, dtype=np.intp)
        for a, row in self._rows(backwards=True):
            lengths = row + distances[a + 1 :]
            best = int(lengths.argmin())
            distances[a], following[a] = lengths[best] + penalty, a + 1 + best
        starts = [0]
        while following[starts[-1]] < k:
            starts.append(int(following[starts[-1]]))
        return np.array(starts, dtype=np.intp)

    def potentials(self, near: Floats, penalty: float) -> Floats:
        """Potentials near some others: no arc is shorter than its two ends are apart, and shortest paths are as long.

        Parameters
        ----------
        near : (k + 1,) array
            What the potentials should be at each node.
        penalty : float
            The length of each arc is that of its bin and this.

        Returns
        -------
        (k + 1,) array
            0 at the first node.

        Notes
        -----
        Distances from the first node are potentials, the largest ones, and so are distances to the last node, negative,
        the smallest. Where `near` is clipped to lie between them, the largest potentials below it and the smallest
        above it are shortest and longest distances once more; the answer is halfway between. Three looks at all arcs.
        """
        k = self.problem.k
        left, done = np.zeros(k + 1), np.full(k + 1, math.inf)
        for a, lengths in self._rows(backwards=True):
            left[a] = (lengths + left[a + 1 :]).min() + penalty
        done[0] = 0.0
        below, clipped = done.copy(), np.zeros(k + 1)
        for a, lengths in self._rows():
            clipped[a] = min(max(near[a], left[0] - left[a]), done[a])
            below[a] = min(below[a], clipped[a])
            np.minimum(done[a + 1 :], lengths + (done[a] + penalty), out=done[a + 1 :])
            np.minimum(below[a + 1 :], lengths + (below[a] + penalty), out=below[a + 1 :])
        clipped[k] = below[k] = left[0]
        above = clipped
        for a, lengths in self._rows(backwards=True):
            above[a] = max(above[a], (above[a + 1 :] - lengths).max() - penalty)
        halfway: Floats = (above + below) / 2
        return halfway

    def _rows(self, *, backwards: bool = False) -> Iterator[tuple[int, Floats]]:
        """Each label, and the lengths of the bins that begin there."""
        for start, rows in self._blocks(backwards=backwards):
            for i in range(rows.shape[0])[:: -1 if backwards else 1]:
                yield start + i, rows[i, i:]

    def _blocks(self, *, backwards: bool = False) -> Iterator[tuple[int, Floats]]:
        """The first label of each block of rows, and the block."""
        k = self.problem.k
        step = max(1, BLOCK // k)
        starts = range(0, k, step)
        for start in reversed(starts) if backwards else starts:
            rows = self._kept.get(start)
            if rows is None:
                rows = self.costs.rows(start, min(start + step, k))
                if k * (k + 1) // 2 <= KEPT:
                    self._kept[start] = rows
            yield start, rows


def spread(amounts: Floats, starts: Starts, k: int) -> Floats:
    """Amounts of bins, repeated at each of their labels."""
    spread: Floats = np.repeat(amounts, np.diff(np.append(starts, k)))
    return spread
