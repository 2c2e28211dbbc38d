"""Kernel of the solver: the arcs near the path, Newton's equations as a band, and the interior point on them.

Where numba is installed all of it is compiled; :data:`optrand.base.compiled.COMPILED` then chooses loops for the few
operations that numpy and LAPACK do otherwise. One file, since compiled code is kept as long as its file stays the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.optimize import isotonic_regression
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from optrand.base.compiled import COMPILED, compiled
from optrand.base.validation import Floats
from optrand.model.arcs import Indices

__all__ = ["Arcs", "Terms", "all_arcs", "arcs_of", "interior_point", "mended", "path", "near_order", "strip_around"]

PANEL = 4
"""Columns that loops take at once: the two of each of two nodes."""

RIDGE = 1e-14
"""Relative addition to the diagonal."""


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


class Factors(NamedTuple):
    """Cholesky's factor of the band, its inverse times the border, the inverse of what is left; and success."""

    band: Floats
    beside: Floats
    inverse: Floats
    well: bool


def _node_sums(first: Indices, end: Indices, amounts: Floats, size: int) -> Floats:
    """At each node the amounts of the arcs that end there, less those that begin there."""
    sums = np.bincount(end, amounts, size) - np.bincount(first, amounts, size)
    return sums.astype(np.float64, copy=False)


def _running_maximum(values: Floats) -> Floats:
    """The largest value so far."""
    running: Floats = np.maximum.accumulate(values)
    return running


def _isotonic(values: Floats, weights: Floats) -> Floats:
    """The nearest sequence that does not fall, in weighted squares."""
    fitted: Floats = isotonic_regression(values, weights=weights).x
    return fitted


def _cuthill_mckee(first: Indices, end: Indices, size: int) -> Indices:
    """Nodes in the reverse of an order breadth first, from one of few arcs and by their number (Cuthill and McKee)."""
    graph = csr_array((np.ones(2 * first.size), (np.append(first, end), np.append(end, first))), shape=(size, size))
    return reverse_cuthill_mckee(graph, symmetric_mode=True).astype(np.int64)


def _band_factor(band: Floats, bottoms: Indices) -> bool:
    """Cholesky's factor of a symmetric matrix in place of its lower band ``band[column, row - column]``; success."""
    factor, failed = lapack.dpbtrf(band.T, lower=1, overwrite_ab=1)
    if not np.shares_memory(factor, band):
        band[:] = factor.T
    return not failed


def _forward(band: Floats, bottoms: Indices, right: Floats) -> Floats:
    """Solution ``x`` of ``L x = right``, right sides being columns."""
    solved: Floats = lapack.dtbtrs(band.T, right, uplo="L")[0]
    return solved


def _backward(band: Floats, bottoms: Indices, right: Floats) -> Floats:
    """Solution ``x`` of ``L' x = right``."""
    solved: Floats = lapack.dtbtrs(band.T, right, uplo="L", trans="T")[0]
    return solved


def _assembled(arcs: Arcs, slopes: Floats, mixed: Floats, costs: Floats) -> tuple[Floats, Floats, Floats]:
    """The band, the rows of the stars beside it, and those between stars, of the matrix of :func:`factored`."""
    k, banded, width = arcs.k, arcs.banded, arcs.width
    size, stars = 2 * banded, 2 * (arcs.unknown - banded)
    ends = arcs.first, arcs.end
    sums = [np.bincount(ends[0], x, k + 1) + np.bincount(ends[1], x, k + 1) for x in (slopes, mixed, costs)]
    i = arcs.inside
    entries = np.concatenate((slopes[i], mixed[i], mixed[i], costs[i]))
    band: Floats = -np.bincount(arcs.spots, entries, size * width).astype(np.float64, copy=False)
    at = 2 * width * arcs.places[arcs.nodes]
    band[at], band[at + 1], band[at + width] = (x[arcs.nodes] for x in sums)
    i = arcs.beside
    entries = np.concatenate((slopes[i], mixed[i], mixed[i], costs[i]))
    border: Floats = -np.bincount(arcs.borders, entries, stars * (size + stars)).astype(np.float64, copy=False)
    border = border.reshape(stars, size + stars)
    corner = np.tril(border[:, size:], -1)
    corner += corner.T
    at = 2 * (arcs.places[arcs.stars] - banded)
    corner[at, at], corner[at + 1, at + 1] = sums[0][arcs.stars], sums[2][arcs.stars]
    corner[at, at + 1] = corner[at + 1, at] = sums[1][arcs.stars]
    return band.reshape(size, width), border[:, :size], corner


def _highest(at: Indices, values: Indices, least: Indices) -> Indices:
    """At each place the largest of some values there and a least one."""
    highest = least.copy()
    np.maximum.at(highest, at, values)
    return highest


