r"""The multipliers that prove randomized response on bins optimal, against all sets of labels and all outputs.

With the lengths :math:`K_S + \lambda` of :mod:`optrand.solvers.bins.graph` no column prices below zero exactly if

.. math:: \sum_{y \in S} \alpha_y \leq K_S + \lambda \quad \text{for every set } S \text{ of labels},

with equality for the bins in use. For intervals this says that the running totals of multipliers are *potentials*, no
further apart than any arc between them is long. Taking a label out of its bin, or into another one, says that
:math:`p_y g(v, y) \leq \alpha_y \leq p_y g(w, y)` with :math:`v` the output of its own bin and :math:`w` the nearest
other output.

*Intervals are enough* where labels give up in order. At the output :math:`v` the best column favours the labels whose
*reach*, the range of outputs with :math:`p_y g(\cdot, y) < \alpha_y`, holds :math:`v`. If both ends of the reach move
up with the label, those labels are an interval. From bin to bin the bounds make it so. Within a bin the first try does,

.. math:: \alpha_y = (1 - t) \, p_y g(v, y) + t \, p_y g(w, y),

with the one :math:`t` for the whole bin that makes its sum right. *Proof* for Poisson log loss, :math:`v < w`: at
:math:`z = v^{1-t} w^t` the loss of the label is at most its level :math:`\tau_y = \alpha_y / p_y`, because :math:`z`
is at most :math:`(1 - t) v + t w`; so the reach ends at some :math:`R \geq z`. Since :math:`R - y \log R = \tau_y`,
and :math:`\tau_y` grows with the label at the rate :math:`-\log z`, :math:`R` grows at the rate :math:`\log (R / z) /
(1 - y / R) \geq 0`. Its lower end :math:`L \leq v` changes at the rate :math:`\log (z / L) / (y / L - 1) \geq 0`. For
squared loss, where the mean of two distances takes the place of :math:`\log z` and is at most their root mean square,
and for absolute loss the steps are the same. ∎

With a few dozen labels that is enough for some five partitions in six. Nearly all others close once the totals are
moved to the nearest potentials (:meth:`~optrand.solvers.bins.graph.BinGraph.potentials`), which mends all intervals at
once. For the rest the sets that hold too much become cuts, and the next multipliers are the nearest ones that satisfy
all cuts (:mod:`optrand.solvers.bins.cuts`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.model.problem import Problem
from optrand.solvers.bins.costs import Starts, spread
from optrand.solvers.bins.cuts import BinKnots, Cut, quotient
from optrand.solvers.bins.excess import excess
from optrand.solvers.bins.graph import BinGraph

__all__ = ["bin_dual"]

TURNS = 16
"""At most so many times all intervals are mended, or reaches put in order, by turns."""

KNOTS = 17
"""Unknowns a bin, at first."""

Broken = tuple[NDArray[np.intp], float]
"""Labels, and how much too much their multipliers sum to."""


def bin_dual(graph: BinGraph, starts: Starts, *, gap: float, rounds: int) -> Floats:
    """Multipliers of the labels' rows for a partition into bins, best an optimal one.

    Parameters
    ----------
    graph : BinGraph
    starts : (m,) array of int
        The first label of each bin; outputs must increase from bin to bin.
    gap : float
        By which share of the loss the bound may fall short of it.
    rounds : int
        At most so many times cuts are added.

    Returns
    -------
    (k,) array
        ``alpha``: of those found, the ones that prove most.

    Notes
    -----
    All sets are priced by :mod:`optrand.certificates`, ``O(k log k)``. Where the first try will not do, three more
    looks at all intervals, ``O(k^2)``, and only then rounds of prices and of a quadratic program in some knots a bin.
    """
    shares = _Shares(graph, starts)
    position = best = shares.balanced(spread(shares.fractions, starts, shares.problem.k))
    broken, least = shares.broken(best, gap)
    for turn in range(TURNS):
        if not broken:
            return shares.alpha(position)
        position = shares.ordered(position) if turn % 2 else shares.mended(position)
        broken, worst = shares.broken(position, gap)
        if worst < least:
            best, least = position, worst
    middle = position = best
    knots, cuts = BinKnots(starts, shares.problem.k, KNOTS), list[Cut]()
    for _ in range(rounds):
        broken, worst = shares.broken(position, gap)
        if worst < least:
            best, least = position, worst
        if not broken:
            break
        # Half of what is allowed is left to the engine.
        cuts += [shares.cut(position, labels, excess - gap * shares.unit / 2) for labels, excess in broken]
        moved = shares.nearest(knots, middle, cuts)
        while moved is None and not knots.exhausted:
            knots = knots.finer
            moved = shares.nearest(knots, middle, cuts)
        if moved is None:
            break
        position = moved
    return shares.alpha(best)


@dataclass(frozen=True, eq=False)
class _Shares:
    """Multipliers as places between their bounds, from 0 to 1, where the sum over each bin is known."""

    graph: BinGraph
    starts: Starts

    @property
    def problem(self) -> Problem:
        return self.graph.problem

    def _spread(self, amounts: Floats) -> Floats:
        return spread(amounts, self.starts, self.problem.k)

    def _sums(self, amounts: Floats) -> Floats:
        sums: Floats = np.add.reduceat(amounts, self.starts)
        return sums

    @cached_property
    def penalty(self) -> float:
        return self.graph.penalty(self.starts)

    @cached_property
    def unit(self) -> float:
        """Excess of a set over its limit at which the bound may be one whole loss too low."""
        gain, k = self.graph.gain, self.problem.k
        return (abs(self.graph.value(self.starts)) or abs(self.graph.costs.least) or 1.0) * ((1 + k / gain) / k)

    @cached_property
    def outputs(self) -> Floats:
        return self.graph.costs.outputs(self.starts)

    @cached_property
    def lowest(self) -> Floats:
        """The lower bounds of the multipliers: what a label loses at the output of its own bin."""
        return self.graph.costs.own(self._spread(self.outputs))

    @cached_property
    def widths(self) -> Floats:
        """Further loss of a label at the nearest other output; with one bin there is none, and the bounds are one."""
        if self.outputs.size == 1:
            return np.zeros(self.problem.k)
        below, above = np.append(self.outputs[1], self.outputs[:-1]), np.append(self.outputs[1:], self.outputs[-2])
        highest = np.minimum(*(self.graph.costs.own(self._spread(outputs)) for outputs in (below, above)))
        return np.maximum(highest - self.lowest, 0.0)

    @cached_property
    def sums(self) -> Floats:
        """Sum over each bin of what its multipliers must be above their lower bounds."""
        sums: Floats = self.graph.costs.excess(self.outputs) / self.graph.gain + self.penalty
        return np.maximum(sums, 0.0)

    @cached_property
    def fractions(self) -> Floats:
        """The one place for all labels of a bin that makes its sum right."""
        return np.minimum(quotient(self.sums, self._sums(self.widths)), 1.0)

    def balanced(self, position: Floats) -> Floats:
        """Places that sum to what each bin must hold, what rounding and limits did to the sums undone."""
        lacking = quotient(self.sums - self._sums(self.widths * position), self._sums(self.widths))
        balanced: Floats = position + self._spread(lacking)
        return balanced

    def alpha(self, position: Floats) -> Floats:
        """The multipliers of some places."""
        alpha: Floats = self.lowest + self.widths * position
        return alpha

    def mended(self, position: Floats) -> Floats:
        """Places near some others where no interval holds too much."""
        totals = np.concatenate(([0.0], np.cumsum(self.alpha(position))))
        alpha = np.diff(self.graph.potentials(totals, max(self.penalty, 0.0), self.starts))
        return self.balanced(np.clip(quotient(alpha - self.lowest, self.widths), 0.0, 1.0))

    def cut(self, position: Floats, labels: NDArray[np.intp], excess: float) -> Cut:
        """Cut on labels that hold too much; of bins that they fill by more than half, on what they leave out."""
        # The sums over bins do not change, and without them a label that holds little counts as much as one with more.
        weights = np.zeros(self.problem.k)
        weights[labels] = self.widths[labels]
        filled = 2 * self._sums(weights) > self._sums(self.widths)
        weights -= self._spread(filled.astype(np.float64)) * self.widths
        chosen = np.flatnonzero(weights)
        return Cut(chosen, weights[chosen], float(weights @ position) - excess)

    def nearest(self, knots: BinKnots, middle: Floats, cuts: list[Cut]) -> Floats | None:
        """The places nearest to some others that satisfy all cuts, if there are any."""
        found = knots.nearest(middle, self.widths, self.sums, cuts)
        return None if found is None else self.balanced(found)

    def ordered(self, position: Floats) -> Floats:
        """Places near some others where both ends of the labels' reaches move up with the label, or nearly so."""
        costs, prior = self.graph.costs, self.problem.prior
        ends = costs.reaches(self.alpha(position) / prior)
        levels = costs.levels(*map(_increasing, ends))
        return self.balanced(np.clip(quotient(prior * levels - self.lowest, self.widths), 0.0, 1.0))

    def broken(self, position: Floats, gap: float) -> tuple[list[Broken], float]:
        """Sets that hold too much, and by which share of the loss the worst of all does."""
        if self.outputs.size == 1:
            return [], 0.0
        alpha, costs = self.alpha(position), self.graph.costs
        found = excess(costs, alpha, self.widths * position, self.starts, self.penalty)
        low, high = costs.reaches(alpha / self.problem.prior)
        dips = found.dips(gap * self.unit)
        outputs, amounts = found.outputs[dips], found.amounts[dips].tolist()
        broken = [
            (np.flatnonzero((low < v) & (v < high)), amount) for v, amount in zip(outputs, amounts, strict=True)
        ]
        return broken, float(found.amounts.max()) / self.unit


def _increasing(ends: Floats) -> Floats:
    """The mean of the least increasing numbers above some others and of the largest below."""
    above = np.maximum.accumulate(ends)
    below = np.minimum.accumulate(ends[::-1])[::-1]
    increasing: Floats = (above + below) / 2
    return increasing
