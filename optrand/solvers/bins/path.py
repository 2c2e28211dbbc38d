r"""Randomized response on bins: the best epsilon-DP randomizer where there is no care for bias.

[GKK23] showed (as [B23], Appendix F, restates) that it cuts the sorted labels into ``m`` consecutive bins and applies
randomized response to the bins: the output of the label's own bin has probability :math:`E / (E + m - 1)`, every other
one :math:`1 / (E + m - 1)`. Which bins, and how many, is a ratio of two path sums on a line
(:mod:`optrand.solvers.bins.graph`), and Dinkelbach's method makes a few shortest paths of it.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.suggestions import suggest_parameters
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.tabulation import tabulate
from optrand.model import losses
from optrand.model.losses import Loss
from optrand.model.outputs import Grid, OutputSet
from optrand.model.problem import Dual, Problem, regression
from optrand.model.randomizer import Arcs, Randomizer, Solution, Stats
from optrand.solvers.bins.costs import Starts
from optrand.solvers.bins.dual import bin_dual
from optrand.solvers.bins.graph import BinGraph
from optrand.solvers.failures import GuardedSolver, solver_failures
from optrand.solvers.reductions import near_zero

__all__ = ["BinPath", "rr_on_bins"]

STRIDES = (4096, 512, 64, 8, 1)
"""Labels at whose multiples bins begin, from the first search to the last."""

COARSEST = 48
"""Nodes that the first search has at least, where there are as many labels."""


@dataclass(frozen=True)
class BinPath(GuardedSolver):
    r"""Dinkelbach's method over shortest paths: the optimum without a bias penalty.

    For a guess :math:`r` of the loss, :math:`\min \sum_S (G_S - r)` over partitions into bins :math:`S` is a shortest
    path; the loss :math:`\sum_S G_S / (E - 1 + m)` of its ``m`` bins is the next guess. Guesses fall, and the one that
    its own path repeats is the optimum.

    Attributes
    ----------
    gap : float
        By which share of the loss the bound may fall short of it before multipliers are mended
        (:mod:`optrand.solvers.bins.dual`).
    rounds : int
        Largest number of repairs.

    Notes
    -----
    Labels of prior zero have no say: each goes to the bin of its neighbour, with a multiplier of zero. Cost and
    memory ``O(k log k)`` a path (:mod:`optrand.solvers.bins.monge`), of which two to four are needed over all labels,
    and a few more over every 8th, 64th and so on.

    Examples
    --------
    >>> import optrand
    >>> mechanism = optrand.solve(optrand.regression([0, 1, 2, 3], [0.4, 0.3, 0.2, 0.1], 2.0), BinPath())
    >>> proof = mechanism.certificate
    >>> proof.gap < 1e-12, round(proof.upper, 6), mechanism.n
    (True, 0.282933, 3)
    """

    refusal = (
        "BinPath() takes a bias penalty of 0 with outputs on the line or an interval, and squared, absolute or Poisson "
        "log loss: use solve(problem), which knows who takes what"
    )

    gap: float = 2e-10
    rounds: int = 400

    def accepts(self, problem: Problem) -> bool:
        """No bias penalty, a convex loss with a name, and outputs that are not a grid."""
        convex = problem.loss in (losses.squared, losses.absolute, losses.poisson_log)
        return convex and not problem.bias_penalty and not isinstance(problem.outputs, Grid)

    def _solution(self, problem: Problem) -> Solution:
        graph = _without_idle(problem)
        starts, paths = best_partition(graph)
        return self._proven(problem, graph, starts, paths)

    def proven(self, problem: Problem, starts: Starts) -> Solution:
        """Return the solution of a problem whose best bins are known, with its dual.

        Parameters
        ----------
        problem : Problem
        starts : (m,) array of int
            The first label of each bin.
        """
        self._check(problem)
        begin = time.perf_counter()
        with solver_failures(self):
            graph = _without_idle(problem)
            kept = np.flatnonzero(problem.prior)
            first = np.unique(np.append(0, np.searchsorted(kept, starts)))
            solution = self._proven(problem, graph, merge_bins(graph, first[first < kept.size]), 0)
        return replace(solution, stats=replace(solution.stats, seconds=time.perf_counter() - begin))

    def _proven(self, problem: Problem, graph: BinGraph, starts: Starts, paths: int) -> Solution:
        """Return the randomizer and multipliers for bins of the labels of positive prior."""
        kept, total = np.flatnonzero(problem.prior), math.fsum(problem.prior)
        alpha = np.zeros(problem.k)
        alpha[kept] = total * bin_dual(graph, starts, gap=self.gap, rounds=self.rounds)
        # A label of prior zero joins the bin of the nearest kept label, the upper one of two.
        below, above = problem.labels[kept[starts[1:] - 1]], problem.labels[kept[starts[1:]]]
        first = np.concatenate(([0], np.searchsorted(problem.labels, below + (above - below) / 2)))
        last = np.append(first[1:] - 1, problem.k - 1)
        least = math.exp(-problem.epsilon)
        masses = np.full(starts.size, least / (1 + (starts.size - 1) * least))
        arcs = Arcs(problem.k, first, last, graph.outputs(starts), masses)
        randomizer = Randomizer.of_arcs(problem.labels, arcs, problem.epsilon)
        stats = Stats(repr(self), iterations=paths, status="the path repeats")
        return Solution(problem, randomizer, Dual(alpha, np.zeros(problem.k)), stats)


def _without_idle(problem: Problem) -> BinGraph:
    """Return the bins of the labels of positive prior."""
    kept, total = np.flatnonzero(problem.prior), math.fsum(problem.prior)
    return BinGraph(replace(problem, labels=problem.labels[kept], prior=problem.prior[kept] / total))


def best_partition(graph: BinGraph) -> tuple[Starts, int]:
    """Find the best partition into bins whose outputs increase, and count the shortest paths that it took.

    First bins of whole multiples of some number of labels, then of smaller ones, each search from what the one before
    has found. Rounding can make two paths of one loss take turns: a search ends as well when a path is no better than
    the one before it.
    """
    k, paths = graph.problem.k, 0
    strides = [stride for stride in STRIDES if k >= COARSEST * stride] or [1]
    best = np.arange(0, k, strides[0])
    for stride in strides:
        value = graph.value(best)
        while True:
            penalty = max(graph.penalty(best), 0.0)
            found = graph.distances(penalty, best // stride, stride=stride).path() * stride
            paths += 1
            better = graph.value(found)
            if np.array_equal(found, best) or not better < value:
                break
            best, value = found, better
    return merge_bins(graph, best), paths


def merge_bins(graph: BinGraph, starts: Starts) -> Starts:
    """Merge bins of one output into one bin, which is never worse: it saves a column of no bin."""
    while True:
        outputs = graph.outputs(starts)
        kept = np.append(True, np.diff(outputs) > 0)
        if kept.all():
            return starts
        starts = starts[kept]


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
    Optimality is [GKK23]'s theorem; the dual proves it for the case at hand (:mod:`optrand.solvers.bins.dual`). At a
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
