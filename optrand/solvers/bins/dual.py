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

With a few dozen labels and a small epsilon that is enough for some five partitions in six. Nearly all others close
once the totals are moved to the nearest potentials (:meth:`~optrand.solvers.bins.graph.BinGraph.potentials`), which
mends all intervals at once. Where this puts reaches out of order, both ends are moved to the nearest increasing numbers
(isotonic regression under the prior), and intervals are mended again, by turns, until all sets hold no more than they
may (:func:`excess`).

*The excess of a set* is how much more than allowed the labels of the best set hold at an output. With
multipliers :math:`\alpha` a label is favoured at the outputs of its *reach*, where :math:`p_y g(v, y) < \alpha_y`; the
set of those labels may hold :math:`\sum (\alpha_y - p_y g(v, y)) \leq (\Phi(v) - \Phi^*) / x + \lambda`. The reach
of a label begins between the outputs of its own bin and of the bin below, and ends between those of its own bin and of
the one above; so from one output to the next, labels of two bins only come and go. The amount of a label is counted
from that at the output of its own bin, so that no two terms cancel, and floats agree with the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optrand.base.validation import Floats
from optrand.model.problem import Problem
from optrand.solvers.bins.costs import BinCosts, Starts, spread
from optrand.solvers.bins.graph import BinGraph
from optrand.solvers.bins.spans import Places

__all__ = ["bin_dual", "excess"]

RELAXED = (1.0, 2.0, 4.0, 8.0)
"""How far reaches are moved towards order, in turns: 1 is into order, and farther now and then makes turns fewer."""

LIMITS = 40
"""Largest number of times that multipliers are moved together although some of them meet a bound."""


