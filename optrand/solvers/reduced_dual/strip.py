"""Arcs near the path of cheapest intervals, and where they go in a band: what one level of the problem consists of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optrand.base.validation import Floats
from optrand.model.randomizer import Indices
from optrand.solvers.compiled import compiled
from optrand.solvers.reduced_dual.operations import cuthill_mckee, highest, isotonic, running_maximum

__all__ = [
    "FAINT",
    "Arcs",
    "Terms",
    "all_arcs",
    "arcs_of",
    "halved",
    "near",
    "near_order",
    "nodes_of",
    "path",
    "strip_around",
]


class Terms(NamedTuple):
    """Numbers of a problem in the unit of the kernel.

    Attributes
    ----------
    before : (k + 1,) array
        Prior before each node.
    gaps : (k + 1,) array
        Distance of the labels beside each node; 0 at the first, and at the last minus the last label.
    excess : float
        ``1 / (E - 1)``.
    charges : (k,) array
        What the squared difference of the sums ``b`` beside each label is charged, twice over; empty without bias.
    low, high : float
        Ends of the outputs.
    """

    before: Floats
    gaps: Floats
    excess: float
    charges: Floats
    low: float
    high: float


class Arcs(NamedTuple):
    """Arcs between nodes, and where their entries go.

    Attributes
    ----------
    k : int
        Number of labels; nodes are 0 to k.
    n : int
        Number of arcs.
    first, end : (n,) arrays, or (n + k,)
        Nodes of each arc; then of each label, where biases are charged.
    unknown : int
        Number of nodes whose sums are unknown: k - 1, or k with the last one.
    places : (k + 1,) array
        Place of each node among the unknowns, -1 for the first and, where its sums are fixed, the last one.
    banded, width : int
        Number of nodes in the band, and of its diagonals.
    bottoms : array
        Last row that each panel of columns reaches, or one before it.
    inside, spots : arrays
        Arcs between nodes of the band, and where their four entries go in it.
    beside, borders : arrays
        Arcs of a star and another unknown node, and where their four entries go in the border.
    nodes, stars : arrays
        Nodes in the band, and beside it.
    low, high : (n,) arrays
        Bounds of the output of each arc; equal on a grid.
    """

    k: int
    n: int
    first: Indices
    end: Indices
    unknown: int
    places: Indices
    banded: int
    width: int
    bottoms: Indices
    inside: Indices
    spots: Indices
    beside: Indices
    borders: Indices
    nodes: Indices
    stars: Indices
    low: Floats
    high: Floats


FARTHEST = 1e6
"""Roots, in the unit of outputs, are clipped here."""

MARGIN = 12
"""Next to the two ends, arcs farther than this from the corners of the path are left out."""

FAINT = 1e-12
"""Prior that counts in the fit of roots, at least."""


@compiled
def halved(before: Floats, gaps: Floats, heavy: float, steep: float) -> tuple[Floats, Floats, Indices, Floats]:
    """Priors before and gaps at some nodes, and each node as a mixture: the kept one before it, the share of the next.

    Kept are the last node, those beside labels and gaps `heavy` times the mean, those in gaps that are
    wider, `steep` times, than the distance to the nearer of the end labels, and between these every second one.
    """
    size = before.size
    mass, each, inner = np.diff(before), np.arange(size), gaps.copy()
    inner[0] = inner[-1] = 0.0
    much = mass > heavy * mass.mean()
    place = np.cumsum(inner)
    forced = (inner > heavy * inner.mean()) | (steep * inner > np.minimum(place - inner, place[-1] - place))
    forced[0] = True
    forced[:-1] |= much
    forced[1:] |= much
    starts = running_maximum(np.where(forced, each, 0))
    kept = np.flatnonzero((each - starts) % 2 == 0)
    if kept[-1] != size - 1:
        kept = np.append(kept, size - 1)
    some = before[kept]
    left = np.minimum(np.searchsorted(kept, each, side="right") - 1, kept.size - 2)
    step = some[left + 1] - some[left]
    even = (each - kept[left]) / (kept[left + 1] - kept[left])
    share = np.where(step > 0, (before - some[left]) / np.where(step > 0, step, 1.0), even)
    coarse: Floats = np.zeros(kept.size)
    coarse += np.bincount(left, gaps * (1 - share), kept.size)
    coarse += np.bincount(left + 1, gaps * share, kept.size)
    return some, coarse, left, share


@compiled
def path(terms: Terms, slopes: Floats, costs: Floats) -> tuple[Indices, Indices]:
    """For each first label the nodes at which the cheapest intervals from it end, from a first to a last.

    `slopes` and `costs` are the other two sums of the labels up to each node.
    """
    before, low_end, high_end = terms.before, max(terms.low, -FARTHEST), min(terms.high, FARTHEST)
    k = before.size - 1
    mass, slope, cost = np.diff(before), np.diff(slopes), np.diff(costs)
    square = slope * slope - 2 * mass * cost
    root = np.sqrt(np.maximum(square, 0.0))
    far = slope + np.where(slope >= 0, root, -root)
    one = np.where(mass > 1e-300, far / np.where(mass > 1e-300, mass, 1.0), np.where(far >= 0, FARTHEST, -FARTHEST))
    other = np.where(far != 0, 2 * cost / np.where(far != 0, far, 1.0), 0.0)
    one = np.minimum(np.maximum(one, low_end), high_end)
    other = np.minimum(np.maximum(other, low_end), high_end)
    weights = np.where(square > 0, mass + FAINT, 1e-30)
    left, right = isotonic(np.minimum(one, other), weights), isotonic(np.maximum(one, other), weights)
    each = np.arange(k)
    beyond = np.searchsorted(left, np.maximum(left, right), side="right").astype(np.float64)
    high = np.maximum(running_maximum(beyond).astype(np.int64), each + 1)
    low = np.ones(k, np.int64)
    low[1:] = np.maximum(high[:-1], each[1:] + 1)
    high = np.maximum(high, low)
    high[-1] = k
    return low, high


@compiled
def strip_around(low: Indices, high: Indices, reach: int) -> tuple[Indices, Indices]:
    """Arcs within so many steps of a path, an end moving by one in each; all but the arc over all labels."""
    k = low.size
    wide_low, wide_high = low.copy(), high.copy()
    for apart in range(-reach, reach + 1):
        left = reach - abs(apart)
        near = np.minimum(np.maximum(np.arange(k) + apart, 0), k - 1)
        wide_low = np.minimum(wide_low, low[near] - left)
        wide_high = np.maximum(wide_high, high[near] + left)
    wide_low = np.maximum(wide_low, np.arange(k) + 1)
    wide_high = np.minimum(wide_high, k)
    wide_high[0] = min(wide_high[0], k - 1)
    for a in range(1, min(reach + 1, k)):
        wide_low[a] = max(wide_low[a], min(low[a], high[0] - MARGIN))
    last = np.searchsorted(high, k) + MARGIN
    wide_low[last:] = np.maximum(wide_low[last:], low[last:])
    return wide_low, wide_high


@compiled
def all_arcs(k: int) -> tuple[Indices, Indices]:
    """All intervals of ``k`` labels but the whole."""
    high = np.full(k, k)
    high[0] = k - 1
    return np.arange(1, k + 1), high


@compiled
def near_order(first: Indices, end: Indices, k: int, most: int, charged: bool) -> tuple[Indices, int]:
    """Order the inner nodes so that neighbours stay near (-1 for both ends), and count the hub nodes.

    Stars, nodes of more than `most` arcs on a side, come last. Labels are arcs too where biases are charged.
    """
    stars = (np.bincount(first, minlength=k + 1) > most) | (np.bincount(end, minlength=k + 1) > most)
    stars[0] = stars[k] = True
    if charged:
        first, end = np.concatenate((first, np.arange(k))), np.concatenate((end, np.arange(1, k + 1)))
    kept = ~(stars[first] | stars[end])
    order = cuthill_mckee(first[kept], end[kept], k + 1)
    order = np.concatenate((order[~stars[order]], 1 + np.flatnonzero(stars[1:k])))
    places = np.full(k + 1, -1)
    places[order] = np.arange(k - 1)
    return places, int(stars[1:k].sum())


@compiled
def nodes_of(low: Indices, high: Indices) -> tuple[Indices, Indices]:
    """First and end nodes of the arcs of a strip."""
    counts = high - low + 1
    first = np.repeat(np.arange(low.size), counts)
    return first, np.arange(first.size) + np.repeat(low - (np.cumsum(counts) - counts), counts)


@compiled
def near(terms: Terms, slopes: Floats, costs: Floats, reach: int) -> tuple[Indices, Indices]:
    """First and end nodes of the arcs within so many steps of the path of cheapest intervals."""
    low, high = path(terms, slopes, costs)
    low, high = strip_around(low, high, reach)
    return nodes_of(low, high)


@compiled
def arcs_of(
    first: Indices, end: Indices, bounds: tuple[Floats, Floats], places: Indices, stars: int, charged: bool
) -> Arcs:
    """Arcs with their entries in an order of nodes; then the labels, where biases are charged."""
    k = places.size - 1
    count = first.size
    if charged:
        first, end = np.concatenate((first, np.arange(k))), np.concatenate((end, np.arange(1, k + 1)))
    unknown = k if places[k] >= 0 else k - 1
    banded = unknown - stars
    one, other = places[first], places[end]
    inner = np.flatnonzero((one >= 0) & (other >= 0))
    upper = np.maximum(one[inner], other[inner])
    lower = np.minimum(one[inner], other[inner])
    close = upper < banded
    inside, beside = inner[close], inner[~close]
    up, down = upper[close], lower[close]
    width = 2
    if inside.size:
        width = 2 * int(np.max(up - down)) + 2
    # Two nodes are a panel; an odd number of nodes is filled up.
    reached = np.arange(banded + banded % 2)
    reached = running_maximum(highest(down, up, reached))
    bottoms = 2 * reached[1::2] + 1
    spots = np.concatenate(
        (
            2 * down * width + 2 * (up - down),
            (2 * down + 1) * width + 2 * (up - down) - 1,
            2 * down * width + 2 * (up - down) + 1,
            (2 * down + 1) * width + 2 * (up - down),
        )
    )
    up, down = upper[~close] - banded, lower[~close]
    size = 2 * unknown
    borders = np.concatenate(
        (
            2 * up * size + 2 * down,
            2 * up * size + 2 * down + 1,
            (2 * up + 1) * size + 2 * down,
            (2 * up + 1) * size + 2 * down + 1,
        )
    )
    inner_places = places[1 : unknown + 1]
    nodes, starred = 1 + np.flatnonzero(inner_places < banded), 1 + np.flatnonzero(inner_places >= banded)
    return Arcs(
        k,
        count,
        first,
        end,
        unknown,
        places,
        banded,
        width,
        bottoms,
        inside,
        spots,
        beside,
        borders,
        nodes,
        starred,
        bounds[0],
        bounds[1],
    )