def _node_sums_in_loops(first: Indices, end: Indices, amounts: Floats, size: int) -> Floats:
    sums = np.zeros(size)
    for i in range(first.size):
        sums[end[i]] += amounts[i]
        sums[first[i]] -= amounts[i]
    return sums


def _highest_in_loops(at: Indices, values: Indices, least: Indices) -> Indices:
    highest = least.copy()
    for i in range(at.size):
        highest[at[i]] = max(highest[at[i]], values[i])
    return highest


def _running_maximum_in_loops(values: Floats) -> Floats:
    running = values.copy()
    for i in range(1, running.size):
        running[i] = max(running[i], running[i - 1])
    return running


def _isotonic_in_loops(values: Floats, weights: Floats) -> Floats:
    """Pools of neighbours that would fall."""
    means, heavy, counts, pools = values.copy(), weights.copy(), np.ones(values.size, np.int64), 0
    for i in range(values.size):
        means[pools], heavy[pools], counts[pools] = values[i], weights[i], 1
        while pools and means[pools - 1] > means[pools]:
            total = heavy[pools - 1] + heavy[pools]
            means[pools - 1] = (means[pools - 1] * heavy[pools - 1] + means[pools] * heavy[pools]) / total
            heavy[pools - 1] = total
            counts[pools - 1] += counts[pools]
            pools -= 1
        pools += 1
    return np.repeat(means[:pools], counts[:pools])


def _cuthill_mckee_in_loops(first: Indices, end: Indices, size: int) -> Indices:
    starts = np.zeros(size + 1, np.int64)
    for i in range(first.size):
        starts[first[i] + 1] += 1
        starts[end[i] + 1] += 1
    counts = starts[1:].copy()
    starts = np.cumsum(starts)
    beside, filled = np.empty(2 * first.size, np.int64), starts[:-1].copy()
    for i in range(first.size):
        for one, other in ((first[i], end[i]), (end[i], first[i])):
            beside[filled[one]] = other
            filled[one] += 1
    order, seen, found, done = np.empty(size, np.int64), np.zeros(size, np.bool_), 0, 0
    for start in np.argsort(counts, kind="mergesort"):
        if seen[start]:
            continue
        order[found], seen[start] = start, True
        found += 1
        while done < found:
            node = order[done]
            done += 1
            new = found
            for other in beside[starts[node] : starts[node + 1]]:
                if not seen[other]:
                    seen[other] = True
                    at = found
                    while at > new and counts[order[at - 1]] > counts[other]:
                        order[at] = order[at - 1]
                        at -= 1
                    order[at] = other
                    found += 1
    return order[::-1].copy()


def _band_factor_in_loops(band: Floats, bottoms: Indices) -> bool:
    """Four columns at a time, each as far down as one of them or one before them reaches."""
    for panel in range(bottoms.size):
        at = 4 * panel
        one, two, three, four = band[at], band[at + 1], band[at + 2], band[at + 3]
        if not one[0] > 0:
            return False
        p = 1 / np.sqrt(one[0])
        a, b, c = one[1] * p, one[2] * p, one[3] * p
        left = two[0] - a * a
        if not left > 0:
            return False
        q = 1 / np.sqrt(left)
        d, e = (two[1] - a * b) * q, (two[2] - a * c) * q
        left = three[0] - b * b - d * d
        if not left > 0:
            return False
        r = 1 / np.sqrt(left)
        f = (three[1] - b * c - d * e) * r
        left = four[0] - c * c - e * e - f * f
        if not left > 0:
            return False
        s = 1 / np.sqrt(left)
        one[0], one[1], one[2], one[3] = 1 / p, a, b, c
        two[0], two[1], two[2] = 1 / q, d, e
        three[0], three[1], four[0] = 1 / r, f, 1 / s
        w, x, y, z = one[4:], two[3:], three[2:], four[1:]
        rows = bottoms[panel] - at - 3
        for i in range(rows):
            w[i] *= p
            x[i] = (x[i] - a * w[i]) * q
            y[i] = (y[i] - b * w[i] - d * x[i]) * r
            z[i] = (z[i] - c * w[i] - e * x[i] - f * y[i]) * s
        for j in range(0, rows, 2):
            corner, other = band[at + 4 + j], band[at + 5 + j]
            w0, x0, y0, z0 = w[j], x[j], y[j], z[j]
            w1, x1, y1, z1 = w[j + 1], x[j + 1], y[j + 1], z[j + 1]
            corner[0] -= w0 * w0 + x0 * x0 + y0 * y0 + z0 * z0
            one, below_w, below_x, below_y, below_z = corner[1:], w[j + 1 :], x[j + 1 :], y[j + 1 :], z[j + 1 :]
            for i in range(rows - 1 - j):
                one[i] -= w0 * below_w[i] + x0 * below_x[i] + y0 * below_y[i] + z0 * below_z[i]
                other[i] -= w1 * below_w[i] + x1 * below_x[i] + y1 * below_y[i] + z1 * below_z[i]
    return True


