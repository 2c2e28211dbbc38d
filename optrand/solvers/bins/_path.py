r"""Randomized response on bins: the best epsilon-DP randomizer without a bias penalty.

[GKK23] showed (as [B23], Appendix F, restates) that it cuts the sorted labels into ``m`` consecutive bins and applies
randomized response to the bins: the output of the label's own bin has probability :math:`E / (E + m - 1)`, every other
one :math:`1 / (E + m - 1)`. Which bins, and how many, is a ratio of two path sums on a line
(:mod:`optrand.solvers.bins._costs`), which Dinkelbach's method minimises by a few shortest paths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from optrand import losses
from optrand.base._validation import suggest_parameters
from optrand.losses import Loss
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._tabulation import tabulate
from optrand.model._problem import Dual, Grid, OutputSet, Problem, regression
from optrand.model._randomizer import Arcs, Randomizer, Solution, Stats
from optrand.solvers._failures import GuardedSolver
from optrand.solvers._reductions import near_zero
from optrand.solvers.bins._costs import Bins, Nodes, Partition
from optrand.solvers.bins._dual import bin_dual
from optrand.solvers.bins._monge import shortest_paths


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
    best, paths = _search(bins, 1)
    while True:
        # Bins of one output are merged, which is never worse: it saves a column.
        is_new = np.append(True, np.diff(best.allowed_outputs) > 0)
        if is_new.all():
            return best, paths
        best = Partition(bins, best.starts[is_new])


def _search(bins: Bins, stride: int) -> tuple[Partition, int]:
    """Find the best bins that begin at multiples of a number of labels, starting from those of larger multiples."""
    nodes, paths = np.append(np.arange(0, bins.problem.k, stride), bins.problem.k), 0
    best = Partition(bins, nodes[:-1])
    # A path over every eighth node costs an eighth of one over all, of which two to four are enough from its bins.
    if nodes.size > 384:
        best, paths = _search(bins, 8 * stride)
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
    Optimality is [GKK23]'s theorem. The dual proves it for the case at hand (:mod:`optrand.solvers.bins._dual`). At a
    large epsilon every label of positive prior has a bin of its own. As epsilon goes to 0, squared and Poisson log loss
    keep two bins, cut at the mean: telling them apart always gains something. Absolute loss ends with one, the median.

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
