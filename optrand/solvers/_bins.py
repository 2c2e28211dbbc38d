r"""Randomized response on bins: the best epsilon-DP randomizer without a bias penalty.

[GKK23] showed (as [B23], Appendix F, restates) that it cuts the sorted labels into ``m`` consecutive bins and applies
randomized response to them: the output of the label's own bin has probability :math:`E / (E + m - 1)`, every other one
:math:`1 / (E + m - 1)`. The best bins are a shortest path on a line (:mod:`optrand.solvers._bin_costs`).

*The dual* proves them optimal against all sets of labels and all outputs (``docs/mathematics.md``, section 7). Each
multiplier lies between the label's losses at the output of its bin and at the nearest other one. No interval has a
negative reduced cost if running totals of multipliers are *potentials*, no further apart than any arc is long. Then no
other set has one, if both ends of each label's *reach*, the outputs with :math:`p_y g(\cdot, y) < \alpha_y`, increase
with the label. If all labels of a bin are at one share of the way between their bounds, reaches are in order, and in
six of seven problems totals are potentials. Otherwise both are restored by turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

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
from optrand.solvers._bin_costs import Bins, Nodes, Partition
from optrand.solvers._interface import GuardedSolver, Reduction, near_zero
from optrand.solvers._positions import Positions

Lengths = Callable[[Nodes, Nodes], Floats]
"""Lengths of some steps: from where, and to where."""


@dataclass(frozen=True)
class BinPath(GuardedSolver):
    r"""Dinkelbach's method over shortest paths: the optimum without a bias penalty.

    For a guess :math:`r` of the loss, :math:`\min \sum_S (G_S - r)` over partitions into bins :math:`S` is a shortest
    path, where :math:`G_S` is the cost of a bin's column. The loss :math:`\sum_S G_S / (E - 1 + m)` of its ``m`` bins
    is the next guess. Guesses fall, and the one that its own path repeats is the optimum. The search takes two or three
    shortest paths of ``O(k log^2 k)`` steps, and the dual three or more, unless its first candidate proves the bins.
    Labels of prior zero have the row of a label beside them.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.regression([0, 1, 2, 3], [0.4, 0.3, 0.2, 0.1], 2.0)
    >>> round(optrand.solve(problem, BinPath()).value, 6)
    0.282933
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
        reduction = Reduction(problem)
        reduced = reduction.apply()
        partition, paths = best_partition(Bins.of(reduced))
        dual = Dual(bin_dual(partition), np.zeros(reduced.k))
        starts = partition.starts
        masses = np.full(starts.size, 1 / (math.expm1(problem.epsilon) + starts.size))
        arcs = Arcs(reduced.k, starts, np.append(starts[1:], reduced.k) - 1, partition.outputs, masses)
        randomizer = Randomizer.of_arcs(reduced.labels, arcs, problem.epsilon)
        stats = Stats(repr(self), iterations=paths, status="the path repeats")
        return reduction.invert(Solution(reduced, randomizer, dual, stats))