def _forward_in_loops(band: Floats, bottoms: Indices, right: Floats) -> Floats:
    size, many = right.shape
    solved = np.zeros((band.shape[0], many))
    solved[:size] = right
    flat = solved.reshape(-1)
    for panel in range(bottoms.size):
        at, rows = 4 * panel, bottoms[panel] - 4 * panel - 3
        one, two, three, four = band[at], band[at + 1], band[at + 2], band[at + 3]
        w, x, y, z, under = one[4:], two[3:], three[2:], four[1:], flat[many * (at + 4) :]
        for j in range(many):
            a = solved[at, j] / one[0]
            b = (solved[at + 1, j] - a * one[1]) / two[0]
            c = (solved[at + 2, j] - a * one[2] - b * two[1]) / three[0]
            d = (solved[at + 3, j] - a * one[3] - b * two[2] - c * three[1]) / four[0]
            solved[at, j], solved[at + 1, j], solved[at + 2, j], solved[at + 3, j] = a, b, c, d
            if many == 1:
                for i in range(rows):
                    under[i] -= a * w[i] + b * x[i] + c * y[i] + d * z[i]
        if many > 1:
            a, b, c, d = solved[at], solved[at + 1], solved[at + 2], solved[at + 3]
            for i in range(rows):
                target = under[i * many : (i + 1) * many]
                for j in range(many):
                    target[j] -= a[j] * w[i] + b[j] * x[i] + c[j] * y[i] + d[j] * z[i]
    return solved[:size].copy()


def _backward_in_loops(band: Floats, bottoms: Indices, right: Floats) -> Floats:
    size = right.shape[0]
    solved = np.zeros((band.shape[0], 1))
    solved[:size] = right
    flat = solved.reshape(-1)
    for panel in range(bottoms.size - 1, -1, -1):
        at, rows = 4 * panel, bottoms[panel] - 4 * panel - 3
        one, two, three, four = band[at], band[at + 1], band[at + 2], band[at + 3]
        w, x, y, z, under = one[4:], two[3:], three[2:], four[1:], flat[at + 4 :]
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for i in range(rows):
            a += w[i] * under[i]
            b += x[i] * under[i]
            c += y[i] * under[i]
            d += z[i] * under[i]
        flat[at + 3] = (flat[at + 3] - d) / four[0]
        flat[at + 2] = (flat[at + 2] - c - three[1] * flat[at + 3]) / three[0]
        flat[at + 1] = (flat[at + 1] - b - two[1] * flat[at + 2] - two[2] * flat[at + 3]) / two[0]
        flat[at] = (flat[at] - a - one[1] * flat[at + 1] - one[2] * flat[at + 2] - one[3] * flat[at + 3]) / one[0]
    return solved[:size].copy()


def _assembled_in_loops(arcs: Arcs, slopes: Floats, mixed: Floats, costs: Floats) -> tuple[Floats, Floats, Floats]:
    banded = arcs.banded
    size, stars = 2 * banded, 2 * (arcs.unknown - banded)
    # Whole panels of columns, the last ones those of the unit matrix, and what a panel's first column does not reach.
    band = np.zeros((4 * arcs.bottoms.size, arcs.width + PANEL - 1))
    border, corner = np.zeros((stars, size)), np.zeros((stars, stars))
    band[size:, 0] = 1.0
    for i in range(arcs.first.size):
        one, other = 2 * arcs.places[arcs.first[i]], 2 * arcs.places[arcs.end[i]]
        for at in (one, other):
            if 0 <= at < size:
                band[at, 0] += slopes[i]
                band[at, 1] += mixed[i]
                band[at + 1, 0] += costs[i]
            elif at >= size:
                at -= size
                corner[at, at] += slopes[i]
                corner[at + 1, at] += mixed[i]
                corner[at, at + 1] += mixed[i]
                corner[at + 1, at + 1] += costs[i]
        if one >= 0 and other >= 0:
            low, high = min(one, other), max(one, other)
            if high < size:
                apart = high - low
                band[low, apart] -= slopes[i]
                band[low, apart + 1] -= mixed[i]
                band[low + 1, apart - 1] -= mixed[i]
                band[low + 1, apart] -= costs[i]
            elif low < size:
                high -= size
                border[high, low] -= slopes[i]
                border[high, low + 1] -= mixed[i]
                border[high + 1, low] -= mixed[i]
                border[high + 1, low + 1] -= costs[i]
            else:
                low, high = low - size, high - size
                for x, y in ((low, high), (high, low)):
                    corner[x, y] -= slopes[i]
                    corner[x, y + 1] -= mixed[i]
                    corner[x + 1, y] -= mixed[i]
                    corner[x + 1, y + 1] -= costs[i]
    return band, border, corner


