r"""The cost of a bin, for randomized response on bins: one arc of a shortest path.

A bin is an interval :math:`S` of labels that share one favoured output. With :math:`\Phi(v) = \sum_y p_y g(v, y)`, its
least value :math:`\Phi^*` over the allowed outputs, and :math:`x = e^\epsilon - 1`, the staircase column of the bin
costs :math:`G_S = \min_v \sum_y s_y p_y g(v, y) = \Phi^* + x K_S`, where

.. math:: K_S = \min_v \Big( \sum_{y \in S} p_y g(v, y) + \frac{\Phi(v) - \Phi^*}{x} \Big)

is what the labels of the bin lose at their output, and what they pay for moving it away from where all would have it.
Every loss has its minimiser in closed form. With the mass :math:`a` of a bin and its mean :math:`\mu + d`, both under
the prior, whose mean is :math:`\mu`:

===============  ============================================  ==============================================
squared          :math:`v = \mu + \frac{x a}{1 + x a} d`       :math:`K = I + \frac{a d^2}{2 (1 + x a)}`, with
                                                               :math:`I` the bin's own half sum of squares
Poisson log      :math:`v = \mu + \frac{x a}{1 + x a} d`       :math:`K` at :math:`v`
absolute         median under weights :math:`s_y p_y`          :math:`K` at :math:`v`
===============  ============================================  ==============================================

An interval of outputs clips :math:`v`, since :math:`g` is convex. For paths :math:`v` is *clamped* as well, to one
label beyond either end of the bin: the best partition and its cost do not change, and costs become concave Monge
(``docs/mathematics.md``, section 7). No two terms cancel (:mod:`optrand.solvers.bins.spans`), so that costs keep their
digits where ``exp(epsilon)`` is large and beside heavy labels.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import SMALLEST_NORMAL, Floats
from optrand.errors import Infeasible, InvalidInput
from optrand.model import losses
from optrand.model.problem import Problem
from optrand.solvers.bins.spans import Places, Spans

__all__ = ["BinCosts", "Starts", "bin_costs"]

Starts = NDArray[np.intp]
"""A partition into bins: the first label of each, increasing from 0."""

Sides = Sequence[tuple[Floats, Floats]]
"""Costs of two bins: their outputs, and sums of the coefficients of some of their labels."""

NEWTON = 60
"""Steps of Newton's method at most."""

LEAST_SHARE = 1e-290
"""Share of the best constant output: no output of Poisson log loss is smaller, or quotients of outputs would vanish."""


@dataclass(frozen=True, eq=False)
class BinCosts(ABC):
    """Bin costs of a loss, for the shortest path and its dual, and the labels and sums that all losses share.

    Squared loss measures outputs from the first label, so that labels far from 0 keep their digits.

    Attributes
    ----------
    labels, prior : (k,) arrays
        Labels less `origin`; positive prior.
    gain : float
        ``exp(epsilon) - 1``.
    origin : float
    low, high : float
        The ends of the allowed outputs, less `origin`.
    """

    labels: Floats
    prior: Floats
    gain: float
    origin: float
    low: float
    high: float

    bent: ClassVar[bool] = False
    """Whether the loss is straight on either side of the label."""

    @cached_property
    def mean(self) -> float:
        """Mean of all labels."""
        return math.fsum(self.prior * self.labels)

    @cached_property
    def cumulated(self) -> Floats:
        """The mass before each label, and after the last, shape ``(k + 1,)``."""
        return _prefix_sums(self.prior)

    def clip(self, outputs: Floats) -> Floats:
        """Project onto the allowed outputs."""
        within: Floats = np.clip(outputs, self.low, self.high)
        return within

    @cached_property
    def spans(self) -> Spans:
        """Sums over bins."""
        return Spans(self.labels, self.prior)

    @cached_property
    def least_output(self) -> Floats:
        """The least output of a bin by its first label: the label before it, or the allowed output nearest to it."""
        return np.append(self.low, np.clip(self.labels, self.low, self.high))

    @cached_property
    def largest_output(self) -> Floats:
        """The largest output of a bin by the label after it."""
        return np.append(np.clip(self.labels, self.low, self.high), self.high)

    def means(self, starts: Starts) -> tuple[Floats, Floats]:
        """Return the mass of each bin of a partition, and the distance of its mean from that of all labels."""
        masses = np.add.reduceat(self.prior, starts)
        first = np.repeat(self.labels[starts], np.diff(np.append(starts, self.labels.size)))
        offsets = np.add.reduceat(self.prior * (self.labels - first), starts) / masses
        return masses, self.labels[starts] - self.mean + offsets

    def shrink_distances(self, masses: Floats, distances: Floats) -> Floats:
        """Return the distances of the best outputs from the mean, if these are weighted means."""
        share = self.gain * masses
        return share / (1 + share) * distances

    @property
    @abstractmethod
    def least(self) -> float:
        r"""The least loss of a constant output, :math:`\Phi^*`."""

    @abstractmethod
    def between(self, first: Places, after: Places) -> Floats:
        """Return the clamped ``K`` of the bins of the labels ``first ... after-1``."""

    @abstractmethod
    def outputs(self, starts: Starts) -> Floats:
        """Return the best output of each bin of a partition."""

    @abstractmethod
    def excess(self, outputs: Floats) -> Floats:
        r"""Return :math:`\Phi(v) - \Phi^*`, which is nonnegative up to rounding."""

    @abstractmethod
    def own(self, outputs: Floats) -> Floats:
        """Return the loss of each label at an output of its own, times its prior, shape ``(k,)``."""

    @abstractmethod
    def reaches(self, levels: Floats) -> tuple[Floats, Floats]:
        """Return the two outputs between which the loss of each label is below a level of its own."""

    @abstractmethod
    def levels(self, low: Floats, high: Floats) -> Floats:
        """Return the mean loss of each label at two outputs of its own."""

    @abstractmethod
    def states(self, slack: Floats, outputs: Floats) -> tuple[Floats, Floats]:
        """Return coefficients of ``alpha - p g(v, y)`` as a function of ``v``, for ``v < y`` and for ``v > y``.

        Counted from an output of its own for each label, where it is its slack; shape ``(n, k)``.
        """

    @abstractmethod
    def worst(self, sides: Sides, low: Floats, high: Floats, penalty: float) -> Floats:
        """Return by how much sums of such functions exceed their limit, at the worst output between two bounds."""


