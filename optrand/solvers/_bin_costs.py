r"""Costs of bins, for randomized response on bins: arcs of a shortest path.

A bin is an interval :math:`S` of labels that share one favoured output. With :math:`E = e^\epsilon`, its staircase
column costs :math:`G_S = \min_v \sum_y s_y p_y g(v, y)`, where :math:`s_y` is :math:`E` for the labels of the bin and 1
for the others. The best output is a mean or a median under these weights. An interval of outputs clips it. Each of
``m`` bins has the mass :math:`1 / (E - 1 + m)`, so that their loss is :math:`V = \sum_S G_S / (E - 1 + m)`. They are
best exactly if they are a shortest path under the lengths :math:`(G_S - V) / (E - 1)` of their own :math:`V`.

For paths the output of a bin is *clamped* as well, to one label beyond either end of the bin: the best bins and their
loss do not change, and lengths become concave Monge (``docs/mathematics.md``, section 7).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
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

Nodes = NDArray[np.intp]
"""Nodes 0 ... k between labels: a bin leads from its first label to the label after it."""


class Bins(ABC):
    """All bins of a problem without bias penalty, with outputs on the line or in an interval.

    Costs of columns are divided by ``exp(epsilon) - 1``. They come from differences of running sums, and of
    the rounding errors of these, to keep the digits of thin bins.

    Attributes
    ----------
    center : float
        The median, from which moments are measured to be small, or 0 under Poisson log loss.
    share : float
        ``1 / (exp(epsilon) - 1)``, the weight of labels outside of a bin.
    sums, totals : list
        Running sums of each moment, beginning with the mass, and the total.
    """

    loss: ClassVar[Loss]
    moments: ClassVar[int] = 2

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.labels = problem.labels
        self.prior = problem.prior
        self.share = 1 / math.expm1(problem.epsilon)
        self.masses = np.cumsum(self.prior)
        middle = int(np.searchsorted(self.masses[:-1], 0.5))
        self.center = 0.0 if self.loss.positive_outputs else float(self.labels[middle])
        terms = [self.prior * (self.labels - self.center) ** power for power in range(self.moments)]
        self.sums = [running_sums(each, middle) for each in terms]
        self.totals = [math.fsum(each) for each in terms]
        low, high = problem.outputs.low, problem.outputs.high
        # The allowed outputs nearest to the label before each node, and to the one after it.
        bounds = np.concatenate(([low], np.clip(self.labels, low, high), [high]))
        self.bounds = np.maximum(bounds, SMALLEST_NORMAL) if self.loss.positive_outputs else bounds

    @classmethod
    def of(cls, problem: Problem) -> Bins:
        """Return the bins of a problem under its loss, or raise `Infeasible` if that has no least value."""
        if problem.loss.positive_outputs and problem.labels[-1] == 0 and problem.outputs.low <= 0:
            raise Infeasible("the label 0 alone has no best output above 0 under Poisson log loss: pass outputs=[...]")
        return next(kind(problem) for kind in (_Squared, _Absolute, _PoissonLog) if kind.loss == problem.loss)

    @abstractmethod
    def columns(self, first: Nodes, after: Nodes, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the best output of each bin's column between two limits, and its cost. Bins may be empty."""

    @abstractmethod
    def reaches(self, levels: Floats) -> tuple[Floats, Floats]:
        """Return the two outputs between which the loss of each label is below a level of its own."""

    def costs(self, first: Nodes, after: Nodes) -> Floats:
        """Return the costs of the columns of the bins ``first ... after-1``, with clamped outputs."""
        return self.columns(first, after, self.bounds[first], self.bounds[after + 1])[1]

    def own(self, outputs: Floats) -> Floats:
        """Return the loss of each label at an output of its own, times its prior, shape ``(k,)``."""
        return self.prior * self.loss.evaluate(outputs, self.labels)

    def sum_bins(self, power: int, first: Nodes | int, after: Nodes) -> Floats:
        """Return a moment of the labels ``first ... after-1`` of each bin."""
        high, low = self.sums[power]
        # Gathering is most of the work, and `take` does it faster than an index.
        return (high.take(after) - high.take(first)) + (low.take(after) - low.take(first))

    def weigh(self, first: Nodes, after: Nodes) -> list[Floats]:
        """Return the weighted moments of the column of each bin."""
        return [self.sum_bins(power, first, after) + self.share * self.totals[power] for power in range(self.moments)]