node_sums = compiled(_node_sums_in_loops) if COMPILED else _node_sums
running_maximum = compiled(_running_maximum_in_loops) if COMPILED else _running_maximum
highest = compiled(_highest_in_loops) if COMPILED else _highest
isotonic = compiled(_isotonic_in_loops) if COMPILED else _isotonic
cuthill_mckee = compiled(_cuthill_mckee_in_loops) if COMPILED else _cuthill_mckee
band_factor = compiled(_band_factor_in_loops) if COMPILED else _band_factor
forward = compiled(_forward_in_loops) if COMPILED else _forward
backward = compiled(_backward_in_loops) if COMPILED else _backward
assembled = compiled(_assembled_in_loops) if COMPILED else _assembled


FARTHEST = 1e6
"""Roots, in the unit of outputs, are clipped here."""

MARGIN = 12
"""Next to the two ends, arcs farther than this from the corners of the path are left out."""

FAINT = 1e-12
"""Prior that counts in the fit of roots, at least."""


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
def near_order(low: Indices, high: Indices, most: int, charged: bool) -> tuple[Indices, int]:
    """The place of each inner node in an order that keeps neighbours near, -1 for both ends, and the number of stars.

    Stars, nodes of more than `most` arcs on a side, come last. Labels are arcs too where biases are charged.
    """
    k = low.size
    counts = np.zeros(k + 2, np.int64)
    for a in range(k):
        counts[low[a]] += 1
        counts[high[a] + 1] -= 1
    ends = np.cumsum(counts)
    stars = np.ones(k + 1, np.bool_)
    stars[1:k] = (ends[1:k] > most) | (high[1:] - low[1:] + 1 > most)
    first, end = nodes_of(low, high)
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
def arcs_of(low: Indices, high: Indices, places: Indices, stars: int, charged: bool) -> Arcs:
    """The arcs of a strip, with their entries in an order of nodes; then the labels, where biases are charged."""
    k = low.size
    first, end = nodes_of(low, high)
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
    return Arcs(k, count, first, end, unknown, places, banded, width, bottoms, inside, spots, beside, borders, nodes, starred)


@compiled
def total_seen(
    arcs: Arcs, excess: float, row: int, column: int, amounts: Floats, border: Floats, corner: Floats
) -> None:
    """Add what every arc has by the sums of the last node, the last star, to its rows and columns."""
    k, n = arcs.k, arcs.n
    size, last = border.shape[1], corner.shape[0] - 2
    sums = excess * node_sums(arcs.first[:n], arcs.end[:n], amounts, k + 1)[1:]
    at = 2 * arcs.places[1:]
    near = at < size
    beside = border[last + row]
    beside[at[near] + column] += sums[near]
    below, above = corner[last + row], corner[:, last + row]
    below[at[~near] - size + column] += sums[~near]
    above[at[~near] - size + column] += sums[~near]
    below[last + column] += excess * excess * np.sum(amounts)


@compiled
def factored(arcs: Arcs, terms: Terms, slopes: Floats, mixed: Floats, costs: Floats) -> Factors:
    """Factors of the sum over arcs of ``dx' [[slopes, mixed], [mixed, costs]] dx``, and of the charges.

    There ``dx = x[end] - x[first] + excess * x[k]``, the last one zero where the sums of the last node are fixed.
    """
    if arcs.first.size == arcs.n:
        band, border, corner = assembled(arcs, slopes, mixed, costs)
    else:
        none = np.zeros(arcs.k)
        band, border, corner = assembled(
            arcs,
            np.concatenate((slopes, terms.charges)),
            np.concatenate((mixed, none)),
            np.concatenate((costs, none)),
        )
    if arcs.unknown == arcs.k:
        total_seen(arcs, terms.excess, 0, 0, slopes, border, corner)
        total_seen(arcs, terms.excess, 0, 1, mixed, border, corner)
        total_seen(arcs, terms.excess, 1, 0, mixed, border, corner)
        total_seen(arcs, terms.excess, 1, 1, costs, border, corner)
        for i in range(corner.shape[0]):
            corner[i, i] *= 1 + RIDGE
    band[:, 0] *= 1 + RIDGE
    well = True
    if band.shape[0]:
        well = band_factor(band, arcs.bottoms)
    beside = np.ascontiguousarray(border.T)
    if well and corner.size:
        if band.shape[0]:
            beside = np.ascontiguousarray(forward(band, arcs.bottoms, beside))
            corner = corner - np.ascontiguousarray(beside.T) @ beside
        corner = np.linalg.inv(corner).astype(np.float64)
    return Factors(band, beside, corner, well)