def best_partition(bins: Bins) -> tuple[Partition, int]:
    """Find the best partition into bins, and count the shortest paths that it took.

    From 192 labels on the first paths are over every 8th, 64th or so node, which leaves about two over all nodes.
    """
    k = bins.problem.k
    best, paths = Partition(bins, np.array([0])), 0
    stride = 8 ** ((k // 48).bit_length() // 3)
    while stride:
        found = Partition(bins, _shortest_path(best, np.append(np.arange(0, k, stride), k)))
        paths += 1
        # Rounding alone can make more bins look better, some of which have one output.
        if found.value < best.value - 1e-15 * abs(best.value):
            best = found
        else:
            stride //= 8
    return best, paths


def _shortest_path(partition: Partition, nodes: Nodes) -> Nodes:
    """Return some nodes on the shortest path from the first to the last one, without the last one."""
    offers = np.append(0.0, np.full(nodes.size - 1, math.inf))
    distances = shortest_distances(lambda i, j: partition.lengths(nodes[i], nodes[j]), offers)
    path = [nodes.size - 1]
    while path[-1]:
        lengths = partition.lengths(nodes[: path[-1]], nodes[path[-1:]])
        path.append(int(np.argmin(distances[: path[-1]] + lengths)))
    return nodes[path[:0:-1]]


def bin_dual(partition: Partition) -> Floats:
    """Return the multipliers with the largest bound of some candidates. It is tight only for an optimal partition."""
    problem = partition.bins.problem
    best, bound = np.zeros(problem.k), -math.inf
    for alpha in _candidates(partition):
        found = lower_bound(problem, Dual(alpha, np.zeros(problem.k)))
        if found > bound:
            best, bound = alpha, found
        # Well below the gap that is asked for, since the table of the answer is rounded.
        if partition.value - bound <= PROVEN / 5 * abs(partition.value):
            break
    return best


def _candidates(partition: Partition) -> Iterator[Floats]:
    """Generate multipliers: those of each bin at one share between their bounds, and then repaired by turns."""
    lengths, positions = partition.lengths, bound_multipliers(partition)
    alpha = positions.multipliers(positions.even())
    yield alpha
    # Distances from the first node are the largest potentials, and those to the last one, negative, the smallest.
    unbounded = np.full(alpha.size, math.inf)
    most = shortest_distances(lengths, np.append(0.0, unbounded))
    least = potentials_above(lengths, np.append(-unbounded, most[-1]))
    # Each repair undoes some of the other. Of 2,000 random problems 1,716 took none, 221 one, and one took 33.
    for turn in range(64):
        if turn % 2:
            # Twice as far as multipliers in order: half of the turns that it takes to go just as far.
            alpha = 2 * order_reaches(partition.bins, alpha) - alpha
        else:
            # In both directions by turns, since one alone leaves a few problems open.
            totals = np.clip(np.append(0.0, np.cumsum(alpha)), least, most)
            alpha = np.diff((shortest_distances if turn % 4 else potentials_above)(lengths, totals))
        alpha = positions.multipliers(positions.place(alpha))
        yield alpha


def potentials_above(lengths: Lengths, totals: Floats) -> Floats:
    """Return the smallest potentials above some numbers, as shortest distances are the largest ones below offers."""
    k = totals.size - 1
    return -shortest_distances(lambda i, j: lengths(k - j, k - i), -totals[::-1])[::-1]


def bound_multipliers(partition: Partition) -> Positions:
    """Bound each multiplier by the label's loss at the output of its bin, and at the nearest other output."""
    bins, outputs, spread = partition.bins, partition.outputs, partition.spread
    lowest = bins.own(spread(outputs))
    widths = np.zeros(lowest.size)
    if outputs.size > 1:
        # The nearest other output is that of a neighbouring bin, as losses are convex.
        others = np.append(outputs[1], outputs[:-1]), np.append(outputs[1:], outputs[-2])
        highest = np.minimum(*(bins.own(spread(other)) for other in others))
        widths = np.maximum(highest - lowest, 0.0)
    # The length of the bin, less the losses of its labels at its output.
    sums = np.maximum(partition.constants - bins.share * partition.value, 0.0)
    return Positions(partition.starts, lowest, widths, sums)


def order_reaches(bins: Bins, alpha: Floats) -> Floats:
    """Return multipliers near others for which both ends of the labels' reaches increase, or nearly so."""
    from scipy.optimize import isotonic_regression

    ends = bins.reaches(alpha / bins.prior)
    low, high = (isotonic_regression(end, weights=bins.prior).x for end in ends)
    # The level of a reach is the loss at either end, or the mean if both ends leave a choice. Under Poisson log loss
    # the reach of label 0 begins at 0, whatever its level is.
    above = bins.own(high)
    below = np.where(low > 0, bins.own(low), above) if bins.loss.positive_outputs else bins.own(low)
    return (above + below) / 2


def shortest_distances(lengths: Lengths, offers: Floats) -> Floats:
    """Return the distances of all nodes on paths that begin at any node, at the distance of its offer.

    Lengths must be concave Monge: ``O(k log^2 k)`` of them are used.
    """
    distances = offers.copy()

    def settle(low: int, first: int, after: int) -> None:
        """Find the distances of the nodes ``first ... after-1``. Steps to them from before `low` are done."""
        # A table of the lengths is quicker than halving up to about this number of nodes.
        if after - low <= 96:
            rows, columns = np.tril_indices(after - low, -1)
            table = np.zeros((after - low, after - low))
            table[rows, columns] = lengths(low + columns, low + rows)
            for node in range(first, after):
                totals = distances[low:node] + table[node - low, : node - low]
                distances[node] = min(distances[node], totals.min())
            return
        steps = best_steps(lengths, distances, low, first, after)
        # If no single step is better, no path is: halving ends early where bins are long.
        if (steps < distances[first:after]).any():
            distances[first:after] = np.minimum(distances[first:after], steps)
            middle = (first + after) // 2
            settle(first, first + 1, middle)
            settle(first, middle, after)

    settle(0, 1, offers.size)
    return distances


def best_steps(lengths: Lengths, distances: Floats, first: int, middle: int, after: int) -> Floats:
    """Return the distances of the nodes ``middle ... after-1`` by one step from one before them, from `first` on.

    As lengths are Monge, the node before the best step moves forward with the node after it. So every second node is
    done first, and bounds the best steps of its neighbours.
    """
    n = after - middle
    least, steps = np.empty(n), np.empty(n + 2, dtype=np.intp)
    # The first and the last node take their bounds from the end of the array.
    steps[-1], steps[n] = first, after - 1
    width = 1 << (n.bit_length() - 1)
    while width:
        chosen = np.arange(width - 1, n, 2 * width)
        low = steps[chosen - width]
        counts = np.minimum(steps[np.minimum(chosen + width, n)], middle - 1 + chosen) - low + 1
        stops = np.cumsum(counts)
        candidates = np.arange(stops[-1]) + np.repeat(low - stops + counts, counts)
        totals = distances[candidates] + lengths(candidates, np.repeat(middle + chosen, counts))
        least[chosen] = np.minimum.reduceat(totals, stops - counts)
        # The first of several best candidates is entered last.
        hits = np.flatnonzero(totals == np.repeat(least[chosen], counts))[::-1]
        steps[chosen[np.searchsorted(stops, hits, side="right")]] = candidates[hits]
        width //= 2
    return least


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
    Optimality is [GKK23]'s theorem. The dual proves it for the case at hand. At a large epsilon every label of positive
    prior has a bin of its own. As epsilon goes to 0, squared and Poisson log loss keep two bins, cut at the mean:
    telling them apart always gains something. Absolute loss ends with one, the median.

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