def running_sums(terms: Floats, middle: int) -> tuple[Floats, Floats]:
    """Return running sums that are about 0 before a term, and those of their rounding errors (Knuth's TwoSum)."""
    # Near the term sums are small, so that floats are close together there.
    sums = np.cumsum(np.append(-math.fsum(terms[:middle]), terms))
    steps = np.diff(sums)
    errors = (sums[:-1] - (sums[1:] - steps)) + (terms - steps)
    return sums, np.cumsum(np.append(-math.fsum(errors[:middle]), errors))


class _Squared(Bins):
    """Half squared error."""

    loss = losses.squared
    moments = 3

    def columns(self, first: Nodes, after: Nodes, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        mass, moment, square = self.weigh(first, after)
        outputs = np.clip(self.center + moment / mass, low, high)
        apart = outputs - self.center
        return outputs, (square - apart * (2 * moment - apart * mass)) / 2

    def reaches(self, levels: Floats) -> tuple[Floats, Floats]:
        half = np.sqrt(2 * np.maximum(levels, 0.0))
        return self.labels - half, self.labels + half


class _PoissonLog(Bins):
    """``v - y log v``."""

    loss = losses.poisson_log

    def columns(self, first: Nodes, after: Nodes, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        mass, moment = self.weigh(first, after)
        outputs = np.clip(moment / mass, low, high)
        return outputs, outputs * mass - moment * np.log(outputs)

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

    def columns(self, first: Nodes, after: Nodes, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        # The weight of the labels with the least mass c is share * c, and the part of c within the bin. It is half of
        # its total before the bin, within it, or after it.
        start, inside = self.sum_bins(0, 0, first), self.sum_bins(0, first, after)
        half = (inside + self.share * self.totals[0]) / 2
        level = np.clip((half + start) / (1 + self.share), (half - inside) / self.share, half / self.share)
        outputs = np.clip(self.labels[np.searchsorted(self.masses[:-1], level)], low, high)
        # Labels up to the output weigh on it from below, the others from above.
        below = np.searchsorted(self.labels, outputs, side="right")
        middle = np.clip(below, first, after)
        mass, moment = (
            self.sum_bins(power, first, middle)
            - self.sum_bins(power, middle, after)
            + self.share * (2 * self.sum_bins(power, 0, below) - self.totals[power])
            for power in (0, 1)
        )
        return outputs, (outputs - self.center) * mass - moment

    def reaches(self, levels: Floats) -> tuple[Floats, Floats]:
        return self.labels - levels, self.labels + levels


@dataclass(frozen=True, eq=False)
class Partition:
    """Consecutive bins, each with its best output, by their first labels: a path from the first node to the last."""

    bins: Bins
    starts: Nodes

    @cached_property
    def outputs(self) -> Floats:
        """The best output of each bin."""
        after = np.append(self.starts[1:], self.bins.problem.k)
        return self.bins.columns(self.starts, after, *self.bins.bounds[[0, -1]])[0]

    @cached_property
    def constants(self) -> Floats:
        """The cost of the constant column at each output."""
        none = np.zeros_like(self.starts)
        return self.bins.columns(none, none, self.outputs, self.outputs)[1]

    @cached_property
    def value(self) -> float:
        """The loss."""
        # Losses of labels at their own outputs are summed afresh: as differences they would lose digits.
        own = math.fsum(self.bins.own(self.spread(self.outputs)))
        return float(own + self.constants.sum()) / (1 + self.bins.share * self.starts.size)

    def lengths(self, first: Nodes, after: Nodes) -> Floats:
        """Return the lengths of some arcs under the loss of this partition."""
        return self.bins.costs(first, after) - self.bins.share * self.value

    def spread(self, amounts: Floats) -> Floats:
        """Repeat the amount of each bin at each of its labels."""
        return np.repeat(amounts, np.diff(np.append(self.starts, self.bins.problem.k)))
