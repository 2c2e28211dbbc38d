r"""Costs of bins, for randomized response on bins: lengths of the arcs of a shortest path, and how it is found.

A bin is an interval :math:`S` of labels that share one favoured output. With :math:`\Phi(v) = \sum_y p_y g(v, y)`, its
least value :math:`\Phi^*` over the allowed outputs, and the gain :math:`x = e^\epsilon - 1`, the staircase column of
the bin costs :math:`\min_v \sum_y s_y p_y g(v, y) = \Phi^* + x K_S`, where

.. math:: K_S = \min_v \Big( \sum_{y \in S} p_y g(v, y) + \frac{\Phi(v) - \Phi^*}{x} \Big)

is the loss of the bin's labels at their output, and the price of moving it away from the best constant output. The best
output is the mean for squared and Poisson log loss, and the median for absolute loss, under the weights :math:`s_y
p_y`. An interval of outputs clips it, since :math:`g` is convex. Each of the ``m`` bins of a partition has the mass
:math:`1 / (x + m)`, so that its loss is a ratio of two path sums,

.. math:: V = \frac{x \sum_S K_S + m \Phi^*}{x + m}, \qquad
          \lambda = \frac{\Phi^* - V}{x} = \frac{\Phi^* - \sum_S K_S}{x + m}.

A partition is best exactly if it is a shortest path under the lengths :math:`K_S + \lambda` of its own :math:`\lambda`.
For paths the output of a bin is *clamped* as well, to one label beyond either end of the bin: the best partition and
its loss do not change, and lengths become concave Monge (``docs/mathematics.md``, section 7).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from optrand import losses
from optrand.base._validation import SMALLEST_NORMAL, Floats
from optrand.errors import Infeasible
from optrand.losses import Loss
from optrand.model._problem import Problem
from optrand.solvers._positions import divide

Nodes = NDArray[np.intp]
"""Nodes 0 ... k between labels: a bin leads from its first label to the label after it."""

Lengths = Callable[[Nodes, Nodes], Floats]
"""Lengths of some steps: from where, and to where."""


class RunSums:
    """Sums over any run of labels in constant time, without cancellation: all terms are positive.

    The nodes between labels are halved again and again, and the sums from each node to the middle of its part are
    tabulated, a row for each halving (a disjoint sparse table). A run that crosses a middle is the sum of two entries.
    Memory and time ``O(k log k)``.

    Parameters
    ----------
    labels, prior : (k,) arrays
        Not decreasing, and positive.

    Examples
    --------
    >>> sums = RunSums(np.array([0.0, 1.0, 5.0]), np.array([0.25, 0.25, 0.5]))
    >>> [round(float(x[0]), 6) for x in sums.moments(np.array([1]), np.array([3]))]
    [0.75, 3.666667, 1.333333]
    """

    def __init__(self, labels: Floats, prior: Floats) -> None:
        size = 1 << labels.size.bit_length()
        missing = size - labels.size
        labels, prior = np.append(labels, np.full(missing, labels[-1])), np.append(prior, np.zeros(missing))
        rows, anchors = [np.zeros((3, size))], [labels]
        width = 1
        while width < size:
            below, above = labels.reshape(-1, 2, width).swapaxes(0, 1)
            left, right = prior.reshape(-1, 2, width).swapaxes(0, 1)
            middle = above[:, :1]
            down = _accumulate(middle - below[:, ::-1], left[:, ::-1])
            # The sums of a node below the middle begin with its own label, those of a node above it end before.
            up = np.zeros_like(down)
            up[:, :, 1:] = _accumulate(above - middle, right)[:, :, :-1]
            rows.append(np.stack([down[:, :, ::-1], up], axis=2).reshape(3, size))
            anchors.append(np.repeat(middle[:, 0], 2 * width))
            width *= 2
        self._row = np.frexp(np.arange(size, dtype=np.float64))[1].astype(np.intp) * size
        self._mass, self._moment, self._inner = np.concatenate(rows, axis=1)
        self._anchors = np.concatenate(anchors)

    def moments(self, first: Nodes, after: Nodes) -> tuple[Floats, Floats, Floats]:
        """Return the mass of the labels ``first ... after-1``, their mean, and half their sum of squares about it."""
        row = self._row[first ^ after]
        a, b = row + first, row + after
        left, right, before, behind = self._mass[a], self._mass[b], self._moment[a], self._moment[b]
        mass = left + right
        apart = divide(before, left) + divide(behind, right)
        inner = self._inner[a] + self._inner[b] + left * divide(right, mass) * apart**2 / 2
        return mass, self._anchors[b] + divide(behind - before, mass), inner


def _accumulate(distances: Floats, prior: Floats) -> Floats:
    """Return running mass, moment about the middle, and half sum of squares, shape ``(3, parts, width)``.

    `distances` from the middle increase along each part.
    """
    mass, moment = np.cumsum(prior, axis=1), np.cumsum(prior * distances, axis=1)
    inner, before = np.zeros_like(mass), mass[:, :-1]
    # Each label adds its squared distance from the mean of those before it (Welford 1962).
    apart = distances[:, 1:] - divide(moment[:, :-1], before)
    inner[:, 1:] = np.cumsum(before * divide(prior[:, 1:], mass[:, 1:]) * apart**2 / 2, axis=1)
    return np.stack([mass, moment, inner])


class Bins(ABC):
    """All bins of a problem without bias penalty, with outputs on the line or in an interval.

    Attributes
    ----------
    problem : Problem
        With a positive prior that sums to 1.
    origin : float
        Squared loss measures labels from the first one, so that labels far from 0 keep their digits. Other losses do
        so from 0.
    labels, prior : (k,) arrays
        Labels less `origin`.
    gain : float
        ``exp(epsilon) - 1``.
    best : float
        The best constant output, less `origin`.
    """

    loss: ClassVar[Loss]
    best: float

    def __init__(self, problem: Problem, origin: float = 0.0) -> None:
        self.problem = problem
        self.origin = origin
        self.labels = problem.labels - origin
        self.prior = problem.prior
        self.gain = math.expm1(problem.epsilon)

    @classmethod
    def of(cls, problem: Problem) -> Bins:
        """Return the bins of a problem under its loss.

        Raises
        ------
        Infeasible
            Poisson log loss where all labels are 0 and outputs may come as near to 0 as they like.

        Examples
        --------
        The prior of [B23], Table 1, at epsilon 0.5: the bins of label 1, and of labels 1 and 2.

        >>> import optrand
        >>> bins = Bins.of(optrand.regression([0, 1, 2], [0.6, 0.25, 0.15], 0.5))
        >>> bins.outputs(np.array([0, 1])).round(3).tolist()
        [0.396, 0.72]
        >>> bins.costs(np.array([1, 1]), np.array([2, 3])).round(4).tolist()
        [0.0218, 0.155]
        """
        if problem.loss == losses.absolute:
            return _Absolute(problem)
        if problem.loss == losses.squared:
            return _Squared(problem, float(problem.labels[0]))
        if problem.labels[-1] == 0 and problem.outputs.low <= 0:
            raise Infeasible("the label 0 alone has no best output above 0 under Poisson log loss: pass outputs=[...]")
        return _PoissonLog(problem)

    @abstractmethod
    def outputs(self, starts: Nodes) -> Floats:
        """Return the best output of each bin of a partition, less the origin."""

    @abstractmethod
    def costs(self, first: Nodes, after: Nodes) -> Floats:
        """Return the clamped ``K`` of the bins of the labels ``first ... after-1``."""

    @abstractmethod
    def excess(self, outputs: Floats) -> Floats:
        r"""Return :math:`\Phi(v) - \Phi^*`, which is nonnegative up to rounding."""

    @abstractmethod
    def reaches(self, levels: Floats) -> tuple[Floats, Floats]:
        """Return the two outputs between which the loss of each label is below a level of its own."""

    @cached_property
    def least(self) -> float:
        r"""The least loss of a constant output, :math:`\Phi^*`."""
        return math.fsum(self.own(np.full(self.problem.k, self.best)))

    def clip(self, outputs: Floats) -> Floats:
        """Project onto the allowed outputs."""
        allowed = self.problem.outputs
        within: Floats = np.clip(outputs, allowed.low - self.origin, allowed.high - self.origin)
        return within

    def own(self, outputs: Floats) -> Floats:
        """Return the loss of each label at an output of its own, times its prior, shape ``(k,)``."""
        return self.prior * self.loss.evaluate(outputs, self.labels)


@dataclass(frozen=True, eq=False)
class Partition:
    """Consecutive bins, each with its best output: a path from the first node to the last one.

    Attributes
    ----------
    bins : Bins
    starts : (m,) array of int
        The first label of each bin.
    """

    bins: Bins
    starts: Nodes

    @cached_property
    def outputs(self) -> Floats:
        """The best output of each bin, less the origin."""
        return self.bins.outputs(self.starts)

    @property
    def allowed_outputs(self) -> Floats:
        """The best output of each bin."""
        allowed = self.bins.problem.outputs
        within: Floats = np.clip(self.outputs + self.bins.origin, allowed.low, allowed.high)
        return within

    @cached_property
    def lengths(self) -> Floats:
        """``K`` of each bin, summed afresh over its labels."""
        lengths: Floats = np.add.reduceat(self.bins.own(self.spread(self.outputs)), self.starts)
        return lengths + self.bins.excess(self.outputs) / self.bins.gain

    @cached_property
    def penalty(self) -> float:
        r""":math:`\lambda`, the cost of one more bin."""
        return (self.bins.least - math.fsum(self.lengths)) / (self.bins.gain + self.starts.size)

    @cached_property
    def value(self) -> float:
        """The loss."""
        gain, count = self.bins.gain, self.starts.size
        share = count / (gain + count)
        return gain / (gain + count) * math.fsum(self.lengths) + share * self.bins.least

    def spread(self, amounts: Floats) -> Floats:
        """Repeat the amount of each bin at each of its labels."""
        return np.repeat(amounts, np.diff(np.append(self.starts, self.bins.problem.k)))


class _Means(Bins):
    """Losses whose best output is a weighted mean."""

    def __init__(self, problem: Problem, origin: float = 0.0) -> None:
        super().__init__(problem, origin)
        self.mean = math.fsum(self.prior * self.labels)
        self.best = float(self.clip(np.array(self.mean)))
        self.sums = RunSums(self.labels, self.prior)
        # The allowed outputs nearest to the label before each node, and to the one after it.
        self.bounds = self.clip(np.concatenate(([-math.inf], self.labels, [math.inf])))

    def pull(self, mass: Floats, mean: Floats) -> Floats:
        """Return the mean of all labels under the weights of bins of some mass and mean."""
        share = self.gain * mass
        # The share is divided first, as share * mean overflows at an epsilon of 700.
        means: Floats = self.mean / (1 + share) + mean * (share / (1 + share))
        return means

    def outputs(self, starts: Nodes) -> Floats:
        mass, mean, _ = self.sums.moments(starts, np.append(starts[1:], self.problem.k))
        return self.clip(self.pull(mass, mean))


class _Squared(_Means):
    """Half squared error."""

    loss = losses.squared

    def costs(self, first: Nodes, after: Nodes) -> Floats:
        mass, mean, inner = self.sums.moments(first, after)
        outputs = np.clip(self.pull(mass, mean), self.bounds[first], self.bounds[after + 1])
        costs: Floats = inner + mass * (mean - outputs) ** 2 / 2 + self.excess(outputs) / self.gain
        return costs

    def excess(self, outputs: Floats) -> Floats:
        excess: Floats = (outputs - self.best) * ((outputs - self.mean) + (self.best - self.mean)) / 2
        return excess

    def reaches(self, levels: Floats) -> tuple[Floats, Floats]:
        half = np.sqrt(2 * np.maximum(levels, 0.0))
        return self.labels - half, self.labels + half


class _PoissonLog(_Means):
    """``v - y log v``."""

    loss = losses.poisson_log

    def clip(self, outputs: Floats) -> Floats:
        """Project onto the allowed outputs, and above 0 even if the bin of label 0 alone has its optimum at 0."""
        # As a share of the best constant output, so that quotients of outputs do not underflow.
        return np.maximum(super().clip(outputs), max(SMALLEST_NORMAL, 1e-290 * self.mean))

    def costs(self, first: Nodes, after: Nodes) -> Floats:
        mass, mean, _ = self.sums.moments(first, after)
        outputs = np.clip(self.pull(mass, mean), self.bounds[first], self.bounds[after + 1])
        costs: Floats = mass * (outputs - mean * np.log(outputs)) + self.excess(outputs) / self.gain
        return costs

    def excess(self, outputs: Floats) -> Floats:
        excess: Floats = outputs - self.best - self.mean * np.log(outputs / self.best)
        return excess

    def reaches(self, levels: Floats) -> tuple[Floats, Floats]:
        from scipy.special import lambertw

        # v - y log v = level at v = -y W(-exp(-level / y) / y), with both branches of Lambert's function.
        labels = np.maximum(self.labels, SMALLEST_NORMAL)
        inside = -np.exp(-levels / labels - np.log(labels))
        low, high = (-labels * lambertw(inside, branch).real for branch in (0, -1))
        return np.minimum(low, self.labels), np.where(np.isfinite(high), np.maximum(high, self.labels), levels)


class _Absolute(Bins):
    """The distance: best outputs are weighted medians, which are labels, or ends of the interval."""

    loss = losses.absolute

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        # The mass before each node, and the first moment about the median, which keeps it of the size of the loss.
        self.mass = _prefix_sums(self.prior)
        self.median = float(self.labels[np.searchsorted(self.mass[1:-1], 0.5)])
        self.moment = _prefix_sums(self.prior * (self.labels - self.median))
        self.best = float(self.clip(np.array(self.median)))
        # The allowed output nearest to each label, and the loss before each node that no output avoids.
        self.candidates = self.clip(self.labels)
        self.fixed = _prefix_sums(self.prior * np.abs(self.labels - self.candidates))
        self.sums = RunSums(self.candidates - self.candidates[0], self.prior)
        # The price of each candidate: what all labels lose there beyond the least, over the gain.
        self.prices = self.excess(self.candidates) / self.gain

    def medians(self, first: Nodes, after: Nodes) -> Nodes:
        """Find the label at which the weights of a bin and of all labels below it reach half of their total."""
        # The weight up to a label whose prior sums to c is c, and gain times what of it lies in the bin.
        low, high, gain = self.mass[first], self.mass[after], self.gain
        half = (1 + gain * (high - low)) / 2
        inside = (half + gain * low) / (1 + gain)
        level = np.where(half <= low, half, np.where(inside <= high, inside, half - gain * (high - low)))
        return np.searchsorted(self.mass[1:-1], level)

    def outputs(self, starts: Nodes) -> Floats:
        return self.candidates[self.medians(starts, np.append(starts[1:], self.problem.k))]

    def costs(self, first: Nodes, after: Nodes) -> Floats:
        lowest, highest = np.maximum(first - 1, 0), np.minimum(after, self.problem.k - 1)
        medians = np.clip(self.medians(first, after), lowest, highest)
        outputs = self.candidates[medians] - self.candidates[0]
        below, lower_mean, _ = self.sums.moments(np.minimum(first, medians), medians)
        above, upper_mean, _ = self.sums.moments(np.minimum(medians + 1, after), after)
        distances = below * (outputs - lower_mean) + above * (upper_mean - outputs)
        costs: Floats = distances + self.prices[medians] + (self.fixed[after] - self.fixed[first])
        return costs

    def excess(self, outputs: Floats) -> Floats:
        below = np.searchsorted(self.labels, outputs, side="right")
        distances = (outputs - self.median) * (2 * self.mass[below] - self.mass[-1])
        excess: Floats = distances + self.moment[-1] - 2 * self.moment[below] - self.least
        return excess

    def reaches(self, levels: Floats) -> tuple[Floats, Floats]:
        return self.labels - levels, self.labels + levels


def _prefix_sums(terms: Floats) -> Floats:
    """Return the sum before each term, and of all: rounded once if the machine has longer floats."""
    return np.concatenate(([0.0], np.cumsum(terms, dtype=np.longdouble).astype(np.float64)))


def shortest_paths(lengths: Lengths, offers: Floats) -> tuple[Floats, Nodes]:
    """Return the least distance of each node and the node before, itself where its own offer is no longer.

    Paths begin at any node, at the price of its offer, which is finite at node 0. The best steps from the nodes that
    are done to some next ones, and then those between the latter, are found at once. All before the first node for
    which the latter are better is done. As many nodes as its step is long come next, and twice as many if there is no
    such node: ``O(k log k)`` lengths if steps are of about one length.
    """
    k = offers.size - 1
    distances, before = offers.copy(), np.arange(k + 1)
    scale = float(np.abs(offers[np.isfinite(offers)]).max())
    # Up to twice this number of nodes are done one by one: a small table of lengths is quicker than bisection.
    dense = 32

    def improve(nodes: Nodes, found: Floats, steps: Nodes) -> Nodes:
        """Enter the distances that are shorter than before, and return their positions among the nodes."""
        # Another step must be better by more than rounding.
        noise = 4e-15 * max(scale, float(np.abs(found).max()))
        better = np.flatnonzero(found < distances[nodes] - noise)
        distances[nodes[better]], before[nodes[better]] = found[better], steps[better]
        return better

    # No node after `done` has a better step than from `low`.
    done, low, ahead = 0, 0, dense
    while done < k:
        stop = min(done + ahead, k)
        if stop - low <= 2 * dense:
            low = _step_by_step(lengths, distances, before, low, done, stop)
            done, ahead = stop, 2 * ahead
            continue
        # Best steps from the nodes that are done: as lengths are Monge, they move forward with the node.
        nodes = np.arange(done + 1, stop + 1)
        found, steps = best_steps(lengths, distances, nodes, low, done)
        improve(nodes, found, steps)
        low, better = int(steps[-1]), nodes[:0]
        # Best steps between the next nodes, which count from the first that prefers one on.
        if nodes.size > 1:
            found, inner = best_steps(lengths, distances, nodes[1:], done + 1, stop - 1)
            better = improve(nodes[1:], found, inner)
        if better.size:
            at = int(better[0])
            done, low = int(nodes[at + 1]), int(inner[at])
            ahead = max(done - low, dense)
        else:
            done, ahead = stop, 2 * ahead
    return distances, before


def _step_by_step(lengths: Lengths, distances: Floats, before: Nodes, low: int, done: int, stop: int) -> int:
    """Do the nodes ``done+1 ... stop`` one by one. Return the best candidate of the last one, from `low` on."""
    nodes, candidates = np.arange(done + 1, stop + 1), np.arange(low, stop)
    rows, columns = np.nonzero(candidates < nodes[:, np.newaxis])
    table = np.full((nodes.size, candidates.size), np.inf)
    table[rows, columns] = lengths(candidates[columns], nodes[rows])
    best = 0
    for row, node in zip(table, range(done + 1, stop + 1), strict=True):
        totals = row[: node - low] + distances[low:node]
        best = int(totals.argmin())
        if totals[best] < distances[node]:
            distances[node], before[node] = totals[best], low + best
    return low + best


def best_steps(lengths: Lengths, known: Floats, nodes: Nodes, low: int, high: int) -> tuple[Floats, Nodes]:
    """Find the least ``known[i] + lengths(i, j)`` over ``low <= i <= high``, ``i < j``, for each node ``j``.

    Return the sums, and the first such ``i`` of each. Every second node is done first, then those between, whose best
    steps lie between those of their neighbours.

    Parameters
    ----------
    lengths : callable
    known : array
        Distances of the candidates ``low ... high``, or of more nodes.
    nodes : (n,) array of int
        Increasing, above `low`.
    low, high : int

    Examples
    --------
    >>> totals, before = best_steps(
    ...     lambda i, j: (j - i) ** 2.0, np.array([0.0, 3.0]), np.array([2, 3]), 0, 1
    ... )
    >>> totals.tolist(), before.tolist()
    ([4.0, 7.0], [0, 1])
    """
    n = nodes.size
    least, before = np.empty(n), np.empty(n + 2, dtype=np.intp)
    before[-1], before[n] = low, high
    step = 1 << (n.bit_length() - 1)
    while step:
        chosen = np.arange(step - 1, n, 2 * step)
        first = before[chosen - step]
        counts = np.minimum(before[np.minimum(chosen + step, n)], nodes[chosen] - 1) - first + 1
        stops = np.cumsum(counts)
        candidates = np.arange(stops[-1]) + np.repeat(first - stops + counts, counts)
        totals = known[candidates] + lengths(candidates, np.repeat(nodes[chosen], counts))
        least[chosen] = np.minimum.reduceat(totals, stops - counts)
        hits = np.flatnonzero(totals == np.repeat(least[chosen], counts))[::-1]
        before[chosen[np.searchsorted(stops, hits, side="right")]] = candidates[hits]
        step //= 2
    return least, before[:n]
