r"""Primal-dual interior point on the arcs of one level: Mehrotra's predictor-corrector on a banded Newton system.

Unknowns are the sums of the multipliers up to each node, ``b`` (slopes) and ``c`` (costs), and the mass and the slack
of each arc. The slack, the reduced cost of the arc at its best output, is concave in the sums, so the problem is a
convex program whose masses are the Lagrange multipliers of ``slack >= 0``. Each iteration solves the Newton system of

* the slack residual, ``reduced cost - slack = 0`` for each arc,
* the row residuals, the derivatives of the Lagrangian by ``b`` and ``c``, which are the equations of the randomizer,
* complementarity, ``mass * slack = barrier parameter``.

Masses and slacks are eliminated first. The remaining system, for the sums, is symmetric, positive definite, and banded
in a suitable order of the nodes, with a dense border for hub nodes. Source: Mehrotra (1992).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
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
    """Best output of each arc at a point, its derivative by the slope of the arc, and the residuals of the equations.

    The derivative is 0 at a bound of the output. `slack` is reduced costs less slacks. The rows are derivatives of the
    Lagrangian by the sums, those by ``c`` with the other sign.
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


def factorize(arcs: Arcs, terms: Terms, slopes: Floats, mixed: Floats, costs: Floats) -> Factors:
    """Factorize the sum over arcs of ``dx' [[slopes, mixed], [mixed, costs]] dx`` plus the charges.

    There ``dx = x[end] - x[first] + excess * x[k]``, the last term zero if the sums of the last node are fixed. Raise
    `LinAlgError` if the band is not positive definite in floats.
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
    """Add the terms of the last node, the last hub, whose sums every arc has: two dense rows and columns."""
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
    """Replace the lower half by its Cholesky factor. Unknowns with a pivot of at most `least` are fixed at zero."""
    for j in range(least.size):
        column = corner[j:, j] - corner[j:, :j] @ corner[j, :j]
        if column[0] > least[j]:
            corner[j:, j] = column / np.sqrt(column[0])
        else:
            corner[j:, j] = 0.0
            corner[j, j] = np.inf


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
        inside, beside, corner = unknowns[:size], unknowns[size:], factors.corner.T
        forward = lapack.dtrtrs(corner, beside - factors.beside.T @ inside, trans=1)[0]
        beside[:] = lapack.dtrtrs(corner, forward)[0]
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


def linearize(arcs: Arcs, terms: Terms, point: Point, residuals: Residuals) -> Factors:
    """Return the factors of Newton's equations for the sums at a point, raising `LinAlgError` as :func:`factorize`."""
    output, ratio = residuals.output, point.mass / point.slack
    pull = ratio * output
    return factorize(arcs, terms, pull * output + point.mass * residuals.bend, -pull, ratio)


def newton_step(
    arcs: Arcs, excess: float, factors: Factors, point: Point, residuals: Residuals, target: Target
) -> Step:
    """Return Newton's step from a point, by the factors of its equations."""
    output, mass, slack = residuals.output, point.mass, point.slack
    ratio = mass / slack
    off = residuals.slack - target.square
    # Linearised complementarity gives the changes of masses by those of slacks, the slack residual those of slacks by
    # the sums. This is the change of a mass if the sums stay.
    towards = target.products / slack - ratio * off - mass
    slope_right = residuals.slope_row + apply_transpose(arcs, excess, towards * output + target.curve)
    cost_right = residuals.cost_row - apply_transpose(arcs, excess, towards)
    slopes, costs = solve_system(arcs, factors, -slope_right, -cost_right)
    moved = apply_incidence(arcs, excess, slopes)
    turned = apply_incidence(arcs, excess, costs) - output * moved
    change = Point(slopes, costs, towards - ratio * turned, turned + off)
    return Step(change, moved, _longest(slack, change.slack), _longest(mass, change.mass))


def _longest(amounts: Floats, changes: Floats) -> float:
    """Return the length of the longest step that leaves all amounts nonnegative."""
    steepest = -(changes / amounts).min()
    return float(1 / steepest) if steepest > 0 else np.inf


class Status(Enum):
    """Reason for which the iteration ended."""

    CONVERGED = "residuals and complementarity within tolerance"
    STALLED = "complementarity within tolerance, residuals no longer reduced"
    INFEASIBLE = "row residuals no longer reduced: the arcs hold no randomizer"
    ITERATION_LIMIT = "iteration limit"
    NUMERICAL = "singular or overflowing Newton system"


