r"""Primal-dual interior point on the arcs of one level: Mehrotra's predictor-corrector on a banded Newton system.

Unknowns are the sums of the multipliers up to each node, ``b`` (slopes) and ``c`` (costs), and the mass and the slack
of each arc. The slack, the reduced cost of the arc at its best output, is concave in the sums, so the problem is a
convex program whose masses are the Lagrange multipliers of ``slack >= 0``. Each iteration solves the Newton system of

* the slack residual, ``reduced cost - slack = 0`` for each arc,
* the row residuals, the derivatives of the Lagrangian by ``b`` and ``c``, which are the equations of the randomizer,
* complementarity, ``mass * slack = barrier parameter``.

The system is that of :mod:`optrand.solvers.reduced_dual._newton`. Source: Mehrotra (1992).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from optrand.base._validation import Floats
from optrand.solvers.reduced_dual._arcs import Arcs, Terms
from optrand.solvers.reduced_dual._newton import (
    Point,
    Residuals,
    Step,
    Target,
    apply_incidence,
    apply_transpose,
    cap_charges,
    evaluate_residuals,
    linearize,
    newton_step,
)


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
        Share of the way from the centre to the given sums at which the iteration begins; 1 would leave slacks of zero.
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


def centre_of(terms: Terms) -> tuple[Floats, Floats]:
    """Return sums ``b, c`` at which the reduced cost of each arc is half of its weight."""
    return np.zeros(terms.before.size), terms.before / 2


class _Kernel:
    """One run of the iteration: the arcs and terms of a level, and the tolerances."""

    def __init__(self, arcs: Arcs, terms: Terms, gap: float, tolerance: float, options: KernelOptions) -> None:
        self.arcs, self.options, self.gap = arcs, options, gap
        self.limit = max(0.02 * gap, tolerance)
        # Beyond the cap, the charges of biases are enforced by multipliers of their own (augmented Lagrangian).
        self.charges, self.held = terms.charges, np.zeros(terms.charges.size)
        self.terms = cap_charges(terms)
        self.weight = apply_incidence(arcs, terms.excess, terms.before)
        self.none = Target(np.zeros(arcs.n), np.zeros(arcs.n), np.zeros(arcs.n))
        self.idle = 0
        self.last_row, self.last_slack = np.inf, np.inf

    def start(self, slopes: Floats, costs: Floats, mass: Floats | None) -> Point:
        """Return a point between the centre and some sums, or the centre if an arc is violated there."""
        arcs, terms, options, share = self.arcs, self.terms, self.options, self.options.head_start
        centre = terms.before / 2
        slopes, costs = share * slopes, centre + share * (costs - centre)
        slack = evaluate_residuals(arcs, terms, self.weight, Point(slopes, costs, self.weight, self.none.square)).slack
        if not (slack > 0).all():
            slopes, costs, slack, mass = np.zeros(arcs.k + 1), centre, self.weight / 2, None
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
        """Return the step of the predictor and the corrector.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the Newton matrix is singular in floats.
        """
        arcs, mass, slack = self.arcs, point.mass, point.slack
        system = linearize(arcs, self.terms, point, residuals)

        def step_to(target: Target) -> Step:
            return newton_step(arcs, self.terms.excess, system, point, residuals, target)

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
        cautious = self.options.cautious
        both = to_slack * to_mass if cautious else min(to_slack, to_mass)
        length = 1.0 if self.charges.size and not cautious else to_slack
        target = Target(
            barrier - both * trial.change.mass * trial.change.slack,
            both * trial.change.mass * trial.moved * residuals.bend,
            length * length * trial.moved * trial.moved * residuals.bend / 2,
        )
        return step_to(target)

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
    """Minimise over the sums of the multipliers, given some arcs.

    Parameters
    ----------
    arcs, terms
        Arcs of a level, and its numbers.
    gap : float
        Complementarity, the sum of ``mass * slack``, at which to stop.
    tolerance : float
        Residual to which equations must hold.
    start : tuple of (k + 1,) arrays
        Sums ``b, c`` near which the iteration begins. Reduced costs are concave in the sums, so between these and the
        centre they keep a share of their values at the centre.
    options : KernelOptions
    mass : (n,) array, optional
        Masses that belong to the sums, such as those of a similar problem.

    Returns
    -------
    point : Point
        Best iterate by a weighted sum of complementarity and residuals.
    steps : int
        Number of iterations.
    status : Status
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
