r"""Randomized response on bins: the best epsilon-DP randomizer without a bias penalty.

[GKK23] showed (as [B23], Appendix F, restates) that it cuts the sorted labels into ``m`` consecutive bins and applies
randomized response to the bins: the output of the label's own bin has probability :math:`E / (E + m - 1)`, every other
one :math:`1 / (E + m - 1)`. Which bins, and how many, is a ratio of two path sums on a line
(:mod:`optrand.solvers._bin_costs`), which Dinkelbach's method minimises by a few shortest paths.

*The dual* proves the bins optimal against all sets of labels and all outputs. With the lengths :math:`K_S + \lambda` no
column has a negative reduced cost exactly if :math:`\sum_{y \in S} \alpha_y \leq K_S + \lambda` for every set :math:`S`
of labels, with equality for the bins in use. For intervals this says that the running totals of multipliers are
*potentials*, no further apart than any arc between them is long. Taking a label out of its bin, or into another one,
says that :math:`p_y g(v, y) \leq \alpha_y \leq p_y g(w, y)` with :math:`v` the output of its own bin and :math:`w` the
nearest other output.

Intervals are enough where both ends of a label's *reach*, the outputs with :math:`p_y g(\cdot, y) < \alpha_y`, increase
with the label (``docs/mathematics.md``, section 7). From bin to bin the bounds make it so. Within a bin the first try
does: all labels of a bin are at one share of the way between their bounds. With a few dozen labels that is enough for
some five partitions in six. The others close once the totals are moved to potentials near them, which restores all
intervals at once. Where this puts reaches out of order, both ends are moved to the nearest increasing numbers (isotonic
regression under the prior), and the totals to potentials again, by turns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from optrand import losses
from optrand.base._validation import Floats, suggest_parameters
from optrand.certificates._bound import lower_bound
from optrand.certificates._certificate import PROVEN
from optrand.losses import Loss
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._tabulation import Solution, Stats, tabulate
from optrand.model._problem import Dual, Grid, OutputSet, Problem, regression
from optrand.model._randomizer import Arcs, Randomizer
from optrand.solvers._bin_costs import Bins, Nodes, Partition, shortest_paths
from optrand.solvers._interface import GuardedSolver, near_zero
from optrand.solvers._positions import Positions


@dataclass(frozen=True)
class BinPath(GuardedSolver):
    r"""Dinkelbach's method over shortest paths: the optimum without a bias penalty.

    For a guess :math:`r` of the loss, :math:`\min \sum_S (G_S - r)` over partitions into bins :math:`S` is a shortest
    path, where :math:`G_S` is the cost of a bin's column. The loss :math:`\sum_S G_S / (E - 1 + m)` of its ``m`` bins
    is the next guess. Guesses fall, and the one that its own path repeats is the optimum.

    Notes
    -----
    Labels of prior zero have no effect: each goes to the bin of its neighbour, with a multiplier of zero. Memory
    ``O(k log k)``, time ``O(k log^2 k)`` a path, of which two to four are needed over all labels, and a few more over
    every 8th, 64th and so on.

    Examples
    --------
    >>> import optrand
    >>> mechanism = optrand.solve(
    ...     optrand.regression([0, 1, 2, 3], [0.4, 0.3, 0.2, 0.1], 2.0), BinPath()
    ... )
    >>> proof = mechanism.certificate
    >>> proof.gap < 1e-12, round(proof.upper, 6), mechanism.n
    (True, 0.282933, 3)
    """

    refusal = (
        "BinPath() takes a bias penalty of 0 with outputs on the line or an interval, and squared, absolute or Poisson "
        "log loss: use solve(problem), which knows who takes what"
    )

    def accepts(self, problem: Problem) -> bool:
        """No bias penalty, a convex loss with a name, and outputs that are not a grid."""
        convex = problem.loss in (losses.squared, losses.absolute, losses.poisson_log)
        return convex and not problem.bias_penalty and not isinstance(problem.outputs, Grid)

    def _solution(self, problem: Problem) -> Solution:
        kept, total = np.flatnonzero(problem.prior), math.fsum(problem.prior)
        bins = Bins.of(replace(problem, labels=problem.labels[kept], prior=problem.prior[kept] / total))
        partition, paths = best_partition(bins)
        starts, alpha = partition.starts, np.zeros(problem.k)
        alpha[kept] = total * bin_dual(partition)
        # A label of prior zero joins the bin of the nearest kept label, the upper one of two.
        below, above = problem.labels[kept[starts[1:] - 1]], problem.labels[kept[starts[1:]]]
        first = np.concatenate(([0], np.searchsorted(problem.labels, below + (above - below) / 2)))
        last = np.append(first[1:] - 1, problem.k - 1)
        least = math.exp(-problem.epsilon)
        masses = np.full(starts.size, least / (1 + (starts.size - 1) * least))
        arcs = Arcs(problem.k, first, last, partition.allowed_outputs, masses)
        randomizer = Randomizer.of_arcs(problem.labels, arcs, problem.epsilon)
        stats = Stats(repr(self), iterations=paths, status="the path repeats")
        return Solution(problem, randomizer, Dual(alpha, np.zeros(problem.k)), stats)


def best_partition(bins: Bins) -> tuple[Partition, int]:
    """Find the best partition into bins whose outputs increase, and count the shortest paths that it took."""
    best, paths = _search_partition(bins, 1)
    while True:
        # Bins of one output are merged, which is never worse: it saves a column.
        is_new = np.append(True, np.diff(best.allowed_outputs) > 0)
        if is_new.all():
            return best, paths
        best = Partition(bins, best.starts[is_new])


def _search_partition(bins: Bins, stride: int) -> tuple[Partition, int]:
    """Find the best bins that begin at multiples of a number of labels, starting from those of larger multiples."""
    nodes, paths = np.append(np.arange(0, bins.problem.k, stride), bins.problem.k), 0
    best = Partition(bins, nodes[:-1])
    # A path over every eighth node costs an eighth of one over all, of which two to four are enough from its bins.
    if nodes.size > 384:
        best, paths = _search_partition(bins, 8 * stride)
    while True:
        found = Partition(bins, _shortest_path(bins, nodes, max(best.penalty, 0.0)))
        paths += 1
        # Rounding can make two paths of one loss alternate, so the search ends as well when the loss falls no further.
        if np.array_equal(found.starts, best.starts) or not found.value < best.value:
            return best, paths
        best = found


def _shortest_path(bins: Bins, nodes: Nodes, penalty: float) -> Nodes:
    """Return the nodes of the shortest path over some nodes from the first to the last one, without it."""
    offers = np.append(0.0, np.full(nodes.size - 1, math.inf))
    _, before = shortest_paths(lambda i, j: bins.costs(nodes[i], nodes[j]) + penalty, offers)
    path = [int(before[-1])]
    while path[-1]:
        path.append(int(before[path[-1]]))
    return nodes[path[::-1]]


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
    largest = _bound_below(bins, np.append(0.0, far), penalty)
    return _bound_above(bins, np.append(-far, largest[-1]), penalty), largest


def potentials(bins: Bins, near: Floats, penalty: float, between: tuple[Floats, Floats]) -> Floats:
    """Return potentials near some numbers, which are clipped between the extremes.

    The largest potentials below them and the smallest above are shortest and longest distances as well, on paths that
    begin at any node. The answer is halfway between.
    """
    clipped = np.clip(near, *between)
    halfway: Floats = (_bound_below(bins, clipped, penalty) + _bound_above(bins, clipped, penalty)) / 2
    return halfway


def _bound_below(bins: Bins, offers: Floats, penalty: float) -> Floats:
    """Return the largest potentials below some numbers."""
    return shortest_paths(lambda i, j: bins.costs(i, j) + penalty, offers)[0]


def _bound_above(bins: Bins, offers: Floats, penalty: float) -> Floats:
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
        return (value - lower_bound(self.partition.bins.problem, dual)) / (abs(value) or 1.0)

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


@suggest_parameters
def rr_on_bins(
    labels: ArrayLike,
    prior: ArrayLike,
    epsilon: float,
    *,
    loss: Loss = losses.squared,
    outputs: OutputSet | None = None,
) -> Mechanism:
    """Return the optimal randomized response on bins ([B23], Definition 22), which no randomizer of any kind beats.

    Parameters
    ----------
    labels : (k,) array
        Distinct numbers in any order.
    prior : (k,) array
        Their probabilities.
    epsilon : float
        Privacy budget in nats.
    loss : Loss
        Squared, absolute or Poisson log loss.
    outputs : Line or Interval, optional
        The real line by default.

    Returns
    -------
    Mechanism
        Solution of regression with a bias penalty of 0, one interval column per bin.

    Raises
    ------
    InvalidInput
        Arguments without meaning, or outputs on a grid.
    Infeasible
        Poisson log loss where the label is 0 for sure and outputs may come as near to 0 as they like.

    Notes
    -----
    Optimality is [GKK23]'s theorem. The dual proves it for the case at hand. At a large epsilon every label
    of positive prior has a bin of its own. As epsilon goes to 0, squared and Poisson log loss keep two bins, cut at the
    mean: telling them apart always gains something. Absolute loss ends with one, the median.

    Examples
    --------
    The prior of [B23], Table 1:

    >>> mechanism = rr_on_bins([0, 1, 2], [0.6, 0.25, 0.15], 0.5)
    >>> mechanism.outputs.round(3).tolist()
    [0.396, 0.72]
    >>> proof = mechanism.certificate
    >>> f"{proof.lower:.9f} {proof.upper:.9f}"
    '0.260653811 0.260653811'
    """
    return tabulate(near_zero(regression(labels, prior, epsilon, loss=loss, outputs=outputs), BinPath()))
