"""Residuals of the interior point, and Newton's steps from them: a banded Cholesky factor with a dense border.

Masses and slacks are eliminated first. The remaining system, for the sums of the multipliers, is symmetric, positive
definite, and banded in a suitable order of the nodes, with a dense border for hub nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from optrand.base._validation import Floats
from optrand.model._randomizer import Indices
from optrand.solvers.reduced_dual._arcs import Arcs, Terms


class Point(NamedTuple):
    """Sums ``b, c`` of the multipliers up to each node, and the masses and slacks of the arcs."""

    slopes: Floats
    costs: Floats
    mass: Floats
    slack: Floats

    def is_finite(self) -> bool:
        """Return whether all sums and masses are finite."""
        return all(bool(np.isfinite(numbers).all()) for numbers in self[:3])

    @property
    def in_use(self) -> NDArray[np.bool_]:
        """Whether each arc seems to have mass at the optimum."""
        # Of mass and slack one tends to zero. In doubt an arc counts as in use, since feasibility needs all that are.
        return self.mass > 1e-3 * self.slack

    def move(self, step: Point, to_slack: float, to_mass: float) -> Point:
        """Return the point after a step of some lengths, masses and slacks kept positive."""
        # Quotients of masses and slacks stay finite.
        tiny = 1e-300
        return Point(
            self.slopes + to_slack * step.slopes,
            self.costs + to_slack * step.costs,
            np.maximum(self.mass + to_mass * step.mass, tiny),
            np.maximum(self.slack + to_slack * step.slack, tiny),
        )


class Residuals(NamedTuple):
    """Outputs of the arcs at a point, and the residuals of its equations.

    Attributes
    ----------
    output, bend : (n,) arrays
        Best output of each arc, and its derivative by the slope of the arc; 0 at a bound of the output.
    slack : (n,) array
        Reduced costs less slacks.
    slope_row, cost_row : (k + 1,) arrays
        Derivatives of the Lagrangian by the sums; those by ``c`` with the other sign.
    """

    output: Floats
    bend: Floats
    slack: Floats
    slope_row: Floats
    cost_row: Floats


class Step(NamedTuple):
    """Newton step: change of a point and of the slope of each arc, and the longest feasible lengths."""

    change: Point
    moved: Floats
    to_slack: float
    to_mass: float


class Target(NamedTuple):
    """Right side of complementarity, and second-order terms of the rows and of the slacks."""

    products: Floats
    curve: Floats
    square: Floats


class Factors(NamedTuple):
    """Cholesky factor of the band, its inverse times the border, and the factor of the Schur complement."""

    band: Floats
    beside: Floats
    corner: Floats


class NewtonSystem(NamedTuple):
    """Factors of the equations for the sums at a point, and its masses over its slacks, their weights."""

    factors: Factors
    ratio: Floats


def apply_incidence(arcs: Arcs, excess: float, sums: Floats) -> Floats:
    """Return for each arc the amount over its own labels plus `excess` times the total, from sums up to each node."""
    n = arcs.n
    amounts: Floats = sums.take(arcs.end[:n]) - sums.take(arcs.first[:n]) + excess * sums[arcs.k]
    return amounts


def apply_transpose(arcs: Arcs, excess: float, amounts: Floats) -> Floats:
    """Apply the transpose of :func:`apply_incidence`."""
    begun, ended = _sum_at_nodes(arcs, amounts)
    sums = ended - begun
    sums[arcs.k] += excess * amounts.sum()
    return sums


def _sum_at_nodes(arcs: Arcs, amounts: Floats) -> tuple[Floats, Floats]:
    """Return for each node the sums over the arcs that begin and over those that end there."""
    begun, ended = np.zeros(arcs.k + 1), np.zeros(arcs.k + 1)
    begun[arcs.begins[0]] = np.add.reduceat(amounts, arcs.begins[1])
    ended[arcs.ends[0]] = np.add.reduceat(amounts.take(arcs.by_end), arcs.ends[1])
    return begun, ended


def slope_residual(arcs: Arcs, terms: Terms, slopes: Floats, moments: Floats) -> Floats:
    """Return the derivative of the Lagrangian by the sums ``b``, for the moment (mass times output) of each arc."""
    row = terms.gaps + apply_transpose(arcs, terms.excess, moments)
    if terms.charges.size:
        tension = terms.charges * np.diff(slopes)
        row[1:] += tension
        row[:-1] -= tension
    return row


def cap_charges(terms: Terms) -> Terms:
    """Return the terms with charges of biases that leave digits to the other terms of the Newton matrix."""
    # The rest of a charge is left to the multipliers of biases (docs/mathematics.md, section 13).
    return terms._replace(charges=np.minimum(terms.charges, 1e10))


def factorize(arcs: Arcs, terms: Terms, slopes: Floats, mixed: Floats, costs: Floats) -> Factors:
    """Factorize the sum over arcs of ``dx' [[slopes, mixed], [mixed, costs]] dx`` plus the charges.

    There ``dx = x[end] - x[first] + excess * x[k]``, the last term zero if the sums of the last node are fixed.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the band is not positive definite in floats.
    """
    amounts = slopes, mixed, costs
    begun, ended = np.empty((2, 3, arcs.k + 1))
    for at, amount in enumerate(amounts):
        begun[at], ended[at] = _sum_at_nodes(arcs, amount)
    # An arc adds its block of two by two at both of its nodes, and subtracts it between them.
    diagonal = begun + ended
    # Charges of biases act on the slopes of single labels, which are the further arcs.
    if terms.charges.size:
        diagonal[0, 1:] += terms.charges
        diagonal[0, :-1] += terms.charges
        none = np.zeros(arcs.k)
        amounts = np.append(slopes, terms.charges), np.append(mixed, none), np.append(costs, none)
    band, border, corner = _assemble(arcs, *amounts, diagonal)
    if arcs.unknown == arcs.k:
        _add_totals(arcs, terms.excess, begun, ended, border, corner)
    # Close to the optimum the matrix may be singular in floats. A ridge bends the step, but not the residuals that the
    # next iteration sees.
    ridge = 1e-14
    band[:, 0] *= 1 + ridge
    if band.size:
        factor, failed = lapack.dpbtrf(band.T, lower=1, overwrite_ab=1)
        if failed:
            raise np.linalg.LinAlgError("the Newton matrix is not positive definite in floats")
        band = factor.T
    beside: Floats = np.ascontiguousarray(border.T)
    if corner.size:
        least = ridge * np.diag(corner)
        if band.size:
            beside = lapack.dtbtrs(band.T, beside, uplo="L")[0]
            # Schur complement of the hubs, by one triangular solve for all of their columns.
            corner = corner - beside.T @ beside
        _factorize_corner(corner, least)
    return Factors(band, beside, corner)


def _assemble(
    arcs: Arcs, slopes: Floats, mixed: Floats, costs: Floats, diagonal: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the band, the border beside it, and the corner of the matrix of :func:`factorize`."""
    banded, width = arcs.banded, arcs.width
    size, hubs = 2 * banded, 2 * (arcs.unknown - banded)
    band = _place(arcs, arcs.spots, arcs.inside, (slopes, mixed, costs), size * width).reshape(size, width)
    band[::2, 0], band[::2, 1], band[1::2, 0] = diagonal[:, arcs.order[:banded]]
    if not hubs:
        return band, np.zeros((0, size)), np.zeros((0, 0))
    border = _place(arcs, arcs.borders, arcs.beside, (slopes, mixed, costs), hubs * (size + hubs))
    border = border.reshape(hubs, size + hubs)
    # Of the corner only the lower half is read.
    at, corner = np.arange(0, hubs, 2), border[:, size:]
    corner[at, at], corner[at + 1, at], corner[at + 1, at + 1] = diagonal[:, arcs.order[banded:]]
    return band, border[:, :size], corner


