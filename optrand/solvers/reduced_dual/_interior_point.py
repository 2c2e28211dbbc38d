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
from optrand.solvers._positions import Numbers
from optrand.solvers.reduced_dual._arcs import Arcs, Terms


class Point(NamedTuple):
    """Sums of the multipliers up to each node, and pairs of each arc.

    Attributes
    ----------
    sums : (2, k + 1) array
        Slopes ``b`` and costs ``c``, in extended precision where they are refined.
    pairs : (2, n) array
        Masses and slacks.
    """

    sums: Numbers
    pairs: Floats

    @property
    def slopes(self) -> Floats:
        """Sums ``b``."""
        slopes: Floats = self.sums[0]
        return slopes

    @property
    def costs(self) -> Floats:
        """Sums ``c``."""
        costs: Floats = self.sums[1]
        return costs

    @property
    def mass(self) -> Floats:
        """Mass of each arc."""
        mass: Floats = self.pairs[0]
        return mass

    @property
    def slack(self) -> Floats:
        """Slack of each arc."""
        slack: Floats = self.pairs[1]
        return slack

    @property
    def complementarity(self) -> float:
        """Sum of mass times slack."""
        return float(self.mass @ self.slack)

    def is_finite(self) -> bool:
        """Return whether all sums and masses are finite."""
        return bool(np.isfinite(self.sums).all() and np.isfinite(self.mass).all())

    @property
    def in_use(self) -> NDArray[np.bool_]:
        """Whether each arc seems to have mass at the optimum."""
        # Of mass and slack one tends to zero. In doubt an arc counts as in use, since feasibility needs all that are.
        return self.mass > 1e-3 * self.slack

    def move(self, change: Point, lengths: Floats) -> Point:
        """Return the point after a step of some lengths for masses and for slacks. Sums move with the slacks."""
        return Point(self.sums + lengths[1] * change.sums, self.pairs + lengths[:, np.newaxis] * change.pairs)


class Residuals(NamedTuple):
    """Best output of each arc at a point, its derivative by the slope of the arc, and the residuals of the equations.

    The derivative is 0 at a bound of the output. `slack` is reduced costs less slacks. `rows` are the derivatives of
    the Lagrangian by the sums ``b``, and by ``c`` with the other sign.
    """

    output: Floats
    bend: Floats
    slack: Floats
    rows: Floats


class Step(NamedTuple):
    """Newton step: change of a point and of the slope of each arc, and the longest lengths for masses and slacks."""

    change: Point
    moved: Floats
    lengths: Floats


class Target(NamedTuple):
    """Right side of complementarity, and second-order terms of the rows and of the slacks."""

    products: Floats | float = 0.0
    curve: Floats | float = 0.0
    square: Floats | float = 0.0


class Factors(NamedTuple):
    """Cholesky factor of the band, its inverse times the border, and the factor of the Schur complement."""

    band: Floats
    beside: Floats
    corner: Floats


def row_residuals(arcs: Arcs, terms: Terms, mass: Floats, output: Floats) -> Floats:
    """Return the derivatives of the Lagrangian by the sums ``b``, without charges, and those by ``c``, times -1."""
    rows = arcs.apply_transpose(np.array((mass * output, -mass)))
    rows[0] += terms.gaps
    if arcs.total:
        rows[1, -1] += 1.0
    return rows


def add_forces(row: Floats, forces: Numbers) -> None:
    """Add the force of each label to its node at the right, and subtract it from that at the left."""
    row[1:] += forces
    row[:-1] -= forces


