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
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from optrand.base.validation import Floats
from optrand.model.problem import Problem
from optrand.solvers.bins.costs import BinCosts, Starts, bin_costs, spread
from optrand.solvers.bins.monge import Distances, distances

__all__ = ["BinGraph"]


@dataclass(frozen=True, eq=False)
class BinGraph:
    """All ``k (k + 1) / 2`` bins of a problem without bias penalty.

    Attributes
    ----------
    problem : Problem
        With a positive prior.
    """

    problem: Problem
    _known: dict[tuple[float, bytes], tuple[Floats, Floats]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def costs(self) -> BinCosts:
        """Costs of bins under the problem's loss."""
        return bin_costs(self.problem)

    @cached_property
    def gain(self) -> float:
        """``exp(epsilon) - 1``."""
        return math.expm1(self.problem.epsilon)

    def outputs(self, starts: Starts) -> Floats:
        """Return the best allowed output of each bin of a partition."""
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
        r""":math:`\lambda`: cost of one more bin, for a partition."""
        return (self.costs.least - math.fsum(self.lengths(starts))) / (self.gain + starts.size)

    def value(self, starts: Starts) -> float:
        """Return the loss of a partition."""
        lengths, bins = math.fsum(self.lengths(starts)), starts.size
        return (self.gain * lengths + bins * self.costs.least) / (self.gain + bins)

    def distances(self, penalty: float, hint: Starts, *, stride: int = 1) -> Distances:
        """Return shortest paths from node 0 with the lengths ``K + penalty``, over every `stride`-th node and the last.

        Parameters
        ----------
        penalty : float
            At least 0.
        hint : (m,) array of int
            Bins that are near the best ones, by the number of their first node.
        stride : int
        """
        nodes = np.append(np.arange(0, self.problem.k, stride), self.problem.k)
        offers = np.full(nodes.size, math.inf)
        offers[0] = 0.0
        return distances(lambda i, j: self.costs.between(nodes[i], nodes[j]) + penalty, offers, hint)

    def potentials(self, near: Floats, penalty: float, starts: Starts) -> Floats:
        """Return potentials near some others: no arc is shorter than the difference at its ends.

        Parameters
        ----------
        near : (k + 1,) array
            Wanted potential of each node.
        penalty : float
            The length of each arc is that of its bin and this.
        starts : (m,) array of int
            A shortest path.

        Returns
        -------
        (k + 1,) array
            0 at the first node.

        Notes
        -----
        Distances from the first node are potentials, the largest ones, and so are distances to the last node, negative,
        the smallest. Where `near` is clipped to lie between them, the largest potentials below it and the smallest
        above it are shortest and longest distances once more; the answer is halfway between.
        """
        largest, smallest = self._extremes(penalty, starts)
        clipped = np.clip(near, smallest, largest)
        halfway: Floats = (self._below(clipped, penalty, starts) + self._above(clipped, penalty, starts)) / 2
        return halfway

    def _extremes(self, penalty: float, starts: Starts) -> tuple[Floats, Floats]:
        """Return the largest and the smallest potentials."""
        key = (penalty, starts.tobytes())
        if key not in self._known:
            far = np.full(self.problem.k + 1, math.inf)
            far[0] = 0.0
            largest = self._below(far, penalty, starts)
            smallest = self._above(np.append(-far[:0:-1], largest[-1]), penalty, starts)
            self._known[key] = largest, smallest
        return self._known[key]

    def _below(self, offers: Floats, penalty: float, starts: Starts) -> Floats:
        """Return the largest potentials below some numbers."""
        return distances(lambda i, j: self.costs.between(i, j) + penalty, offers, starts).lengths

    def _above(self, offers: Floats, penalty: float, starts: Starts) -> Floats:
        """Return the smallest potentials above some numbers."""
        k, hint = self.problem.k, self.problem.k - starts[::-1]
        turned = distances(lambda i, j: self.costs.between(k - j, k - i) + penalty, -offers[::-1], hint)
        return -turned.lengths[::-1]