@compiled
def solved(arcs: Arcs, factors: Factors, slopes: Floats, costs: Floats) -> tuple[Floats, Floats]:
    """Unknowns of all nodes, zero where they are fixed, for right sides of all nodes."""
    k, size, last = arcs.k, 2 * arcs.banded, arcs.unknown + 1
    at = 2 * arcs.places[1:last]
    right = np.empty((2 * arcs.unknown, 1))
    right[at, 0], right[at + 1, 0] = slopes[1:last], costs[1:last]
    inverse, beside = np.ascontiguousarray(factors.inverse), np.ascontiguousarray(factors.beside)
    if size:
        near = np.ascontiguousarray(forward(factors.band, arcs.bottoms, right[:size]))
        if size < right.size:
            left = right[size:] - np.ascontiguousarray(beside.T) @ near
            right[size:] = inverse @ np.ascontiguousarray(left)
            near = near - beside @ np.ascontiguousarray(right[size:])
        right[:size] = backward(factors.band, arcs.bottoms, near)
    else:
        right = inverse @ right
    slope, cost = np.zeros(k + 1), np.zeros(k + 1)
    slope[1:last], cost[1:last] = right[at, 0], right[at + 1, 0]
    return slope, cost


STEPS = 60
"""At most so many."""

ROWS, SLACKS = 1e-8, 1e-3
"""Weights of the errors of rows, which masses are mended of, and of slacks, where the best step is looked for."""

NEAR = 1e-3
"""Error of rows below which a step may be the best one."""

DAMPING = 0.995
"""Share of the way to the boundary that a step may go."""

TINY = 1e-300
"""Least multiplier and slack."""

MENDED, JOINTLY = 2, 4
"""Rounds of each restoration, and of both at once."""

FAINTEST = 1e-40
"""Mass that counts in a restoration, at least."""

CORRECTIONS = 2
"""Of the products of multipliers and slacks that stray, where steps are short."""


@compiled
def longest(amounts: Floats, changes: Floats) -> float:
    """Length of the longest step that leaves all amounts nonnegative."""
    steepest = np.max(-changes / amounts)
    return 1 / steepest if steepest > 0 else np.inf


@compiled
def seen(arcs: Arcs, excess: float, sums: Floats) -> Floats:
    """What each arc sees of sums over labels up to each node: over its own, and of the total."""
    n = arcs.n
    amounts: Floats = sums[arcs.end[:n]] - sums[arcs.first[:n]] + excess * sums[arcs.k]
    return amounts


@compiled
def gathered(arcs: Arcs, excess: float, amounts: Floats) -> Floats:
    """Transpose of :func:`seen`."""
    n = arcs.n
    sums = node_sums(arcs.first[:n], arcs.end[:n], amounts, arcs.k + 1)
    sums[arcs.k] += excess * np.sum(amounts)
    return sums


@compiled
def slope_rows(arcs: Arcs, terms: Terms, slopes: Floats, amounts: Floats) -> Floats:
    """Derivatives by the sums ``b``, where each arc has some amount of its own."""
    row = terms.gaps + gathered(arcs, terms.excess, amounts)
    if terms.charges.size:
        tension = terms.charges * np.diff(slopes)
        row[1:] += tension
        row[:-1] -= tension
    return row


class Point(NamedTuple):
    """Sums ``b, c`` of the multipliers up to each node, and the masses and slacks of the arcs."""

    slopes: Floats
    costs: Floats
    mass: Floats
    slack: Floats


class Residuals(NamedTuple):
    """The outputs of the arcs at a point, and by how much its equations are off.

    Attributes
    ----------
    output, bend : (n,) arrays
        Best output of each arc, and the derivative of that by what the arc sees of the sums ``b``; 0 at an end.
    off : (n,) array
        Prices less slacks.
    slope_row, cost_row : (k + 1,) arrays
        Derivatives by the sums; those of ``c`` with the other sign.
    """

    output: Floats
    bend: Floats
    off: Floats
    slope_row: Floats
    cost_row: Floats


class Step(NamedTuple):
    """Changes of a point, what each arc sees of those of the sums ``b``, and how long the two kinds may be."""

    point: Point
    moved: Floats
    to_slack: float
    to_mass: float


class Target(NamedTuple):
    """Products of masses and slacks that a step aims at, and terms of second order of the rows and of the slacks."""

    products: Floats
    curve: Floats
    square: Floats