class _Squared(BinCosts):
    """Half squared error."""

    @cached_property
    def shift(self) -> float:
        """From the mean to the best constant output."""
        return float(self.clip(np.array(self.mean))) - self.mean

    @cached_property
    def least(self) -> float:
        """Half the variance of the labels, and the price of clipping."""
        return math.fsum(self.prior * (self.labels - self.mean) ** 2) / 2 + self.shift**2 / 2

    def between(self, first: Places, after: Places) -> Floats:
        mass, anchor, offset, costs = self.spans.bins(first, after)
        # From the best output to the mean of the bin, and both from the mean of all.
        distance = anchor - self.mean
        distance += offset
        share = self.gain * mass
        share += 1
        gap = distance / share
        np.maximum(gap, anchor - self.largest_output[after] + offset, out=gap)
        np.minimum(gap, anchor - self.least_output[first] + offset, out=gap)
        distance -= gap
        distance *= distance
        distance -= self.shift**2
        distance /= 2 * self.gain
        costs += distance
        gap *= gap
        mass *= 0.5
        gap *= mass
        costs += gap
        return costs

    def outputs(self, starts: Starts) -> Floats:
        return self.clip(self.mean + self.shrink_distances(*self.means(starts)))

    def excess(self, outputs: Floats) -> Floats:
        moved = outputs - self.mean
        excess: Floats = (moved - self.shift) * (moved + self.shift) / 2
        return excess

    def own(self, outputs: Floats) -> Floats:
        return self.prior * losses.squared.evaluate(outputs, self.labels)

    def reaches(self, levels: Floats) -> tuple[Floats, Floats]:
        half = np.sqrt(2 * np.maximum(levels, 0.0))
        return self.labels - half, self.labels + half

    def levels(self, low: Floats, high: Floats) -> Floats:
        levels: Floats = ((self.labels - low) ** 2 + (high - self.labels) ** 2) / 4
        return levels

    def states(self, slack: Floats, outputs: Floats) -> tuple[Floats, Floats]:
        states = np.array([slack, self.prior * (self.labels - outputs), self.prior])
        return states, states

    def worst(self, sides: Sides, low: Floats, high: Floats, penalty: float) -> Floats:
        (origin, _), *_ = sides
        pull = sum((moment + mass * (centre - origin) for centre, (_, moment, mass) in sides), start=np.zeros(low.size))
        pull += (self.mean - origin) / self.gain
        weight = sides[0][1][2] + sides[1][1][2] + 1 / self.gain
        outputs = np.clip(origin + pull / weight, low, high)
        held = -self.excess(outputs) / self.gain - penalty
        for centre, (level, moment, mass) in sides:
            held += level + (outputs - centre) * (moment - mass * (outputs - centre) / 2)
        return held


