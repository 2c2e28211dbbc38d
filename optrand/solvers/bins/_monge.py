r"""Shortest paths over nodes on a line whose lengths are concave Monge: least-weight subsequences.

Lengths :math:`w(i, j)`, ``i < j``, are concave Monge if :math:`w(a, c) + w(b, d) \leq w(a, d) + w(b, c)` for
:math:`a \leq b < c \leq d`. Then the best last step of a path moves forward with the node where the path ends.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optrand.base._validation import Floats
from optrand.solvers.bins._costs import Nodes

Lengths = Callable[[Nodes, Nodes], Floats]
"""Lengths of some steps: from where, and to where."""


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