def _place(arcs: Arcs, places: Indices, some: Indices, amounts: tuple[Floats, Floats, Floats], size: int) -> Floats:
    """Return a matrix of some size from which the blocks of some arcs, of four entries each, are subtracted."""
    slope, across, cost = (each.take(some) for each in amounts)
    entries = np.concatenate((slope, across, across, cost))
    np.negative(entries, out=entries)
    if arcs.parallel:
        # Without entries, the counts would be integers.
        return np.bincount(places, entries, size).astype(np.float64, copy=False)
    matrix = np.zeros(size)
    matrix[places] = entries
    return matrix


def _add_totals(arcs: Arcs, excess: float, begun: Floats, ended: Floats, border: Floats, corner: Floats) -> None:
    """Add the terms of the last node, the last hub, whose sums every arc has: two dense rows and columns.

    `begun` and `ended` are the sums of slopes, mixed and costs over the arcs that begin or end at each node.
    """
    size, last = border.shape[1], corner.shape[0] - 2
    over, rows = excess * (ended - begun)[:, arcs.order], np.empty((2, size + last + 2))
    rows[0, ::2], rows[0, 1::2], rows[1, 1::2] = over
    rows[1, ::2] = over[1]
    border[last:] += rows[:, :size]
    corner[last:] += rows[:, size:]
    corner[last:, last:] += rows[:, size + last :].T
    slope, mixed, cost = excess * excess * begun.sum(axis=1)
    corner[last:, last:] += np.array([[slope, mixed], [mixed, cost]])