def newton_matrix(
    arcs: Arcs, terms: Terms, slopes: Floats, mixed: Floats, costs: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the sum over arcs of ``dx' [[slopes, mixed], [mixed, costs]] dx`` plus the charges.

    There ``dx = x[end] - x[first] + excess * x[k]``, the last term zero if the sums of the last node are fixed.

    Returns
    -------
    band : (size, width) array
        Lower half of the rows in the band: each row is a column of the matrix from its diagonal downwards.
    border, corner : arrays
        Rows of hubs, from columns of the band and of hubs. Of the corner only the lower half is right.
    """
    n, size, width, both = arcs.n, arcs.size, arcs.width, arcs.unknowns.size
    blocks = np.zeros((3, arcs.entries.shape[1]))
    blocks[0, :n], blocks[1, :n], blocks[2, :n] = slopes, mixed, costs
    # Charges of biases act on the slopes of single labels, which are the further arcs.
    blocks[0, n:] = terms.charges
    # An arc adds its block at both of its nodes, and subtracts it between them. Entries may coincide.
    first, end, between = arcs.entries[:9].reshape(3, -1)
    matrix, entries = np.zeros(size * width + (both - size) * both + 1), blocks.ravel()
    np.add.at(matrix, first, entries)
    np.add.at(matrix, end, entries)
    np.subtract.at(matrix, between, entries)
    np.subtract.at(matrix, arcs.entries[9], blocks[1])
    band, border = matrix[: size * width].reshape(size, width), matrix[size * width : -1].reshape(both - size, both)
    if arcs.total:
        # All arcs have the sums of the last node: two dense rows, added twice where they meet their columns.
        pairs = blocks[:2, :n], blocks[1:, :n]
        rows = arcs.excess * np.array([arcs.apply_transpose(pair).take(arcs.unknowns) for pair in pairs])
        border[-2:] += rows
        border[-2:, -2:] += rows[:, -2:] - arcs.excess**2 * np.array([pair.sum(axis=1) for pair in pairs])
    return band, border[:, :size], border[:, size:]


def factorize(arcs: Arcs, terms: Terms, slopes: Floats, mixed: Floats, costs: Floats) -> Factors:
    """Factorize :func:`newton_matrix`. Raise `LinAlgError` if the band is not positive definite in floats."""
    band, border, corner = newton_matrix(arcs, terms, slopes, mixed, costs)
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


def _factorize_corner(corner: Floats, least: Floats) -> None:
    """Replace the lower half by its Cholesky factor. Unknowns with a pivot of at most `least` are fixed at zero."""
    for j in range(least.size):
        column = corner[j:, j] - corner[j:, :j] @ corner[j, :j]
        if column[0] > least[j]:
            corner[j:, j] = column / np.sqrt(column[0])
        else:
            corner[j:, j] = 0.0
            corner[j, j] = np.inf


def solve_system(arcs: Arcs, factors: Factors, right: Floats) -> Floats:
    """Solve for right sides of the slopes and costs of all nodes. Return their sums, zero where they are fixed."""
    size = arcs.size
    unknowns = right.take(arcs.unknowns)
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
    sums = np.zeros(right.size)
    sums[arcs.unknowns] = unknowns
    return sums.reshape(right.shape)


def evaluate_residuals(arcs: Arcs, terms: Terms, weight: Numbers, point: Point) -> Residuals:
    """Return the residuals at a point, for arcs whose prior plus `excess` is `weight`.

    If the sums and the weights are in extended precision, so is the difference of reduced costs and slacks.
    """
    slope, cost = arcs.apply_incidence(point.sums)
    output, bend = slope / weight, 1 / weight
    if arcs.bounded:
        best = output
        output = np.minimum(np.maximum(best, arcs.low), arcs.high)
        bend = np.where(output == best, bend, 0.0)
    slack = cost - (slope - weight * output / 2) * output - point.slack
    output, bend, slack = (numbers.astype(np.float64, copy=False) for numbers in (output, bend, slack))
    rows = row_residuals(arcs, terms, point.mass, output)
    if terms.charges.size:
        add_forces(rows[0], terms.charges * np.diff(point.slopes))
    return Residuals(output, bend, slack, rows)


class NewtonSystem:
    """Newton's equations at a point, factorized.

    Masses and slacks are eliminated: linearised complementarity gives the changes of masses by those of slacks, and the
    slack residual those of slacks by the sums.
    """

    def __init__(self, arcs: Arcs, terms: Terms, point: Point, residuals: Residuals) -> None:
        self.arcs, self.point, self.residuals = arcs, point, residuals
        self.ratio = point.mass / point.slack
        output, pull = residuals.output, self.ratio * residuals.output
        self.factors = factorize(arcs, terms, pull * output + point.mass * residuals.bend, -pull, self.ratio)

    def step_to(self, target: Target) -> Step:
        """Return Newton's step to some target."""
        arcs, pairs, ratio, output = self.arcs, self.point.pairs, self.ratio, self.residuals.output
        off = self.residuals.slack - target.square
        # Changes of the masses if the sums stay.
        towards = target.products / self.point.slack - ratio * off - self.point.mass
        right = self.residuals.rows + arcs.apply_transpose(np.array((towards * output + target.curve, -towards)))
        sums = solve_system(arcs, self.factors, -right)
        moved, turned = arcs.apply_incidence(sums)
        turned -= output * moved
        change = np.array((towards - ratio * turned, turned + off))
        # The longest steps that leave all masses and slacks nonnegative.
        steepest = -(change / pairs).min(axis=1)
        return Step(Point(sums, change), moved, 1 / np.maximum(steepest, 1e-300))


class Status(Enum):
    """Reason for which the iteration ended."""

    CONVERGED = "residuals and complementarity within tolerance"
    STALLED = "complementarity within tolerance, residuals no longer reduced"
    INFEASIBLE = "slack residuals stay large: the arcs hold no randomizer"
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
        Infeasibility test without bias: more than `many` arcs, and for `patience` steps a slack residual above `lost`.
        Up to `many` arcs it is not worth its time.
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
        self.weight = arcs.apply_incidence(terms.before)
        self.lost_steps = 0
        self.last_row, self.last_slack = np.inf, np.inf

    def start(self, slopes: Floats, costs: Floats, mass: Floats | None) -> Point:
        """Return a point between the centre and some sums, or the centre if an arc is violated there."""
        arcs, options, share = self.arcs, self.options, self.options.head_start
        centre = np.array(self.terms.centre)
        sums = centre + share * (np.array((slopes, costs)) - centre)
        slack = self.residuals(Point(sums, np.zeros((2, arcs.n)))).slack
        if not (slack > 0).all():
            sums, slack, mass = centre, self.weight / 2, None
        # Equal products of masses and slacks are central, so that the first step can be long. Given masses are raised
        # to a share of the mean product, for steps would be short beside masses and slacks near zero.
        product = 1 / arcs.n if mass is None else options.least_product * float(mass @ slack) / arcs.n
        mass = product / slack if mass is None else np.maximum(mass, product / slack)
        # Rows sum to one. If the total is fixed instead, their scale is free.
        if arcs.total:
            mass = mass / arcs.apply_transpose(mass)[-1]
        return Point(sums, np.array((mass, slack)))

    def residuals(self, point: Point) -> Residuals:
        """Return the residuals at a point, the held charges included."""
        residuals = evaluate_residuals(self.arcs, self.terms, self.weight, point)
        if self.held.size:
            add_forces(residuals.rows[0], self.held)
        return residuals

    def check(self, complementarity: float, row: float, slack: float) -> Status | None:
        """Return why to stop at residuals of some size, or None to go on."""
        options, gap = self.options, self.gap
        # Complementarity is far below its target, and rounding keeps the residuals from shrinking.
        stuck = complementarity < 0.01 * gap and row > 0.5 * self.last_row and slack > 0.5 * self.last_slack
        lost = self.arcs.n > options.many and not self.charges.size and slack > options.lost
        self.lost_steps = self.lost_steps + 1 if lost else 0
        self.last_row, self.last_slack = row, slack
        if complementarity < gap and slack < self.limit and row < self.limit:
            return Status.CONVERGED
        if complementarity < gap and (stuck or complementarity < 1e-6 * gap):
            return Status.STALLED
        return Status.INFEASIBLE if self.lost_steps == options.patience else None

    def direction(self, point: Point, residuals: Residuals) -> Step:
        """Return the step of the predictor and the corrector, raising `LinAlgError` as :func:`factorize`."""
        system = NewtonSystem(self.arcs, self.terms, point, residuals)
        # Predictor: aim at complementarity zero. How far it gets decides the barrier parameter (Mehrotra's cube rule).
        trial = system.step_to(Target())
        lengths = np.minimum(1.0, trial.lengths)
        total, reached = point.complementarity, point.move(trial.change, lengths).complementarity
        centring = max(min(max(reached / total, 0.0) ** 3, 1.0), 1e-8)
        # Corrector: terms of second order of the products, of the rows, and of the concave slacks, at the lengths that
        # the predictor reached. At a price of bias that of the slacks counts in full: of 315 problems whose priors are
        # spikes, 17 then stay open in place of 35. Without bias, problems of two labels would fail.
        # The products count at the shorter length, which saves one step in ten. Cautious steps count them at less.
        both = lengths.prod() if self.options.cautious else lengths.min()
        length = 1.0 if self.charges.size and not self.options.cautious else lengths[1]
        turned = trial.moved * residuals.bend
        return system.step_to(
            Target(
                centring * total / self.arcs.n - both * trial.change.mass * trial.change.slack,
                both * trial.change.mass * turned,
                length**2 / 2 * trial.moved * turned,
            )
        )

    def advance(self, point: Point, step: Step, slack_residual: float) -> Point:
        """Return the next point, after a damped step. A cautious one is halved while slacks are overestimated.

        At a price of bias the row residuals depend on sums and masses, so a cautious step has one length for both.
        """
        options = self.options
        lengths = np.minimum(1.0, options.damping * step.lengths)
        if options.cautious:
            if self.charges.size:
                lengths[:] = lengths.min()
            allowed = max(options.overestimate * max(1.0, point.slack.max()), 2 * slack_residual)
            # Slacks are concave in the sums: at the end of a long step they are less than their linear models say.
            for _ in range(options.halvings):
                trial = point.move(step.change, lengths)
                if np.abs(evaluate_residuals(self.arcs, self.terms, self.weight, trial).slack).max() <= allowed:
                    break
                lengths /= 2
        point = point.move(step.change, lengths)
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
    least = np.inf
    for step in range(options.steps + 1):
        residuals = kernel.residuals(point)
        complementarity = point.complementarity
        if not np.isfinite(complementarity):
            return best, step, Status.NUMERICAL
        slack = float(np.abs(residuals.slack).max())
        row = float(np.abs(residuals.rows[:, arcs.free]).max())
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
