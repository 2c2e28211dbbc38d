"""Sums, orders and bands: the operations of the kernel that numpy, scipy and LAPACK do, and loops where compiled."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from scipy.linalg import lapack
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from optrand.base.validation import Floats
from optrand.model.randomizer import Indices
from optrand.solvers.compiled import compiled

__all__ = [
    "PANEL",
    "ascended",
    "band_factor",
    "cuthill_mckee",
    "descended",
    "forward",
    "highest",
    "isotonic",
    "node_sums",
    "running_maximum",
]

Numbers = TypeVar("Numbers", Floats, Indices)

PANEL = 4
"""Columns that loops take at once: the two of each of two nodes."""


def _node_sums(first: Indices, end: Indices, amounts: Floats, size: int) -> Floats:
    """At each node the amounts of the arcs that end there, less those that begin there."""
    sums = np.bincount(end, amounts, size) - np.bincount(first, amounts, size)
    return sums.astype(np.float64, copy=False)


def _highest(at: Indices, values: Indices, least: Indices) -> Indices:
    """At each place the largest of some values there and a least one."""
    highest = least.copy()
    np.maximum.at(highest, at, values)
    return highest


def _running_maximum(values: Numbers) -> Numbers:
    """Return the largest value so far."""
    running: Numbers = np.maximum.accumulate(values)
    return running


def _isotonic(values: Floats, weights: Floats) -> Floats:
    """Find the nearest non-decreasing sequence in weighted squares."""
    from scipy.optimize import isotonic_regression

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


def _descended(band: Floats, bottoms: Indices, unknowns: Floats) -> None:
    """Solution ``x`` of ``L x = right`` in the place of the right side."""
    unknowns[:] = lapack.dtbtrs(band.T, unknowns, uplo="L")[0]


def _ascended(band: Floats, bottoms: Indices, unknowns: Floats) -> None:
    """Solution ``x`` of ``L' x = right`` in the place of the right side."""
    unknowns[:] = lapack.dtbtrs(band.T, unknowns, uplo="L", trans="T")[0]


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


def _running_maximum_in_loops(values: Numbers) -> Numbers:
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
        a, b, c, d = solved[at], solved[at + 1], solved[at + 2], solved[at + 3]
        for i in range(rows):
            target = under[i * many : (i + 1) * many]
            for j in range(many):
                target[j] -= a[j] * w[i] + b[j] * x[i] + c[j] * y[i] + d[j] * z[i]
    return solved[:size].copy()


def _descended_in_loops(band: Floats, bottoms: Indices, unknowns: Floats) -> None:
    for panel in range(bottoms.size):
        at, rows = 4 * panel, bottoms[panel] - 4 * panel - 3
        one, two, three, four = band[at], band[at + 1], band[at + 2], band[at + 3]
        w, x, y, z, under = one[4:], two[3:], three[2:], four[1:], unknowns[at + 4 :]
        a = unknowns[at] / one[0]
        b = (unknowns[at + 1] - a * one[1]) / two[0]
        c = (unknowns[at + 2] - a * one[2] - b * two[1]) / three[0]
        d = (unknowns[at + 3] - a * one[3] - b * two[2] - c * three[1]) / four[0]
        unknowns[at], unknowns[at + 1], unknowns[at + 2], unknowns[at + 3] = a, b, c, d
        for i in range(rows):
            under[i] -= a * w[i] + b * x[i] + c * y[i] + d * z[i]


def _ascended_in_loops(band: Floats, bottoms: Indices, unknowns: Floats) -> None:
    for panel in range(bottoms.size - 1, -1, -1):
        at, rows = 4 * panel, bottoms[panel] - 4 * panel - 3
        one, two, three, four = band[at], band[at + 1], band[at + 2], band[at + 3]
        w, x, y, z, under = one[4:], two[3:], three[2:], four[1:], unknowns[at + 4 :]
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for i in range(rows):
            below = under[i]
            a += w[i] * below
            b += x[i] * below
            c += y[i] * below
            d += z[i] * below
        d = (unknowns[at + 3] - d) / four[0]
        c = (unknowns[at + 2] - c - three[1] * d) / three[0]
        b = (unknowns[at + 1] - b - two[1] * c - two[2] * d) / two[0]
        unknowns[at] = (unknowns[at] - a - one[1] * b - one[2] * c - one[3] * d) / one[0]
        unknowns[at + 1], unknowns[at + 2], unknowns[at + 3] = b, c, d


node_sums = compiled(_node_sums_in_loops, _node_sums)
highest = compiled(_highest_in_loops, _highest)
running_maximum = compiled(_running_maximum_in_loops, _running_maximum)
isotonic = compiled(_isotonic_in_loops, _isotonic)
cuthill_mckee = compiled(_cuthill_mckee_in_loops, _cuthill_mckee)
band_factor = compiled(_band_factor_in_loops, _band_factor)
forward = compiled(_forward_in_loops, _forward)
descended = compiled(_descended_in_loops, _descended)
ascended = compiled(_ascended_in_loops, _ascended)