def bin_dual(graph: BinGraph, starts: Starts, *, gap: float, rounds: int) -> Floats:
    """Return multipliers of the labels' rows for a partition into bins, which should be an optimal one.

    Parameters
    ----------
    graph : BinGraph
    starts : (m,) array of int
        The first label of each bin; outputs must increase from bin to bin.
    gap : float
        By which share of the loss the bound may fall short of it.
    rounds : int
        Largest number of repairs.

    Returns
    -------
    (k,) array
        ``alpha``: of those found, the ones that prove most.

    Notes
    -----
    ``O(k log k)`` a turn. Of several thousand random problems, with labels from 1e-8 to 1e8 and priors down to 1e-30
    among them, one in a hundred took more than five turns of each kind.
    """
    shares = _Shares(graph, starts)
    position = best = shares.balance(spread(shares.fractions, starts, shares.problem.k))
    least = worst = shares.excess(position)
    for turn in range(rounds):
        if worst <= gap:
            break
        position = shares.mend(position) if turn % 2 == 0 else shares.order(position, RELAXED[turn // 2 % len(RELAXED)])
        worst = shares.excess(position)
        if worst < least:
            best, least = position, worst
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
        """The lower bounds of the multipliers: the loss of a label at the output of its own bin."""
        return self.graph.costs.own(self._spread(self.outputs))

    @cached_property
    def widths(self) -> Floats:
        """Additional loss of a label at the nearest other output; 0 if there is one bin."""
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

    def balance(self, position: Floats) -> Floats:
        """Move positions so that each bin has its sum again, which rounding and limits have changed."""
        for _ in range(LIMITS):
            lacking = self.sums - self._sums(self.widths * position)
            free = np.where(self._spread(lacking) > 0, position < 1, position > 0)
            moved = position + free * self._spread(quotient(lacking, self._sums(self.widths * free)))
            position = np.clip(moved, 0.0, 1.0)
            if np.array_equal(moved, position):
                break
        return position

    def alpha(self, position: Floats) -> Floats:
        """Return the multipliers of some positions."""
        alpha: Floats = self.lowest + self.widths * position
        return alpha

    def mend(self, position: Floats) -> Floats:
        """Move positions so that no interval holds too much."""
        totals = np.concatenate(([0.0], np.cumsum(self.alpha(position))))
        alpha = np.diff(self.graph.potentials(totals, max(self.penalty, 0.0), self.starts))
        return self.balance(np.clip(quotient(alpha - self.lowest, self.widths), 0.0, 1.0))

    def order(self, position: Floats, relaxed: float) -> Floats:
        """Move positions so that both ends of the labels' reaches increase with the label, or nearly so."""
        from scipy.optimize import isotonic_regression

        costs, prior = self.graph.costs, self.problem.prior
        ends = costs.reaches(self.alpha(position) / prior)
        levels = costs.levels(*(isotonic_regression(end, weights=prior).x for end in ends))
        moved = quotient(prior * levels - self.lowest, self.widths)
        return self.balance(np.clip(position + relaxed * (np.clip(moved, 0.0, 1.0) - position), 0.0, 1.0))

    def excess(self, position: Floats) -> float:
        """By which share of the loss the set that holds most too much makes the bound fall short."""
        if self.outputs.size == 1:
            return 0.0
        slack = self.widths * position
        return excess(self.graph.costs, self.lowest + slack, slack, self.starts, self.penalty) / self.unit


def quotient(above: Floats, below: Floats) -> Floats:
    """Divide, with 0 as the quotient of 0 by 0."""
    ratio: Floats = np.divide(above, below, out=np.zeros(above.shape), where=below > 0)
    return ratio


def excess(costs: BinCosts, alpha: Floats, slack: Floats, starts: Starts, penalty: float) -> float:
    """By how much the worst set at the worst output holds too much, for two bins or more.

    Parameters
    ----------
    costs : BinCosts
    alpha : (k,) array
    slack : (k,) array
        By how much they exceed the losses of the labels at the outputs of their bins.
    starts : (m,) array of int
        The first label of each bin; outputs must increase from bin to bin.
    penalty : float
    """
    k, m = alpha.size, starts.size
    labels, outputs = costs.labels, costs.outputs(starts)
    own = spread(np.arange(m), starts, k)
    early = labels < outputs[own]
    low, high = costs.reaches(alpha / costs.prior)
    left, right = costs.states(slack, outputs[own])
    none, ends = np.zeros_like(left), np.zeros((left.shape[0], m))
    # Gap i lies between the outputs of bins i - 1, whose labels leave there, and i, whose labels enter.
    edges = np.concatenate(([costs.low], outputs, [costs.high]))
    gaps = [own, own + 1, np.arange(1, m + 1), np.arange(m)]
    places = [low, high, np.full(m, -np.inf), np.full(m, np.inf)]
    entering, leaving = [left, none, ends, ends], [none, right, ends, ends]
    if costs.bent:
        gaps.append(own + ~early)
        places.append(labels)
        entering.append(np.where(early, right - left, 0.0))
        leaving.append(np.where(early, 0.0, left - right))
    gap, place = np.concatenate(gaps), np.concatenate(places)
    place = np.where(np.isinf(place), place, np.clip(place, edges[gap], edges[gap + 1]))
    order = np.lexsort((place, gap))
    gap, place = gap[order], place[order]
    entered = _running(np.concatenate(entering, axis=1)[:, order], gap)
    remaining = _running(np.concatenate(leaving, axis=1)[:, order[::-1]], gap[::-1])[:, ::-1]
    # Mass that leaves at an end is present only before it.
    remaining = np.append(remaining[:, 1:], ends[:, :1], axis=1)
    stops = np.append(place[1:], np.inf)
    pieces = np.flatnonzero((place < stops) & (gap == np.append(gap[1:], m + 1)))
    gap = gap[pieces]
    first, last = np.maximum(place[pieces], edges[gap]), np.minimum(stops[pieces], edges[gap + 1])
    centres = outputs[np.maximum(gap - 1, 0)], outputs[np.minimum(gap, m - 1)]
    sides = list(zip(centres, (remaining[:, pieces], entered[:, pieces]), strict=True))
    return float(costs.worst(sides, first, last, penalty).max())


def _running(terms: Floats, groups: Places) -> Floats:
    """Return running sums of some rows within groups of neighbours, each group as exact as if it were alone."""
    begin = np.append(True, groups[1:] != groups[:-1])
    place = np.arange(groups.size)
    rank = place - np.maximum.accumulate(np.where(begin, place, 0))
    step, last = 1, int(rank.max())
    while step <= last:
        terms[:, step:] += np.where(rank[step:] >= step, terms[:, :-step], 0.0)
        step *= 2
    return terms
