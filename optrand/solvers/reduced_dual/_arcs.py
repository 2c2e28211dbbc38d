"""Levels of nodes, the arcs near the path of cheapest intervals, and the order of nodes that makes a banded system."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from optrand.base._validation import Floats
from optrand.model._randomizer import Indices
from optrand.solvers._positions import Numbers


@dataclass(frozen=True)
class ArcOptions:
    """Tuning of levels and of candidate arcs, on 2,000 random problems of up to 400 labels.

    Attributes
    ----------
    heavy : float
        Labels of more than this multiple of the mean prior, and gaps as wide, are not merged with their neighbours.
    shrunk : float
        A level with more than this share of the nodes of the finer one is not worth solving.
    farthest : float
        Roots, in the unit of outputs, are clipped here.
    faint : float
        Least prior that counts in the fit of roots.
    margin : int
        Next to the two ends, arcs farther than this from the corners of the path are left out. At 12 the band is up to
        twice as wide, and at 4 a problem of 563 labels with long tails stays open.
    """

    heavy: float = 4.0
    shrunk: float = 0.9
    farthest: float = 1e6
    faint: float = 1e-12
    margin: int = 12


OPTIONS = ArcOptions()

Nodes = tuple[Indices, Indices]
"""First and end nodes of arcs."""


class Terms(NamedTuple):
    """Numbers of a problem in the unit of the kernel.

    Attributes
    ----------
    before : (k + 1,) array
        Prior before each node.
    gaps : (k + 1,) array
        Distance of the labels beside each node: 0 at the first, and at the last minus the last label.
    excess : float
        ``1 / (E - 1)``.
    charges : (k,) array
        Charge, times two, of the squared difference of the sums ``b`` beside each label. Empty without bias.
    low, high : float
        Ends of the outputs.
    values : array
        The outputs on a grid, in increasing order. Empty if all between the ends are allowed.
    """

    before: Floats
    gaps: Floats
    excess: float
    charges: Floats
    low: float
    high: float
    values: Floats = np.zeros(0)

    @property
    def centre(self) -> tuple[Floats, Floats]:
        """Sums ``b, c`` of multipliers at which the reduced cost of each arc is half of its weight."""
        return np.zeros(self.before.size), self.before / 2

    @property
    def capped(self) -> Terms:
        """The terms with charges of biases that leave digits to the other terms of the Newton matrix."""
        # The rest of a charge is left to the multipliers of biases (docs/mathematics.md, section 13).
        return self._replace(charges=np.minimum(self.charges, 1e10))

    def nearest(self, outputs: Floats) -> Floats:
        """Return the allowed output nearest to each: reduced costs are parabolas in the output, so it is the best."""
        if not self.values.size:
            return np.minimum(np.maximum(outputs, self.low), self.high)
        above = np.clip(np.searchsorted(self.values, outputs), 1, self.values.size - 1)
        left, right = self.values[above - 1], self.values[above]
        nearest: Floats = np.where(outputs - left < right - outputs, left, right)
        return nearest


class Arcs(NamedTuple):
    """Arcs between nodes, and where their entries go in the Newton matrix.

    Attributes
    ----------
    k : int
        Number of labels. Nodes are 0 to k.
    excess : float
        ``1 / (E - 1)``.
    first, end : (n,) arrays
        Nodes of each arc.
    nodes : (2, 2 n) array
        Places of the first and of the end nodes in raveled sums ``b, c`` up to each node: for ``b``, then for ``c``.
    low, high : (n,) arrays
        Bounds of the output of each arc, equal on a grid.
    bounded : bool
        Whether some bound is finite.
    unknowns : array
        Sums that are unknown, as indices of the raveled sums ``b, c`` up to each node: both of each node in the band,
        then those of the hubs, nodes of many arcs and dense rows. The last node is the last hub or fixed.
    total : bool
        Whether the sums of the last node are unknown.
    size, width : int
        Number of unknowns in the band, and of its diagonals.
    entries : (10, n) array, or (10, n + k)
        Places of the entries of each arc, and of each label if biases are charged, in the band (LAPACK's lower band
        form) and the dense rows after it. Entries of fixed sums go to one last place.
    """

    k: int
    excess: float
    first: Indices
    end: Indices
    nodes: Indices
    low: Floats
    high: Floats
    bounded: bool
    unknowns: Indices
    total: bool
    size: int
    width: int
    entries: Indices

    @property
    def n(self) -> int:
        """Number of arcs."""
        return self.first.size

    @property
    def free(self) -> slice:
        """Nodes whose sums are unknown."""
        return slice(1, None if self.total else -1)

    def apply_incidence(self, sums: Numbers) -> Numbers:
        """Return for each arc the amount over its own labels plus `excess` times the total, from sums up to each node.

        Here and in :meth:`apply_transpose` each row is one vector.
        """
        amounts: Numbers = (sums + self.excess * sums[..., -1:]).take(self.end, -1) - sums.take(self.first, -1)
        return amounts

    def apply_transpose(self, amounts: Floats) -> Floats:
        """Apply the transpose of :meth:`apply_incidence` to one row or two, of the last node only if it is unknown."""
        flat, shape = amounts.ravel(), (*amounts.shape[:-1], self.k + 1)
        begun, ended = (np.bincount(nodes[: flat.size], flat, math.prod(shape)) for nodes in self.nodes)
        sums: Floats = (ended - begun).reshape(shape)
        if self.total:
            sums[..., -1] += self.excess * amounts.sum(axis=-1)
        return sums


class Level(NamedTuple):
    """Nodes of a level, and each node of the finer one as a mixture of two of them.

    Attributes
    ----------
    before : array
        Prior before each node.
    gaps : array
        Distance of the labels beside each node, in the unit of the kernel, and of the last node minus the last label.
    left, share : arrays
        For each node of the finer level the node before it, and the share of the next one. Empty on the finest.
    """

    before: Floats
    gaps: Floats
    left: Indices = np.zeros(0, np.int64)
    share: Floats = np.zeros(0)

    def coarsen(self, steep: float = 0.0) -> Level:
        """Keep every second node, the last one, and those beside heavy labels and in wide gaps.

        Wide are also gaps that, times `steep`, exceed the distance to the nearer of the end labels.
        """
        before, gaps = self.before, self.gaps
        size = before.size
        mass, each, inner = np.diff(before), np.arange(size), gaps.copy()
        inner[0] = inner[-1] = 0.0
        # Merged labels get multipliers in proportion to their priors. Where one is heavy, or the gap between them wide,
        # that is a bad guess.
        much = mass > OPTIONS.heavy * mass.mean()
        place = np.cumsum(inner)
        forced = (inner > OPTIONS.heavy * inner.mean()) | (steep * inner > np.minimum(place - inner, place[-1] - place))
        forced[0] = True
        forced[:-1] |= much
        forced[1:] |= much
        # Every second node is kept, counted anew from each node that must be.
        starts = np.maximum.accumulate(np.where(forced, each, 0))
        kept = np.flatnonzero((each - starts) % 2 == 0)
        if kept[-1] != size - 1:
            kept = np.append(kept, size - 1)
        some = before[kept]
        left = np.minimum(np.searchsorted(kept, each, side="right") - 1, kept.size - 2)
        # Sums are interpolated linearly in the prior, or between nodes of no prior by their numbers.
        step = some[left + 1] - some[left]
        even = (each - kept[left]) / (kept[left + 1] - kept[left])
        share = np.where(step > 0, (before - some[left]) / np.where(step > 0, step, 1.0), even)
        coarse: Floats = np.zeros(kept.size)
        coarse += np.bincount(left, gaps * (1 - share), kept.size)
        coarse += np.bincount(left + 1, gaps * share, kept.size)
        return Level(some, coarse, left, share)

    def prolong(self, sums: Floats) -> Floats:
        """Interpolate sums at the nodes of this level to those of the finer one."""
        return sums[self.left] * (1 - self.share) + sums[self.left + 1] * self.share


def coarsen_to(finest: Level, fewest: int, steep: float = 0.0) -> list[Level]:
    """Return all levels, the finest first, down to one of at most `fewest` labels or that can hardly be coarsened."""
    levels = [finest]
    while levels[-1].before.size - 1 > fewest:
        coarser = levels[-1].coarsen(steep)
        # Where nearly all nodes must be kept, as next to spikes, a further level only costs time.
        if coarser.before.size > OPTIONS.shrunk * levels[-1].before.size:
            break
        levels.append(coarser)
    return levels


def fit_increasing(values: Floats, weights: Floats) -> Floats:
    """Return the nearest non-decreasing sequence in weighted squares."""
    from scipy.optimize import isotonic_regression

    fitted: Floats = isotonic_regression(values, weights=weights).x
    return fitted


def support_path(terms: Terms, slopes: Floats, costs: Floats) -> tuple[Indices, Indices]:
    """Return for each first label the first and the last node at which the cheapest intervals from it end.

    The reduced cost of a label is negative between two roots. Both are fitted to increase with the label (isotonic
    regression). Then the labels favoured at an output are an interval, and all these intervals are the path.
    `slopes` and `costs` are the sums of the multipliers up to each node.
    """
    before, farthest = terms.before, OPTIONS.farthest
    # Outputs beyond the ends, or very far out, are not those of any column in use.
    low_end, high_end = max(terms.low, -farthest), min(terms.high, farthest)
    k = before.size - 1
    mass, slope, cost = np.diff(before), np.diff(slopes), np.diff(costs)
    # Roots of mass v^2 / 2 - slope v + cost, the smaller one as a quotient so that no digits cancel.
    square = slope * slope - 2 * mass * cost
    root = np.sqrt(np.maximum(square, 0.0))
    far = slope + np.where(slope >= 0, root, -root)
    one = np.where(mass > 1e-300, far / np.where(mass > 1e-300, mass, 1.0), np.where(far >= 0, farthest, -farthest))
    other = np.where(far != 0, 2 * cost / np.where(far != 0, far, 1.0), 0.0)
    one = np.minimum(np.maximum(one, low_end), high_end)
    other = np.minimum(np.maximum(other, low_end), high_end)
    # A label whose price is nowhere negative has no roots: the fit follows its neighbours there.
    weights = np.where(square > 0, mass + OPTIONS.faint, 1e-30)
    left, right = fit_increasing(np.minimum(one, other), weights), fit_increasing(np.maximum(one, other), weights)
    each = np.arange(k)
    # At an output v the favoured labels run from the first whose right root is above v to the last whose left root is
    # below it. So an interval ends at the latest with the labels whose left root is below its first label's right root.
    beyond = np.searchsorted(left, np.maximum(left, right), side="right").astype(np.float64)
    high = np.maximum(np.maximum.accumulate(beyond).astype(np.int64), each + 1)
    low = np.ones(k, np.int64)
    low[1:] = np.maximum(high[:-1], each[1:] + 1)
    high = np.maximum(high, low)
    high[-1] = k
    return low, high


def widen_path(low: Indices, high: Indices, reach: int) -> tuple[Indices, Indices]:
    """Return the bounds of the arcs within `reach` steps of a path, an end moving by one in each."""
    k = low.size
    wide_low, wide_high = low.copy(), high.copy()
    # An arc within reach has its first node `apart` from one on the path, and spends the other steps on its end.
    for apart in range(-reach, reach + 1):
        left = reach - abs(apart)
        near = np.minimum(np.maximum(np.arange(k) + apart, 0), k - 1)
        wide_low = np.minimum(wide_low, low[near] - left)
        wide_high = np.maximum(wide_high, high[near] + left)
    wide_low = np.maximum(wide_low, np.arange(k) + 1)
    wide_high = np.minimum(wide_high, k)
    wide_high[0] = min(wide_high[0], k - 1)
    # The whole is no arc. Next to both ends of the line the path is steep, and would bring in hundreds of arcs that no
    # optimum uses.
    for a in range(1, min(reach + 1, k)):
        wide_low[a] = max(wide_low[a], min(low[a], high[0] - OPTIONS.margin))
    last = np.searchsorted(high, k) + OPTIONS.margin
    wide_low[last:] = np.maximum(wide_low[last:], low[last:])
    return wide_low, wide_high


def all_arcs(k: int) -> Nodes:
    """Return the nodes of all intervals of `k` labels except the whole.

    Examples
    --------
    >>> [nodes.tolist() for nodes in all_arcs(2)]
    [[0, 1], [1, 2]]
    """
    first, end = np.triu_indices(k + 1, 1)
    order = np.argsort(end - first, kind="stable")[:-1]
    return first[order], end[order]


def order_nodes(first: Indices, end: Indices, k: int, most: int, charged: bool) -> tuple[Indices, int]:
    """Order the inner nodes by reverse Cuthill-McKee (-1 for both ends), and count the hub nodes.

    Hubs, nodes of more than `most` arcs on a side, come last. If biases are charged, labels are arcs as well.
    """
    hubs = (np.bincount(first, minlength=k + 1) > most) | (np.bincount(end, minlength=k + 1) > most)
    hubs[0] = hubs[k] = True
    if charged:
        first, end = np.concatenate((first, np.arange(k))), np.concatenate((end, np.arange(1, k + 1)))
    # The bandwidth is the largest distance of two places that share an arc. Reverse Cuthill-McKee makes it small.
    kept = ~(hubs[first] | hubs[end])
    one, other = np.append(first[kept], end[kept]), np.append(end[kept], first[kept])
    graph = csr_array((np.ones(one.size), (one, other)), shape=(k + 1, k + 1))
    order = reverse_cuthill_mckee(graph, symmetric_mode=True).astype(np.int64)
    order = np.concatenate((order[~hubs[order]], 1 + np.flatnonzero(hubs[1:k])))
    places = np.full(k + 1, -1)
    places[order] = np.arange(k - 1)
    return places, int(hubs[1:k].sum())


def _nodes_between(low: Indices, high: Indices) -> Nodes:
    """Return the arcs from each node to the nodes between two bounds."""
    counts = high - low + 1
    first = np.repeat(np.arange(low.size), counts)
    return first, np.arange(first.size) + np.repeat(low - (np.cumsum(counts) - counts), counts)


def arcs_near_path(terms: Terms, slopes: Floats, costs: Floats, reach: int) -> Nodes:
    """Return the arcs within `reach` steps of the path of cheapest intervals."""
    return _nodes_between(*widen_path(*support_path(terms, slopes, costs), reach))


def build_arcs(nodes: Nodes, bounds: tuple[Floats, Floats], terms: Terms, places: Indices, hubs: int) -> Arcs:
    """Return arcs with the places of their entries.

    `places` has for each node its place among the unknown ones, -1 if its sums are fixed. The last `hubs` are hubs.
    """
    (first, end), k = nodes, places.size - 1
    unknown = int(places.max()) + 1
    # Nodes without a place come first.
    order = np.argsort(places)[k + 1 - unknown :]
    one, other = places[first], places[end]
    if terms.charges.size:
        one, other = np.append(one, places[:-1]), np.append(other, places[1:])
    width, entries = _place_entries(one, other, unknown, unknown - hubs)
    return Arcs(
        k=k,
        excess=terms.excess,
        first=first,
        end=end,
        nodes=np.hstack((nodes, np.add(nodes, k + 1))),
        low=bounds[0],
        high=bounds[1],
        bounded=bool(np.isfinite(bounds).any()),
        unknowns=np.stack((order, order + k + 1), axis=1).ravel(),
        total=bool(places[k] >= 0),
        size=2 * (unknown - hubs),
        width=width,
        entries=entries,
    )


def _place_entries(one: Indices, other: Indices, unknown: int, banded: int) -> tuple[int, Indices]:
    """Return the number of diagonals, and the places of the entries of arcs between some places of nodes.

    An arc adds a block of two by two, for slope and cost, at each of its nodes, and subtracts it between them. Of a
    block on the diagonal only the lower half is stored. The order is that of :func:`newton_matrix`.
    """
    lower, upper = np.minimum(one, other), np.maximum(one, other)
    apart = (upper - lower)[(lower >= 0) & (upper < banded)]
    width, both = 2 * int(apart.max(initial=0)) + 2, 2 * unknown
    rows, columns = np.stack((one, other, upper)), np.stack((one, other, lower))
    # Place of the first entry of each block, and the steps from there to the entries below and beside it.
    inside, border = rows < banded, banded * width + (rows - banded) * both
    corner = 2 * np.where(inside, columns * width + rows - columns, border + columns)
    down, right = np.where(inside, 1, both), np.where(inside, width - 1, 1)
    blocks = np.stack((corner, corner + down, corner + down + right), axis=1)
    entries = np.concatenate((blocks.reshape(9, -1), (corner + right)[2:]))
    fixed = np.append(np.repeat(columns, 3, axis=0), columns[2:], axis=0) < 0
    entries[fixed] = 2 * banded * width + 2 * (unknown - banded) * both
    return width, entries


def violation(terms: Terms, slopes: Floats, total: float, first: slice, end: slice) -> Floats:
    """Return the least growth of the sums ``c`` over intervals that makes their reduced costs nonnegative.

    One of `first` and `end` is a single node. `total` is the sum ``c`` up to the last node.
    """
    # `costs[end] - costs[first] + excess * total` must be at least the largest value of `slope v - weight v^2 / 2`.
    weight = terms.before[end] - terms.before[first] + terms.excess
    slope = slopes[end] - slopes[first] + terms.excess * slopes[-1]
    output = terms.nearest(slope / weight)
    growth: Floats = (slope - weight * output / 2) * output - terms.excess * total
    return growth


def find_violated_arcs(terms: Terms, slopes: Floats, costs: Floats, least: float) -> Nodes:
    """Find from each node, and to each node, the arc of the least reduced cost, if that is below `least`.

    ``O(k**2)``. The interval of all labels is not an arc. `slopes` and `costs` are sums up to each node.
    """
    k = costs.size - 1
    total = costs[k]
    first, end = np.empty(2 * k, np.int64), np.empty(2 * k, np.int64)
    lowest, origin = np.full(k + 1, np.inf), np.zeros(k + 1, np.int64)
    count = 0
    for a in range(k):
        stop = k if a == 0 else k + 1
        slack = costs[a + 1 : stop] - costs[a]
        slack = slack - violation(terms, slopes, total, slice(a, a + 1), slice(a + 1, stop))
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


def end_arcs(k: int) -> Nodes:
    """Return all arcs from the first node and to the last one: if any arcs hold a randomizer, these do.

    They have one inner node each, so they widen no band.
    """
    inner = np.arange(1, k)
    return np.append(np.zeros(k - 1, np.int64), inner), np.append(inner, np.full(k - 1, k))


def unite_arcs(one: Nodes, other: Nodes) -> Nodes:
    """Return the arcs of either, each once and in order.

    Examples
    --------
    >>> first, end = unite_arcs(
    ...     (np.array([0, 1]), np.array([1, 3])), (np.array([1, 0]), np.array([3, 2]))
    ... )
    >>> first.tolist(), end.tolist()
    ([0, 0, 1], [1, 2, 3])
    """
    first, end = (np.concatenate(nodes) for nodes in zip(one, other, strict=True))
    size = int(end.max()) + 1
    arcs = np.unique(first * size + end)
    return arcs // size, arcs % size