def _residuals(arcs: Arcs, terms: Terms, weight: Floats, point: Point) -> Residuals:
    """Residuals at a point, of arcs that see some weight."""
    excess = terms.excess
    slope = seen(arcs, excess, point.slopes)
    best, bend = slope / weight, 1 / weight
    output: Floats = np.minimum(np.maximum(best, terms.low), terms.high)
    off = seen(arcs, excess, point.costs) - slope * best / 2 - point.slack
    # Beyond an end a price is linear in the sums.
    if (beyond := best != output).any():
        off[beyond] += (weight * (best - output) ** 2 / 2)[beyond]
        bend[beyond] = 0.0
    slope_row = slope_rows(arcs, terms, point.slopes, point.mass * output)
    return Residuals(output, bend, off, slope_row, -gathered(arcs, excess, point.mass))


def _newton_step(
    arcs: Arcs, excess: float, factors: Factors, point: Point, residuals: Residuals, target: Target
) -> Step:
    """Newton's step from a point, by the factors of its equations."""
    output, mass, slack = residuals.output, point.mass, point.slack
    off = residuals.off - target.square
    towards = (target.products - mass * off) / slack - mass
    slope_right = residuals.slope_row + gathered(arcs, excess, towards * output + target.curve)
    cost_right = residuals.cost_row - gathered(arcs, excess, towards)
    slopes, costs = solved(arcs, factors, -slope_right, -cost_right)
    moved = seen(arcs, excess, slopes)
    turned = seen(arcs, excess, costs) - output * moved
    changes = Point(slopes, costs, towards - mass / slack * turned, turned + off)
    return Step(changes, moved, longest(slack, changes.slack), longest(mass, changes.mass))


def _residuals_in_loops(arcs: Arcs, terms: Terms, weight: Floats, point: Point) -> Residuals:
    k, n, excess, first, end = arcs.k, arcs.n, terms.excess, arcs.first, arcs.end
    slopes, costs, mass, slack = point
    output, bend, off = np.empty(n), np.empty(n), np.empty(n)
    slope_row, cost_row = terms.gaps.copy(), np.zeros(k + 1)
    total, pull = 0.0, 0.0
    last_slope, last_cost = excess * slopes[k], excess * costs[k]
    for i in range(n):
        a, b = first[i], end[i]
        slope = slopes[b] - slopes[a] + last_slope
        bend[i] = 1 / weight[i]
        best = slope * bend[i]
        output[i] = min(max(best, terms.low), terms.high)
        off[i] = costs[b] - costs[a] + last_cost - slope * best / 2 - slack[i]
        if output[i] != best:
            bend[i] = 0.0
            off[i] += weight[i] * (best - output[i]) ** 2 / 2
        moment = mass[i] * output[i]
        slope_row[b] += moment
        slope_row[a] -= moment
        cost_row[b] -= mass[i]
        cost_row[a] += mass[i]
        total += mass[i]
        pull += moment
    slope_row[k] += excess * pull
    cost_row[k] -= excess * total
    for j in range(terms.charges.size):
        tension = terms.charges[j] * (slopes[j + 1] - slopes[j])
        slope_row[j + 1] += tension
        slope_row[j] -= tension
    return Residuals(output, bend, off, slope_row, cost_row)


def _newton_step_in_loops(
    arcs: Arcs, excess: float, factors: Factors, point: Point, residuals: Residuals, target: Target
) -> Step:
    k, n, first, end = arcs.k, arcs.n, arcs.first, arcs.end
    output, mass, slack = residuals.output, point.mass, point.slack
    slope_right, cost_right = -residuals.slope_row, -residuals.cost_row
    mass_step, slack_step, moved = np.empty(n), np.empty(n), np.empty(n)
    pulls, total = 0.0, 0.0
    for i in range(n):
        slack_step[i] = residuals.off[i] - target.square[i]
        towards = (target.products[i] - mass[i] * slack_step[i]) / slack[i] - mass[i]
        mass_step[i] = towards
        pull = towards * output[i] + target.curve[i]
        slope_right[end[i]] -= pull
        slope_right[first[i]] += pull
        cost_right[end[i]] += towards
        cost_right[first[i]] -= towards
        pulls += pull
        total += towards
    slope_right[k] -= excess * pulls
    cost_right[k] += excess * total
    slopes, costs = solved(arcs, factors, slope_right, cost_right)
    last_slope, last_cost = excess * slopes[k], excess * costs[k]
    steepest_slack, steepest_mass = 0.0, 0.0
    for i in range(n):
        moved[i] = slopes[end[i]] - slopes[first[i]] + last_slope
        turned = costs[end[i]] - costs[first[i]] + last_cost - output[i] * moved[i]
        mass_step[i] -= mass[i] / slack[i] * turned
        slack_step[i] += turned
        steepest_slack = max(steepest_slack, -slack_step[i] / slack[i])
        steepest_mass = max(steepest_mass, -mass_step[i] / mass[i])
    return Step(Point(slopes, costs, mass_step, slack_step), moved, 1 / steepest_slack, 1 / steepest_mass)


