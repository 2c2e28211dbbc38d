r"""The multipliers that prove randomized response on bins optimal, against all sets of labels and all outputs.

With the lengths :math:`K_S + \lambda` of :mod:`optrand.solvers.bins._costs` no column has a negative reduced cost
exactly if :math:`\sum_{y \in S} \alpha_y \leq K_S + \lambda` for every set :math:`S` of labels, with equality for the
bins in use. For intervals this says that the running totals of multipliers are *potentials*, no further apart than any
arc between them is long. Taking a label out of its bin, or into another one, says that :math:`p_y g(v, y) \leq \alpha_y
\leq p_y g(w, y)` with :math:`v` the output of its own bin and :math:`w` the nearest other output.

Intervals are enough where both ends of a label's *reach*, the outputs with :math:`p_y g(\cdot, y) < \alpha_y`, increase
with the label (``docs/mathematics.md``, section 7). From bin to bin the bounds make it so. Within a bin the first try
does: all labels of a bin are at one share of the way between their bounds. With a few dozen labels that is enough for
some five partitions in six. The others close once the totals are moved to potentials near them, which restores all
intervals at once. Where this puts reaches out of order, both ends are moved to the nearest increasing numbers (isotonic
regression under the prior), and the totals to potentials again, by turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optrand.base._validation import Floats
from optrand.certificates._certificate import PROVEN
from optrand.model._problem import Dual
from optrand.solvers._gaps import LARGE, estimated_bound
from optrand.solvers._positions import Positions
from optrand.solvers.bins._costs import Bins, Partition
from optrand.solvers.bins._monge import shortest_paths


def bin_dual(partition: Partition) -> Floats:
    """Return multipliers of the labels' rows for a partition into bins.

    Parameters
    ----------
    partition : Partition
        Outputs must increase from bin to bin. Only an optimal partition has a tight bound.

    Returns
    -------
    (k,) array
        ``alpha``: of those found, the ones with the largest estimated bound. At an epsilon above 20, where floats do
        not decide on bounds, they are repaired once.
    """
    shares = _Shares.of(partition)
    position = shares.positions.even()
    if partition.bins.problem.epsilon > LARGE:
        return shares.alpha(shares.mend(position))
    best, least = position, shares.gap(position)
    # Largest number of repairs: of 2,600 random problems 1 % took more than 7, and one took 128.
    turns = 200
    for turn in range(turns):
        # Well below the gap that is asked of a certificate, since this one is an estimate.
        if least <= PROVEN / 5:
            break
        # Each repair undoes some of the other: moving to potentials and putting reaches in order.
        position = shares.order(position) if turn % 2 else shares.mend(position)
        gap = shares.gap(position)
        if gap < least:
            best, least = position, gap
    return shares.alpha(best)


def extremes(bins: Bins, penalty: float) -> tuple[Floats, Floats]:
    """Return the smallest and the largest potentials of each node: no arc is shorter than its ends are apart.

    They are the distances to the last node, negative, and those from the first one. The length of each arc is the cost
    of its bin, and the penalty. Both are equal at the nodes of shortest paths.
    """
    far = np.full(bins.problem.k, np.inf)
    largest = _below(bins, np.append(0.0, far), penalty)
    return _above(bins, np.append(-far, largest[-1]), penalty), largest


def potentials(bins: Bins, near: Floats, penalty: float, between: tuple[Floats, Floats]) -> Floats:
    """Return potentials near some numbers, which are clipped between the extremes.

    The largest potentials below them and the smallest above are shortest and longest distances as well, on paths that
    begin at any node. The answer is halfway between.
    """
    clipped = np.clip(near, *between)
    halfway: Floats = (_below(bins, clipped, penalty) + _above(bins, clipped, penalty)) / 2
    return halfway


def _below(bins: Bins, offers: Floats, penalty: float) -> Floats:
    """Return the largest potentials below some numbers."""
    return shortest_paths(lambda i, j: bins.costs(i, j) + penalty, offers)[0]


def _above(bins: Bins, offers: Floats, penalty: float) -> Floats:
    """Return the smallest potentials above some numbers."""
    k = offers.size - 1
    return -shortest_paths(lambda i, j: bins.costs(k - j, k - i) + penalty, -offers[::-1])[0][::-1]


@dataclass(frozen=True, eq=False)
class _Shares:
    """Multipliers of a partition between their bounds.

    Attributes
    ----------
    positions : Positions
        The groups are the bins. A label's lower bound is its loss at the output of its bin, the upper one that at the
        nearest other output. Both are the same if there is one bin.
    """

    partition: Partition
    positions: Positions

    @classmethod
    def of(cls, partition: Partition) -> _Shares:
        bins, outputs, spread = partition.bins, partition.outputs, partition.spread
        lowest = bins.own(spread(outputs))
        widths = np.zeros(lowest.size)
        if outputs.size > 1:
            # The nearest other output is that of a neighbouring bin, as losses are convex.
            others = np.append(outputs[1], outputs[:-1]), np.append(outputs[1:], outputs[-2])
            highest = np.minimum(*(bins.own(spread(other)) for other in others))
            widths = np.maximum(highest - lowest, 0.0)
        sums = np.maximum(bins.excess(outputs) / bins.gain + partition.penalty, 0.0)
        return cls(partition, Positions(partition.starts, lowest, widths, sums))

    @property
    def penalty(self) -> float:
        return max(self.partition.penalty, 0.0)

    @cached_property
    def extremes(self) -> tuple[Floats, Floats]:
        return extremes(self.partition.bins, self.penalty)

    def alpha(self, position: Floats) -> Floats:
        """Return the multipliers of some positions."""
        alpha: Floats = self.positions.multipliers(position)
        return alpha

    def gap(self, position: Floats) -> float:
        """Estimate by which share of the loss the bound of some positions falls short of it."""
        dual, value = Dual(self.alpha(position), np.zeros(position.size)), self.partition.value
        return (value - estimated_bound(self.partition.bins.problem, dual)) / (abs(value) or 1.0)

    def mend(self, position: Floats) -> Floats:
        """Move positions so that no interval has a negative reduced cost."""
        totals = np.concatenate(([0.0], np.cumsum(self.alpha(position))))
        return self.positions.place(np.diff(potentials(self.partition.bins, totals, self.penalty, self.extremes)))

    def order(self, position: Floats) -> Floats:
        """Move positions so that both ends of the labels' reaches increase with the label, or nearly so."""
        from scipy.optimize import isotonic_regression

        bins = self.partition.bins
        ends = bins.reaches(self.alpha(position) / bins.prior)
        low, high = (isotonic_regression(end, weights=bins.prior).x for end in ends)
        # The level of a reach is the loss at either end, or the mean if both ends leave a choice. Under Poisson log
        # loss the reach of label 0 begins at 0, whatever its level is.
        above = bins.own(high)
        below = np.where(low > 0, bins.own(low), above) if bins.problem.loss.positive_outputs else bins.own(low)
        return self.positions.place((above + below) / 2)
