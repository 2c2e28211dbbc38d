"""Newton's equations of the multipliers: assembled from the arcs, factored and solved as a band with a border."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optrand.base.validation import Floats
from optrand.solvers.compiled import compiled
from optrand.solvers.reduced_dual.operations import PANEL, ascended, band_factor, descended, forward, node_sums
from optrand.solvers.reduced_dual.strip import Arcs, Terms

__all__ = ["Factors", "assembled", "factored", "gathered", "limited", "seen", "slope_rows", "solved", "total_seen"]

RIDGE = 1e-14
"""Relative addition to the diagonal."""


STIFF = 1e10
"""Charge of a bias, at most, in the equations: larger ones leave nothing of the other terms in floats."""


class Factors(NamedTuple):
    """Cholesky's factor of the band, its inverse times the border, the factor of what is left; and success."""

    band: Floats
    beside: Floats
    corner: Floats
    well: bool


def _assembled(arcs: Arcs, slopes: Floats, mixed: Floats, costs: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the band, the dense rows beside it, and their corner, of the matrix of :func:`factored`."""
    k, banded, width = arcs.k, arcs.banded, arcs.width
    size, stars = 2 * banded, 2 * (arcs.unknown - banded)
    ends = arcs.first, arcs.end
    sums = [np.bincount(ends[0], x, k + 1) + np.bincount(ends[1], x, k + 1) for x in (slopes, mixed, costs)]
    i = arcs.inside
    entries = np.concatenate((slopes[i], mixed[i], mixed[i], costs[i]))
    band: Floats = -np.bincount(arcs.spots, entries, size * width).astype(np.float64, copy=False)
    at = 2 * width * arcs.places[arcs.nodes]
    band[at], band[at + 1], band[at + width] = (x[arcs.nodes] for x in sums)
    band = band.reshape(size, width)
    if not stars:
        return band, np.zeros((0, size)), np.zeros((0, 0))
    i = arcs.beside
    entries = np.concatenate((slopes[i], mixed[i], mixed[i], costs[i]))
    border: Floats = -np.bincount(arcs.borders, entries, stars * (size + stars)).astype(np.float64, copy=False)
    border = border.reshape(stars, size + stars)
    corner = np.tril(border[:, size:], -1)
    corner += corner.T
    at = 2 * (arcs.places[arcs.stars] - banded)
    corner[at, at], corner[at + 1, at + 1] = sums[0][arcs.stars], sums[2][arcs.stars]
    corner[at, at + 1] = corner[at + 1, at] = sums[1][arcs.stars]
    return band, border[:, :size], corner


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


assembled = compiled(_assembled_in_loops, _assembled)


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
    below[last + column] += excess * excess * amounts.sum()


@compiled
def limited(terms: Terms) -> Terms:
    """Return the terms, with charges of at most :data:`STIFF`."""
    charges = np.minimum(terms.charges, STIFF)
    return Terms(terms.before, terms.gaps, terms.excess, charges, terms.low, terms.high)


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
    band[:, 0] *= 1 + RIDGE
    well = True
    if band.shape[0]:
        well = band_factor(band, arcs.bottoms)
    beside = np.ascontiguousarray(border.T)
    if well and corner.size:
        least = RIDGE * np.diag(corner)
        if band.shape[0]:
            beside = np.ascontiguousarray(forward(band, arcs.bottoms, beside))
            corner = corner - np.ascontiguousarray(beside.T) @ beside
        corner_factor(corner, least)
    return Factors(band, beside, corner, well)


@compiled
def corner_factor(corner: Floats, least: Floats) -> None:
    """Cholesky's factor in place of a matrix; an unknown of which no more than some least pivot is left stays zero."""
    for j in range(least.size):
        column = corner[j:, j] - np.ascontiguousarray(corner[j:, :j]) @ np.ascontiguousarray(corner[j, :j])
        pivot = column[0]
        if pivot > least[j]:
            corner[j:, j] = column / np.sqrt(pivot)
        else:
            corner[j:, j] = 0.0
            corner[j, j] = np.inf


@compiled
def corner_solved(factor: Floats, right: Floats) -> Floats:
    """Solution of the equations with a factor by :func:`corner_factor`."""
    found = right.copy()
    for j in range(found.size):
        found[j] /= factor[j, j]
        found[j + 1 :] -= found[j] * factor[j + 1 :, j]
    for j in range(found.size - 1, -1, -1):
        found[j] = (found[j] - (factor[j + 1 :, j] * found[j + 1 :]).sum()) / factor[j, j]
    return found


@compiled
def solved(arcs: Arcs, factors: Factors, slopes: Floats, costs: Floats) -> tuple[Floats, Floats]:
    """Unknowns of all nodes, zero where they are fixed, for right sides of all nodes."""
    k, size, last, rows = arcs.k, 2 * arcs.banded, arcs.unknown + 1, factors.band.shape[0]
    # The band may be filled up to whole panels.
    at = 2 * arcs.places[1:last]
    at += np.where(at < size, 0, rows - size)
    unknowns = np.zeros(rows + factors.corner.shape[0])
    unknowns[at], unknowns[at + 1] = slopes[1:last], costs[1:last]
    inside, beside = unknowns[:rows], unknowns[rows:]
    if rows:
        descended(factors.band, arcs.bottoms, inside)
    if beside.size:
        beside[:] = corner_solved(factors.corner, beside - factors.beside.T @ inside[:size])
        inside[:size] -= factors.beside @ beside
    if rows:
        ascended(factors.band, arcs.bottoms, inside)
    slope, cost = np.zeros(k + 1), np.zeros(k + 1)
    slope[1:last], cost[1:last] = unknowns[at], unknowns[at + 1]
    return slope, cost


@compiled
def seen(arcs: Arcs, excess: float, sums: Floats) -> Floats:
    """Apply the incidence operator of the arcs to sums up to each node: over their own labels, and in total."""
    n = arcs.n
    amounts: Floats = sums[arcs.end[:n]] - sums[arcs.first[:n]] + excess * sums[arcs.k]
    return amounts


@compiled
def gathered(arcs: Arcs, excess: float, amounts: Floats) -> Floats:
    """Transpose of :func:`seen`."""
    n = arcs.n
    sums = node_sums(arcs.first[:n], arcs.end[:n], amounts, arcs.k + 1)
    sums[arcs.k] += excess * amounts.sum()
    return sums


@compiled
def slope_rows(arcs: Arcs, terms: Terms, slopes: Floats, amounts: Floats) -> Floats:
    """Apply the transpose: derivatives by the sums ``b``, if each arc has an amount of its own."""
    row = terms.gaps + gathered(arcs, terms.excess, amounts)
    if terms.charges.size:
        tension = terms.charges * np.diff(slopes)
        row[1:] += tension
        row[:-1] -= tension
    return row