residuals_of = compiled(_residuals_in_loops) if COMPILED else _residuals
newton_step = compiled(_newton_step_in_loops) if COMPILED else _newton_step


@compiled
def interior_point(
    arcs: Arcs, terms: Terms, gap: float, tolerance: float
) -> tuple[Floats, Floats, Floats, Floats, int]:
    """Sums ``b, c`` of the multipliers, masses, slacks, and the number of steps, negative where floats gave out.

    Products sum to `gap` at the end, and equations hold to `tolerance`.
    """
    k, n, excess, unknown = arcs.k, arcs.n, terms.excess, slice(1, arcs.unknown + 1)
    weight = seen(arcs, excess, terms.before)
    slack = weight / 2
    point = Point(np.zeros(k + 1), terms.before / 2, 1 / (n * slack), slack)
    # Rows sum to one; where the total is fixed their scale is free.
    total_row = np.zeros(k + 1)
    if arcs.unknown == k:
        total_row[k] = 1.0
        point = Point(point.slopes, point.costs, point.mass / gathered(arcs, excess, point.mass)[k], slack)
    limit = max(0.02 * gap, tolerance)
    last_row, last_slack, least = np.inf, np.inf, np.inf
    best = point
    step = 0
    none = Target(np.zeros(n), np.zeros(n), np.zeros(n))
    for step in range(STEPS + 1):
        residuals = residuals_of(arcs, terms, weight, point)
        output, mass, slack = residuals.output, point.mass, point.slack
        residuals.cost_row[:] += total_row
        total = np.sum(mass * slack)
        slack_error = np.max(np.abs(residuals.off))
        row_error = max(np.max(np.abs(residuals.slope_row[unknown])), np.max(np.abs(residuals.cost_row[unknown])))
        if not np.isfinite(total):
            step = -step - 1
            break
        error = total + ROWS * row_error + SLACKS * slack_error
        near = row_error < NEAR
        if error < least and (near or least == np.inf):
            best = point
            if near:
                least = error
        exact = slack_error < limit and row_error < limit
        stuck = total < 0.01 * gap and row_error > 0.5 * last_row and slack_error > 0.5 * last_slack
        if step == STEPS or (total < gap and (exact or stuck or total < 1e-6 * gap)):
            break
        last_row, last_slack = row_error, slack_error
        ratio = mass / slack
        pull = ratio * output
        factors = factored(arcs, terms, pull * output + mass * residuals.bend, -pull, ratio)
        if not factors.well:
            step = -step - 1
            break
        mean = total / n

        # The predictor, the corrector, and what strays from it.
        target = none
        trial = newton_step(arcs, excess, factors, point, residuals, target)
        near_slack, near_mass = min(1.0, trial.to_slack), min(1.0, trial.to_mass)
        reached = np.sum((mass + near_mass * trial.point.mass) * (slack + near_slack * trial.point.slack))
        centring = max(min(max(reached / total, 0.0) ** 3, 1.0), 1e-8)
        both = near_slack * near_mass
        target = Target(
            centring * mean - both * trial.point.mass * trial.point.slack,
            both * trial.point.mass * trial.moved * residuals.bend,
            near_slack * near_slack * trial.moved * trial.moved * residuals.bend / 2,
        )
        taken = newton_step(arcs, excess, factors, point, residuals, target)
        for _ in range(CORRECTIONS):
            near_slack, near_mass = min(1.0, taken.to_slack), min(1.0, taken.to_mass)
            length = min(near_slack, near_mass)
            if length > 0.9:
                break
            near_slack, near_mass = min(1.0, 1.08 * near_slack + 0.08), min(1.0, 1.08 * near_mass + 0.08)
            product = (mass + near_mass * taken.point.mass) * (slack + near_slack * taken.point.slack)
            lowest, highest_product = 0.1 * centring * mean, 10 * centring * mean
            strays = np.where(
                product < lowest,
                lowest - product,
                np.where(product > highest_product, np.maximum(highest_product - product, -highest_product), 0.0),
            )
            target = Target(target.products + strays, target.curve, target.square)
            trial = newton_step(arcs, excess, factors, point, residuals, target)
            if min(1.0, trial.to_slack, trial.to_mass) < length + 0.01:
                break
            taken = trial
        to_slack, to_mass = min(1.0, DAMPING * taken.to_slack), min(1.0, DAMPING * taken.to_mass)
        point = Point(
            point.slopes + to_slack * taken.point.slopes,
            point.costs + to_slack * taken.point.costs,
            np.maximum(mass + to_mass * taken.point.mass, TINY),
            np.maximum(slack + to_slack * taken.point.slack, TINY),
        )
    return best.slopes, best.costs, best.mass, best.slack, step