@dataclass(frozen=True)
class KernelOptions:
    """Tuning of :func:`interior_point`, on 2,000 random problems of up to 400 labels.

    Attributes
    ----------
    steps : int
        Iteration limit. Problems that converge need 10 to 25.
    head_start : float
        Share of the way from the centre to the given sums at which the iteration begins. 1 would leave slacks of zero.
    least_product : float
        Least product of a given mass and its slack, as a share of their mean.
    row_weight, slack_weight : float
        Weights of the residuals in the merit by which the best iterate is chosen. Rows count little, as feasibility is
        restored afterwards.
    near : float
        Row residual below which an iterate may be the best one.
    damping : float
        Share of the way to the boundary that a step may go. At 0.995 four more of 315 problems whose priors are spikes
        stay open, and others take 3 % more steps.
    cautious : bool
        Whether steps that overestimate concave slacks are halved. It proves the few problems of two to four labels that
        fail otherwise, and loses some tight intervals.
    overestimate, halvings : float, int
        Share of the largest slack up to which a cautious step may overestimate slacks, and the largest number of times
        that it is halved. At a share of 0.1 outputs of two labels in an interval may flip between both ends for ever.
    lost, patience, many : float, int, int
        Infeasibility test without bias: more than `many` arcs, and for `patience` steps a slack residual above `lost`
        while the row residual does not fall. Up to `many` arcs it is not worth its time.
    """

    steps: int = 60
    head_start: float = 0.9999
    least_product: float = 0.1
    row_weight: float = 1e-8
    slack_weight: float = 1e-3
    near: float = 1e-3
    damping: float = 0.9995
    cautious: bool = False
    overestimate: float = 0.01
    halvings: int = 12
    lost: float = 1e3
    patience: int = 15
    many: int = 1000


class _Kernel:
    """One run of the iteration: the arcs and terms of a level, and the tolerances."""

    def __init__(self, arcs: Arcs, terms: Terms, gap: float, tolerance: float, options: KernelOptions) -> None:
        self.arcs, self.options, self.gap = arcs, options, gap
        self.limit = max(0.02 * gap, tolerance)
        # Beyond the cap, the charges of biases are enforced by multipliers of their own (augmented Lagrangian).
        self.charges, self.held = terms.charges, np.zeros(terms.charges.size)
        self.terms = terms.capped
        self.weight = apply_incidence(arcs, terms.excess, terms.before)
        self.none = Target(np.zeros(arcs.n), np.zeros(arcs.n), np.zeros(arcs.n))
        self.idle = 0
        self.last_row, self.last_slack = np.inf, np.inf

    def start(self, slopes: Floats, costs: Floats, mass: Floats | None) -> Point:
        """Return a point between the centre and some sums, or the centre if an arc is violated there."""
        arcs, terms, options, share = self.arcs, self.terms, self.options, self.options.head_start
        centre = terms.centre
        slopes, costs = share * slopes, centre[1] + share * (costs - centre[1])
        slack = evaluate_residuals(arcs, terms, self.weight, Point(slopes, costs, self.weight, self.none.square)).slack
        if not (slack > 0).all():
            slopes, costs, slack, mass = *centre, self.weight / 2, None
        # Equal products of masses and slacks are central, so that the first step can be long. Given masses are raised
        # to a share of the mean product, for steps would be short beside masses and slacks near zero.
        product = 1 / arcs.n if mass is None else options.least_product * float(mass @ slack) / arcs.n
        mass = product / slack if mass is None else np.maximum(mass, product / slack)
        # Rows sum to one. If the total is fixed instead, their scale is free.
        if arcs.unknown == arcs.k:
            mass = mass / apply_transpose(arcs, terms.excess, mass)[arcs.k]
        return Point(slopes, costs, mass, slack)

    def residuals(self, point: Point) -> Residuals:
        """Return the residuals at a point, rows that sum to one and the held charges included."""
        residuals = evaluate_residuals(self.arcs, self.terms, self.weight, point)
        if self.arcs.unknown == self.arcs.k:
            residuals.cost_row[-1] += 1.0
        if self.held.size:
            residuals.slope_row[1:] += self.held
            residuals.slope_row[:-1] -= self.held
        return residuals

    def check(self, complementarity: float, row: float, slack: float) -> Status | None:
        """Return why to stop at residuals of some size, or None to go on."""
        options, gap = self.options, self.gap
        # Complementarity is far below its target, and rounding keeps the residuals from shrinking.
        stuck = complementarity < 0.01 * gap and row > 0.5 * self.last_row and slack > 0.5 * self.last_slack
        lost = self.arcs.n > options.many and not self.charges.size and slack > options.lost
        self.idle = self.idle + 1 if lost and row > 0.9 * self.last_row else 0
        self.last_row, self.last_slack = row, slack
        if complementarity < gap and slack < self.limit and row < self.limit:
            return Status.CONVERGED
        if complementarity < gap and (stuck or complementarity < 1e-6 * gap):
            return Status.STALLED
        return Status.INFEASIBLE if self.idle == options.patience else None

    def direction(self, point: Point, residuals: Residuals) -> Step:
        """Return the step of the predictor and the corrector, raising `LinAlgError` as :func:`factorize`."""
        arcs, mass, slack = self.arcs, point.mass, point.slack
        factors = linearize(arcs, self.terms, point, residuals)

        def step_to(target: Target) -> Step:
            return newton_step(arcs, self.terms.excess, factors, point, residuals, target)

        # Predictor: aim at complementarity zero. How far it gets decides the barrier parameter (Mehrotra's cube rule).
        trial = step_to(self.none)
        to_slack, to_mass = min(1.0, trial.to_slack), min(1.0, trial.to_mass)
        total = mass @ slack
        reached = float((mass + to_mass * trial.change.mass) @ (slack + to_slack * trial.change.slack))
        centring = max(min(max(reached / float(total), 0.0) ** 3, 1.0), 1e-8)
        barrier = centring * float(total) / arcs.n
        # Corrector: terms of second order of the products, of the rows, and of the concave slacks, at the lengths that
        # the predictor reached. At a price of bias that of the slacks counts in full: of 315 problems whose priors are
        # spikes, 17 then stay open in place of 35. Without bias, problems of two labels would fail.
        # The products count at the shorter length, which saves one step in ten. Cautious steps count them at less.
        both = to_slack * to_mass if self.options.cautious else min(to_slack, to_mass)
        length = 1.0 if self.charges.size and not self.options.cautious else to_slack
        corrected = Target(
            barrier - both * trial.change.mass * trial.change.slack,
            both * trial.change.mass * trial.moved * residuals.bend,
            length * length * trial.moved * trial.moved * residuals.bend / 2,
        )
        return step_to(corrected)

    def advance(self, point: Point, step: Step, slack_residual: float) -> Point:
        """Return the next point, after a damped step. A cautious one is halved while slacks are overestimated.

        At a price of bias the row residuals depend on sums and masses, so a cautious step has one length for both.
        """
        options = self.options
        to_slack, to_mass = min(1.0, options.damping * step.to_slack), min(1.0, options.damping * step.to_mass)
        if options.cautious:
            if self.charges.size:
                to_slack = to_mass = min(to_slack, to_mass)
            allowed = max(options.overestimate * max(1.0, point.slack.max()), 2 * slack_residual)
            # Slacks are concave in the sums: at the end of a long step they are less than their linear models say.
            for _ in range(options.halvings):
                trial = point.move(step.change, to_slack, 0.0)
                if np.abs(evaluate_residuals(self.arcs, self.terms, self.weight, trial).slack).max() <= allowed:
                    break
                to_slack, to_mass = to_slack / 2, to_mass / 2
        point = point.move(step.change, to_slack, to_mass)
        # Multiplier step of the augmented Lagrangian: the held charges take over what the cap leaves out.
        if self.held.size:
            capped = self.terms.charges
            self.held = (capped * np.diff(point.slopes) + self.held) * (1 - capped / self.charges)
        return point


