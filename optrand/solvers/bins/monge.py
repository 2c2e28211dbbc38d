r"""Least-weight subsequences where weights are concave Monge: shortest paths over nodes on a line.

Weights :math:`w(i, j)`, ``i < j``, are concave Monge if :math:`w(a, c) + w(b, d) \leq w(a, d) + w(b, c)` for
:math:`a \leq b < c \leq d`. Then the best last step of a path moves forward with the node where the path ends. So the
best steps from ``m`` nodes that are done to ``n`` others are found by halving: ``log n`` times ``O(m + n)`` weights,
all of one halving at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optrand.base.validation import Floats
from optrand.solvers.bins.spans import Places

__all__ = ["Distances", "best_steps", "distances"]

Weights = Callable[[Places, Places], Floats]
"""Weights of some steps: from where, and to where."""

DENSE = 32
"""Nodes whose candidates are compared one after the other."""

NOISE = 4e-15
"""Share of the largest distance by which another step is no better."""


@dataclass(frozen=True, eq=False)
class Distances:
    """Length of a shortest path to each node, and its last step.

    Attributes
    ----------
    lengths : (k + 1,) array
    before : (k + 1,) array of int
        The node before; the node itself where its own offer is no longer.
    """

    lengths: Floats
    before: Places

    def path(self) -> Places:
        """Return the nodes of the path to the last one, without it."""
        nodes = [int(self.before[-1])]
        while self.before[nodes[-1]] != nodes[-1]:
            nodes.append(int(self.before[nodes[-1]]))
        return np.array(nodes[::-1], dtype=np.intp)


def best_steps(weights: Weights, known: Floats, nodes: Places, low: int, high: int) -> tuple[Floats, Places]:
    """Return the least ``known[i] + w(i, j)`` over ``i < j`` in ``low ... high``, for each ``j``, and its first ``i``.

    Parameters
    ----------
    weights : callable
    known : array
        Distances of the candidates ``low ... high``, or of more nodes.
    nodes : (n,) array of int
        Increasing, above `low`.
    low, high : int

    Examples
    --------
    >>> lengths, before = best_steps(lambda i, j: (j - i) ** 2.0, np.array([0.0, 3.0]), np.array([2, 3]), 0, 1)
    >>> lengths.tolist(), before.tolist()
    ([4.0, 7.0], [0, 1])
    """
    n = nodes.size
    lengths, before = np.empty(n), np.empty(n + 2, dtype=np.intp)
    before[-1], before[n] = low, high
    step = 1 << (n.bit_length() - 1)
    while step:
        chosen = np.arange(step - 1, n, 2 * step)
        ends = nodes[chosen]
        first = before[chosen - step]
        last = np.minimum(before[np.minimum(chosen + step, n)], ends - 1)
        counts = last - first + 1
        stops = np.cumsum(counts)
        starts = stops - counts
        candidates = np.repeat(first - starts, counts)
        candidates += np.arange(stops[-1])
        totals = weights(candidates, np.repeat(ends, counts))
        totals += known[candidates]
        least = np.minimum.reduceat(totals, starts)
        hits = np.flatnonzero(totals == np.repeat(least, counts))[::-1]
        before[chosen[np.searchsorted(stops, hits, side="right")]] = candidates[hits]
        lengths[chosen] = least
        step //= 2
    return lengths, before[:n]


def distances(weights: Weights, offers: Floats, hint: Places) -> Distances:
    """Return the shortest paths that begin at any node, at the price of its offer.

    Parameters
    ----------
    weights : callable
        Concave Monge.
    offers : (k + 1,) array
        Finite at node 0.
    hint : array of int
        Nodes that a shortest path may visit: between them others are done at once.

    Notes
    -----
    From the nodes that are done the best steps to those up to the next hint, and then the best steps between these.
    Where one of the latter is better, all before it is done, and what lies behind is taken up again, no more nodes at
    once than its last step is long. So a node is looked at a few times, ``O(k log k)`` weights, and where steps are
    short nodes are done one by one. Right whatever the hint is.
    """
    k = offers.size - 1
    lengths, before = offers.copy(), np.arange(k + 1)
    stops = np.append(hint[hint > 0], k)
    scale = NOISE * float(np.abs(offers[np.isfinite(offers)]).max(initial=0.0))
    done, low, most = 0, 0, k

    def offer(nodes: Places, found: Floats, steps: Places) -> Places:
        """Enter the lengths that are shorter than before, and return their positions among the nodes."""
        better = np.flatnonzero(found < lengths[nodes] - max(scale, NOISE * float(np.abs(found).max())))
        lengths[nodes[better]], before[nodes[better]] = found[better], steps[better]
        return better

    while done < k:
        stop = min(int(stops[np.searchsorted(stops, done, side="right")]), done + most)
        if stop - low <= 2 * DENSE:
            stop = max(stop, min(k, done + DENSE))
            low = _one_by_one(weights, lengths, before, low, done, stop)
            done, most = stop, k
            continue
        nodes = np.arange(done + 1, stop + 1)
        found, steps = best_steps(weights, lengths, nodes, low, done)
        offer(nodes, found, steps)
        low, better = int(steps[-1]), nodes[:0]
        if nodes.size > 1:
            found, inner = best_steps(weights, lengths, nodes[1:], done + 1, stop - 1)
            better = offer(nodes[1:], found, inner)
        if better.size:
            at = int(better[0])
            done, low = int(nodes[at + 1]), int(inner[at])
            most = max(done - low, DENSE)
        else:
            done, most = stop, k
    return Distances(lengths, before)


def _one_by_one(weights: Weights, lengths: Floats, before: Places, low: int, done: int, stop: int) -> int:
    """Return the distances of ``done+1 ... stop`` from candidates from `low` on, and the last one's best candidate."""
    nodes, candidates = np.arange(done + 1, stop + 1), np.arange(low, stop)
    rows, columns = np.nonzero(candidates < nodes[:, np.newaxis])
    steps = np.full((nodes.size, candidates.size), np.inf)
    steps[rows, columns] = weights(candidates[columns], nodes[rows])
    best = 0
    for row, node in zip(steps, range(done + 1, stop + 1), strict=True):
        row[: node - low] += lengths[low:node]
        best = int(row[: node - low].argmin())
        if row[best] < lengths[node]:
            lengths[node], before[node] = row[best], low + best
    return low + best
