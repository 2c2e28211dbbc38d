r"""How much more than allowed the best set of labels holds at each output: prices of all columns, in floats.

With multipliers :math:`\alpha` a label is favoured at the outputs of its *reach*, where :math:`p_y g(v, y) < \alpha_y`;
the set of those labels may hold :math:`\sum (\alpha_y - p_y g(v, y)) \leq (\Phi(v) - \Phi^*) / x + \lambda`. The reach
of a label begins between the outputs of its own bin and of the bin below, and ends between those of its own bin and of
the one above; so from one output to the next, labels of two bins only come and go. What a label holds is counted from
what it holds at the output of its own bin, so that no two terms cancel: floats see what the certificate proves.
"""

from __future__ import annotations

import numpy as np

from optrand.base.validation import Floats
from optrand.solvers.bins.costs import BinCosts, Starts, spread
from optrand.solvers.bins.spans import Places

__all__ = ["excess"]


def excess(costs: BinCosts, alpha: Floats, slack: Floats, starts: Starts, penalty: float) -> float:
    """By how much the worst set at the worst output holds too much, for two bins or more.

    Parameters
    ----------
    costs : BinCosts
    alpha : (k,) array
    slack : (k,) array
        By how much they exceed what the labels lose at the outputs of their bins.
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
    # What is to leave at an end is there only before it.
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