def interior_point(
    arcs: Arcs,
    terms: Terms,
    gap: float,
    tolerance: float,
    start: tuple[Floats, Floats],
    options: KernelOptions = KernelOptions(),
    mass: Floats | None = None,
) -> tuple[Point, int, Status]:
    """Minimise over the sums of the multipliers, given some arcs of a level.

    Begin near the sums `start` and, if they are given, the masses of a similar problem. Reduced costs are concave in
    the sums, so on the way to the centre they keep a share of their values there. Stop at a complementarity, the sum of
    ``mass * slack``, of `gap` and residuals of `tolerance`. Return the best iterate, the steps taken, and why.
    """
    kernel = _Kernel(arcs, terms, gap, tolerance, options)
    point = best = kernel.start(*start, mass)
    unknown, least = slice(1, arcs.unknown + 1), np.inf
    for step in range(options.steps + 1):
        residuals = kernel.residuals(point)
        complementarity = float((point.mass * point.slack).sum())
        if not np.isfinite(complementarity):
            return best, step, Status.NUMERICAL
        slack = float(np.abs(residuals.slack).max())
        row = float(max(np.abs(part[unknown]).max() for part in (residuals.slope_row, residuals.cost_row)))
        # The last iterate need not be the best one: rounding may spoil what an earlier one had.
        merit = complementarity + options.row_weight * row + options.slack_weight * slack
        if merit < least and (row < options.near or least == np.inf):
            best = point
            least = merit if row < options.near else least
        status = kernel.check(complementarity, row, slack)
        if status is not None:
            return best, step, status
        if step == options.steps:
            break
        try:
            direction = kernel.direction(point, residuals)
        except np.linalg.LinAlgError:
            return best, step, Status.NUMERICAL
        point = kernel.advance(point, direction, slack)
    return best, options.steps, Status.ITERATION_LIMIT