def _factorize_corner(corner: Floats, least: Floats) -> None:
    """Replace the lower half of a matrix by its Cholesky factor.

    An unknown whose pivot is at most `least` is fixed at zero.
    """
    for j in range(least.size):
        column = corner[j:, j] - corner[j:, :j] @ corner[j, :j]
        if column[0] > least[j]:
            corner[j:, j] = column / np.sqrt(column[0])
        else:
            corner[j:, j] = 0.0
            corner[j, j] = np.inf


def _solve_corner(factor: Floats, right: Floats) -> Floats:
    """Solve the equations with a factor of :func:`_factorize_corner`."""
    found = right.copy()
    for j in range(found.size):
        found[j] /= factor[j, j]
        found[j + 1 :] -= found[j] * factor[j + 1 :, j]
    for j in range(found.size - 1, -1, -1):
        found[j] = (found[j] - factor[j + 1 :, j] @ found[j + 1 :]) / factor[j, j]
    return found


def solve_system(arcs: Arcs, factors: Factors, slopes: Floats, costs: Floats) -> tuple[Floats, Floats]:
    """Solve for right sides of all nodes. Return the sums of all nodes, zero where they are fixed."""
    size, order = 2 * arcs.banded, arcs.order
    pairs = np.empty((arcs.unknown, 2))
    pairs[:, 0], pairs[:, 1] = slopes.take(order), costs.take(order)
    unknowns = pairs.ravel()
    # Forward through the band, then the hubs, which are few and dense, and back.
    if size:
        unknowns[:size] = lapack.dtbtrs(factors.band.T, unknowns[:size], uplo="L")[0]
    if factors.corner.size:
        inside, beside = unknowns[:size], unknowns[size:]
        beside[:] = _solve_corner(factors.corner, beside - factors.beside.T @ inside)
        inside -= factors.beside @ beside
    if size:
        unknowns[:size] = lapack.dtbtrs(factors.band.T, unknowns[:size], uplo="L", trans="T")[0]
    sums = np.zeros((2, arcs.k + 1))
    sums[:, order] = unknowns.reshape(-1, 2).T
    return sums[0], sums[1]


def evaluate_residuals(arcs: Arcs, terms: Terms, weight: Floats, point: Point) -> Residuals:
    """Return the residuals at a point, for arcs whose prior plus `excess` is `weight`."""
    excess = terms.excess
    slope = apply_incidence(arcs, excess, point.slopes)
    best, bend = slope / weight, 1 / weight
    output: Floats = np.minimum(np.maximum(best, arcs.low), arcs.high) if arcs.bounded else best
    slack = apply_incidence(arcs, excess, point.costs) - slope * best / 2 - point.slack
    # At a bound of the output the reduced cost is linear in the sums.
    if arcs.bounded and (beyond := best != output).any():
        slack[beyond] += (weight * (best - output) ** 2 / 2)[beyond]
        bend[beyond] = 0.0
    slope_row = slope_residual(arcs, terms, point.slopes, point.mass * output)
    return Residuals(output, bend, slack, slope_row, -apply_transpose(arcs, excess, point.mass))


def linearize(arcs: Arcs, terms: Terms, point: Point, residuals: Residuals) -> NewtonSystem:
    """Return Newton's equations for the sums at a point: masses and slacks are eliminated.

    Raises
    ------
    numpy.linalg.LinAlgError
        If they are singular in floats.
    """
    output, ratio = residuals.output, point.mass / point.slack
    pull = ratio * output
    return NewtonSystem(factorize(arcs, terms, pull * output + point.mass * residuals.bend, -pull, ratio), ratio)


def newton_step(
    arcs: Arcs, excess: float, system: NewtonSystem, point: Point, residuals: Residuals, target: Target
) -> Step:
    """Return Newton's step from a point, by its system."""
    output, mass, slack = residuals.output, point.mass, point.slack
    off = residuals.slack - target.square
    # Linearised complementarity gives the changes of masses by those of slacks, the slack residual those of slacks by
    # the sums. This is the change of a mass if the sums stay.
    towards = target.products / slack - system.ratio * off - mass
    slope_right = residuals.slope_row + apply_transpose(arcs, excess, towards * output + target.curve)
    cost_right = residuals.cost_row - apply_transpose(arcs, excess, towards)
    slopes, costs = solve_system(arcs, system.factors, -slope_right, -cost_right)
    moved = apply_incidence(arcs, excess, slopes)
    turned = apply_incidence(arcs, excess, costs) - output * moved
    change = Point(slopes, costs, towards - system.ratio * turned, turned + off)
    return Step(change, moved, _longest(slack, change.slack), _longest(mass, change.mass))


def _longest(amounts: Floats, changes: Floats) -> float:
    """Return the length of the longest step that leaves all amounts nonnegative."""
    steepest = -(changes / amounts).min()
    return float(1 / steepest) if steepest > 0 else np.inf