class _PoissonLog(BinCosts):
    """``v - y log v``."""

    @cached_property
    def best(self) -> float:
        """The best constant output."""
        return float(super().clip(np.array(self.mean)))

    def clip(self, outputs: Floats) -> Floats:
        """Project onto the allowed outputs, and above 0 even if the bin of label 0 alone has its optimum at 0."""
        return np.maximum(super().clip(outputs), max(SMALLEST_NORMAL, LEAST_SHARE * self.best))

    @cached_property
    def least(self) -> float:
        return self.best - self.mean * math.log(self.best)

    def between(self, first: Places, after: Places) -> Floats:
        masses = self.spans.masses(first, after - 1)
        moments = masses * self.labels[first] + self.spans.above(first, after - 1)
        outputs = (self.mean + self.gain * moments) / (1 + self.gain * masses)
        outputs = np.clip(outputs, self.least_output[first], self.largest_output[after])
        outputs = self.clip(outputs)
        costs: Floats = masses * outputs - moments * np.log(outputs) + self.excess(outputs) / self.gain
        return costs

    def outputs(self, starts: Starts) -> Floats:
        masses, distances = self.means(starts)
        share = self.gain * masses
        # Not by the distance moved, which could cancel the mean down to 0.
        return self.clip((self.mean + share * (self.mean + distances)) / (1 + share))

    def excess(self, outputs: Floats) -> Floats:
        excess: Floats = outputs - self.best - self.mean * np.log(outputs / self.best)
        return excess

    def own(self, outputs: Floats) -> Floats:
        return self.prior * losses.poisson_log.evaluate(outputs, self.labels)

    def reaches(self, levels: Floats) -> tuple[Floats, Floats]:
        # Newton's steps from outside, for the logarithms of both ends: the loss is a convex function of them.
        labels = np.maximum(self.labels, SMALLEST_NORMAL)
        sizes = np.abs(levels) + 2 * labels * (1 + np.log1p(labels))
        ends = [np.minimum(-levels / labels, np.log(labels)), np.log(4 * sizes)]
        for end, side in zip(ends, (-1.0, 1.0), strict=True):
            for _ in range(NEWTON):
                slope = np.exp(end) - labels
                step = np.divide(np.exp(end) - labels * end - levels, slope, out=np.zeros_like(end), where=slope != 0)
                step = np.maximum(side * step, 0.0)
                end -= side * step
                if (step <= 1e-15 * np.abs(end)).all():
                    break
        low, high = np.exp(ends)
        return np.where(self.labels > 0, np.minimum(low, self.labels), 0.0), np.maximum(high, self.labels)

    def levels(self, low: Floats, high: Floats) -> Floats:
        above = losses.poisson_log.evaluate(high, self.labels)
        below = losses.poisson_log.evaluate(np.maximum(low, SMALLEST_NORMAL), self.labels)
        return np.where(self.labels > 0, (above + below) / 2, above)

    def states(self, slack: Floats, outputs: Floats) -> tuple[Floats, Floats]:
        del outputs
        states = np.array([slack, self.prior * self.labels, self.prior])
        return states, states

    def worst(self, sides: Sides, low: Floats, high: Floats, penalty: float) -> Floats:
        _, moment, mass = sides[0][1] + sides[1][1]
        outputs = (moment + self.mean / self.gain) / (mass + 1 / self.gain)
        outputs = self.clip(np.clip(outputs, low, high))
        held = -self.excess(outputs) / self.gain - penalty
        for centre, (level, moment, mass) in sides:
            held += level + moment * np.log(outputs / centre) - mass * (outputs - centre)
        return held


