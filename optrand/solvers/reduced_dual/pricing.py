"""Intervals that some multipliers leave too cheap, among all: the arcs that a strip lacks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optrand.base.validation import Floats
from optrand.model.randomizer import Indices
from optrand.solvers.compiled import compiled
from optrand.solvers.reduced_dual.mending import required
from optrand.solvers.reduced_dual.strip import Terms

__all__ = ["cheap_arcs", "end_arcs", "spread", "united"]


@compiled
def cheap_arcs(terms: Terms, slopes: Floats, costs: Floats, least: float) -> tuple[Indices, Indices]:
    """From each node, and to each node, the arc of the least slack, where that is below `least`; ``O(k**2)``.

    The arc over all labels is none. `slopes` and `costs` are the sums of the multipliers up to each node.
    """
    k = costs.size - 1
    total = costs[k]
    first, end = np.empty(2 * k, np.int64), np.empty(2 * k, np.int64)
    lowest, origin = np.full(k + 1, np.inf), np.zeros(k + 1, np.int64)
    count = 0
    for a in range(k):
        stop = k if a == 0 else k + 1
        slack = costs[a + 1 : stop] - costs[a]
        slack = slack - required(terms, slopes, total, slice(a, a + 1), slice(a + 1, stop))
        if not slack.size:
            continue
        best = int(np.argmin(slack))
        if slack[best] < least:
            first[count], end[count] = a, a + 1 + best
            count += 1
        less = slack < lowest[a + 1 : stop]
        lowest[a + 1 : stop] = np.where(less, slack, lowest[a + 1 : stop])
        origin[a + 1 : stop] = np.where(less, a, origin[a + 1 : stop])
    for b in range(1, k + 1):
        if lowest[b] < least:
            first[count], end[count] = origin[b], b
            count += 1
    return first[:count], end[:count]


def end_arcs(k: int) -> tuple[Indices, Indices]:
    """All arcs from the first node, and to the last one: on these there is a randomizer wherever there is one at all.

    They have one inner node each, so they widen no band.
    """
    inner = np.arange(1, k)
    return np.append(np.zeros(k - 1, np.int64), inner), np.append(inner, np.full(k - 1, k))


def spread(nodes: tuple[Indices, Indices], k: int, steps: Sequence[int]) -> tuple[Indices, Indices]:
    """First and end nodes of some arcs, and of those with one end moved by so many nodes; each once and in order.

    The arc over all of the `k` labels is none.

    Examples
    --------
    >>> first, end = spread((np.array([1]), np.array([3])), 4, (1, 2))
    >>> list(zip(first.tolist(), end.tolist(), strict=True))
    [(0, 3), (1, 2), (1, 3), (1, 4), (2, 3)]
    """
    moves = np.array([0, *steps, *(-step for step in steps)])
    (first, end), none = (x[:, np.newaxis] for x in nodes), np.zeros_like(moves)
    first, end = (np.hstack(x).ravel() for x in ((first + moves, first + none), (end + none, end + moves)))
    arcs = (first >= 0) & (end <= k) & (first < end) & (end - first < k)
    return united((first[arcs], end[arcs]), nodes)


def united(one: tuple[Indices, Indices], other: tuple[Indices, Indices]) -> tuple[Indices, Indices]:
    """First and end nodes of the arcs of either, each once and in order.

    Examples
    --------
    >>> first, end = united((np.array([0, 1]), np.array([1, 3])), (np.array([1, 0]), np.array([3, 2])))
    >>> first.tolist(), end.tolist()
    ([0, 0, 1], [1, 2, 3])
    """
    first, end = (np.concatenate(nodes) for nodes in zip(one, other, strict=True))
    size = int(end.max()) + 1
    arcs = np.unique(first * size + end)
    return arcs // size, arcs % size