@compiled
def outputs_of(arcs: Arcs, terms: Terms, slopes: Floats) -> Floats:
    """The best allowed output of each arc."""
    output = seen(arcs, terms.excess, slopes) / seen(arcs, terms.excess, terms.before)
    best: Floats = np.minimum(np.maximum(output, terms.low), terms.high)
    return best


@compiled
def mended(arcs: Arcs, terms: Terms, slopes: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Masses whose flow is right to rounding, and outputs whose means are, or the best ones: the least changes.

    In squares weighted by masses; on an interval, where outputs on an end stay, both at once if there is no bias.
    """
    k, excess = arcs.k, terms.excess
    boxed, charged = terms.low > -np.inf or terms.high < np.inf, terms.charges.size > 0
    weight = seen(arcs, excess, terms.before)
    output, bend = outputs_of(arcs, terms, slopes), 1 / weight
    nothing, none, target = np.zeros(k + 1), np.zeros(mass.size), np.zeros(k + 1)
    if arcs.unknown == k:
        target[k] = 1.0
    faint = np.maximum(mass, FAINTEST)
    if boxed and not charged:
        for _ in range(JOINTLY):
            bend = np.where((output > terms.low) & (output < terms.high), 1 / weight, 0.0)
            factors = factored(arcs, terms, faint * (output * output + bend), faint * output, faint)
            if not factors.well:
                break
            means = -terms.gaps - gathered(arcs, excess, mass * output)
            tilt, potential = solved(arcs, factors, means, target - gathered(arcs, excess, mass))
            turn = seen(arcs, excess, tilt)
            mass = mass * (1 + np.minimum(np.maximum(seen(arcs, excess, potential) + turn * output, -0.5), 0.5))
            output = np.minimum(np.maximum(output + turn * bend, terms.low), terms.high)
            faint = np.maximum(mass, FAINTEST)
        return mass, output
    if boxed:
        bend = np.where((output > terms.low) & (output < terms.high), bend, 0.0)
    factors = factored(arcs, terms, faint * bend, none, faint)
    if not factors.well:
        return mass, output
    for _ in range(MENDED):
        _, potential = solved(arcs, factors, nothing, target - gathered(arcs, excess, mass))
        mass = mass * (1 + np.minimum(np.maximum(seen(arcs, excess, potential), -0.5), 0.5))
    for _ in range(MENDED):
        potential, _ = solved(arcs, factors, -slope_rows(arcs, terms, slopes, mass * output), nothing)
        slopes = slopes + potential
        output = np.minimum(np.maximum(output + seen(arcs, excess, potential) * bend, terms.low), terms.high)
    return mass, output


@compiled
def required(terms: Terms, slopes: Floats, total: float, first: slice, end: slice) -> Floats:
    """By how much sums ``c`` must grow over intervals, of which one end is a single node, for them not to be cheap."""
    weight = terms.before[end] - terms.before[first] + terms.excess
    slope = slopes[end] - slopes[first] + terms.excess * slopes[-1]
    output = np.minimum(np.maximum(slope / weight, terms.low), terms.high)
    growth: Floats = (slope - weight * output / 2) * output - terms.excess * total
    return growth


@compiled
def raised(terms: Terms, slopes: Floats, costs: Floats, total: float) -> Floats:
    """The least sums ``c``, none below the given ones, at which no interval is too cheap."""
    costs = costs.copy()
    for j in range(1, costs.size):
        costs[j] = max(costs[j], np.max(costs[:j] + required(terms, slopes, total, slice(0, j), slice(j, j + 1))))
    return costs


@compiled
def lowered(terms: Terms, slopes: Floats, costs: Floats, total: float) -> Floats:
    """The largest sums ``c``, none above the given ones, at which no interval is too cheap."""
    costs = costs.copy()
    k = costs.size - 1
    for j in range(k - 1, -1, -1):
        costs[j] = min(
            costs[j], np.min(costs[j + 1 :] - required(terms, slopes, total, slice(j, j + 1), slice(j + 1, k + 1)))
        )
    return costs


@compiled
def potentials(terms: Terms, slopes: Floats, costs: Floats, fixed: NDArray[np.bool_]) -> Floats:
    """Sums ``c`` near some others, and equal to them at fixed nodes, at which no interval is too cheap; ``O(k**2)``.

    Intervals ask that the sum at a node exceed that at another by some number: lower bounds go up the line, upper
    bounds come down, and the mean of what is raised and what is lowered keeps both.
    """
    total = costs[-1]
    least = raised(terms, slopes, np.where(fixed, costs, -np.inf), total)
    most = lowered(terms, slopes, np.where(fixed, costs, np.inf), total)
    near = np.where(fixed, costs, np.minimum(np.maximum(costs, least), most))
    mean: Floats = (raised(terms, slopes, near, total) + lowered(terms, slopes, near, total)) / 2
    return mean