class _Absolute(BinCosts):
    """The distance: best outputs are weighted medians, which are labels, or ends of the interval."""

    bent: ClassVar[bool] = True

    @cached_property
    def centre(self) -> float:
        """The median, from which labels are measured, so that prefix sums stay of the size of the loss."""
        return float(self.labels[np.searchsorted(self.cumulated[1:], 0.5).clip(max=self.labels.size - 1)])

    @cached_property
    def moments(self) -> Floats:
        """First moments of the labels before each one, about the centre, shape ``(k + 1,)``."""
        return _prefix_sums(self.prior * (self.labels - self.centre))

    @cached_property
    def least(self) -> float:
        best = float(self.clip(np.array(self.centre)))
        return math.fsum(self.prior * np.abs(self.labels - best))

    @cached_property
    def candidates(self) -> Floats:
        """The allowed output nearest to each label."""
        return self.clip(self.labels)

    @cached_property
    def spans(self) -> Spans:
        """Sums over bins, of the nearest allowed outputs in the place of labels."""
        return Spans(self.candidates, self.prior)

    @cached_property
    def dearest(self) -> Floats:
        """What all labels pay at each candidate beyond the least, over the gain."""
        return self.excess(self.candidates) / self.gain

    @cached_property
    def clipping(self) -> Floats:
        """What labels before each one lose at least, outside the allowed outputs."""
        return _prefix_sums(self.prior * np.abs(self.labels - self.candidates))

    def between(self, first: Places, after: Places) -> Floats:
        last = self.labels.size - 1
        medians = np.clip(self.medians(first, after), np.maximum(first - 1, 0), np.minimum(after, last))
        costs = self.spans.below(np.minimum(first, medians), medians)
        costs += self.spans.above(medians, np.maximum(after - 1, medians))
        costs += self.dearest[medians]
        if self.clipping[-1]:
            costs += self.clipping[after] - self.clipping[first]
        return costs

    def medians(self, before: NDArray[np.intp], after: NDArray[np.intp]) -> NDArray[np.intp]:
        """Find the label at which the weights of a bin and of all labels below it reach half of their total."""
        # The weight up to a label whose prior sums to c is c, and gain times what of it lies in the bin.
        low, high, gain = self.cumulated[before], self.cumulated[after], self.gain
        half = (1 + gain * (high - low)) / 2
        inside = (half + gain * low) / (1 + gain)
        level = np.where(half <= low, half, np.where(inside <= high, inside, half - gain * (high - low)))
        return np.searchsorted(self.cumulated[1:-1], level)

    def outputs(self, starts: Starts) -> Floats:
        return self.candidates[self.medians(starts, np.append(starts[1:], self.labels.size))]

    def excess(self, outputs: Floats) -> Floats:
        below = np.searchsorted(self.labels, outputs, side="right")
        masses, moments = self.cumulated, self.moments
        losses_ = (outputs - self.centre) * (2 * masses[below] - masses[-1]) + moments[-1] - 2 * moments[below]
        excess: Floats = losses_ - self.least
        return excess

    def own(self, outputs: Floats) -> Floats:
        return self.prior * losses.absolute.evaluate(outputs, self.labels)

    def reaches(self, levels: Floats) -> tuple[Floats, Floats]:
        return self.labels - levels, self.labels + levels

    def levels(self, low: Floats, high: Floats) -> Floats:
        levels: Floats = (high - low) / 2
        return levels

    def states(self, slack: Floats, outputs: Floats) -> tuple[Floats, Floats]:
        prior, distance = self.prior, self.labels - outputs
        below, above = 2 * prior * np.maximum(-distance, 0.0), 2 * prior * np.maximum(distance, 0.0)
        return np.array([slack + below, prior]), np.array([slack + above, -prior])

    def worst(self, sides: Sides, low: Floats, high: Floats, penalty: float) -> Floats:
        at_ends = [
            sum((level + slope * (end - centre) for centre, (level, slope) in sides), start=np.zeros(end.size))
            - self.excess(end) / self.gain
            - penalty
            for end in (low, high)
        ]
        worst: Floats = np.maximum(*at_ends)
        return worst


def bin_costs(problem: Problem) -> BinCosts:
    """Return the costs of the bins of a problem without bias penalty, with outputs on the line or an interval.

    Parameters
    ----------
    problem : Problem
        Its prior must be positive and sum to 1 as well as floats can.

    Raises
    ------
    Infeasible
        Poisson log loss where all labels are 0 and outputs may come as near to 0 as they like.

    Examples
    --------
    The prior of [B23], Table 1, at epsilon 0.5: the bin of the labels 1 and 2.

    >>> import optrand
    >>> costs = bin_costs(optrand.regression([0, 1, 2], [0.6, 0.25, 0.15], 0.5))
    >>> costs.outputs(np.array([0, 1])).round(3).tolist()
    [0.396, 0.72]
    >>> costs.between(np.array([1, 1]), np.array([2, 3])).round(4).tolist()
    [0.0218, 0.155]
    """
    kinds: dict[str, type[_Squared] | type[_Absolute] | type[_PoissonLog]] = {
        losses.squared.name: _Squared,
        losses.absolute.name: _Absolute,
        losses.poisson_log.name: _PoissonLog,
    }
    if problem.loss.name not in kinds:
        raise InvalidInput(f"the loss is {problem.loss.name}, and bins have a closed form for {', '.join(kinds)}")
    low, high = problem.outputs.low, problem.outputs.high
    if problem.loss == losses.poisson_log and problem.labels[-1] == 0 and low <= 0:
        raise Infeasible("the label 0 alone has no best output above 0 under Poisson log loss: pass outputs=[...]")
    origin = float(problem.labels[0]) if problem.loss == losses.squared else 0.0
    labels, gain = problem.labels - origin, math.expm1(problem.epsilon)
    return kinds[problem.loss.name](labels, problem.prior, gain, origin, low - origin, high - origin)


def spread(amounts: NDArray[Any], starts: Starts, k: int) -> NDArray[Any]:
    """Return the amounts of bins, repeated at each of their labels."""
    return np.repeat(amounts, np.diff(np.append(starts, k)))


def _prefix_sums(terms: Floats) -> Floats:
    """Return the sum before each term, and of all: rounded once if the machine has longer floats."""
    return np.concatenate(([0.0], np.cumsum(terms, dtype=np.longdouble).astype(np.float64)))
