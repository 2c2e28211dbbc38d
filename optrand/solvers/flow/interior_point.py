r"""From a cone solver's answer to the last digit: a primal-dual interior-point method on the arcs that may be in use.

A general cone solver stops when its own tolerances are met, with some ten digits of the loss, fewer of the masses, and
no say in which of two neighbouring arcs is in use. With :math:`h` the reduced costs of the arcs at their best outputs,
a variable prior and the leans (:mod:`optrand.solvers.flow.program`), multipliers :math:`c` and slacks :math:`s`,
Newton's steps go to

.. math:: h(\pi) = s, \qquad \nabla_\pi L = 0, \qquad c_j s_j \to 0.

They tell the arcs in use from the others by orders of magnitude, and end on those alone; where the prior is a variable,
first with a floor under it and then without.

A reduced cost :math:`T - B^2 / 2P` has the gradient :math:`(1, -u, u^2/2)` by :math:`(T, B, P)` with :math:`u = B / P`,
and of second derivatives only :math:`-w w' / P` with :math:`w = (0, 1, -u)`. A price of bias is the least over
:math:`q` of :math:`\lambda p q^2 / 2 - \beta q`, so that nothing is ever divided by a prior that vanishes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from optrand.base.validation import Floats
from optrand.errors import SolverFailed
from optrand.solvers.flow.nodes import Rows, scaled, without
from optrand.solvers.flow.program import TINY, ArcProgram, Point

__all__ = ["Elimination", "Equations", "NewtonOptions", "settled", "used"]

PLAUSIBLE = (-3.0, -6.0, -np.inf)
"""Arcs whose mass is so many orders of magnitude below their reduced cost are left out at once, if the rest will do.

Where labels are clustered, masses far below the engine's tolerance may be needed.
"""

EXACT = 1e-10
"""Residuals of an answer that needs no further arcs, in units of the loss."""

CENTRED = 0.03
"""No product of multiplier and slack starts below this share of their mean, or of the floor that is taken away."""

DAMPING = 0.995
"""Share of the way to the boundary that a step may go."""

STEPS = 40
"""At most so many; ten to twenty is what it takes."""

PATIENCE, IDLE = 4, 0.9
"""So many steps in a row that leave more than that share of the error; only the first step may well add to it."""

REFINED = 4
"""Number of corrections of the solution of a step's equations."""


class NewtonOptions(NamedTuple):
    """How a step's equations are solved, and until when.

    Attributes
    ----------
    pivot : float
        Pivots are taken in the sparsest order unless they are smaller than this share of their column.
    ridge : float
        What keeps the matrix from being singular; solutions are corrected for it.
    gap : float
        The sum of the products of multipliers and slacks at which to stop.
    """

    pivot: float
    ridge: float
    gap: float


QUICK = NewtonOptions(0.0, 1e-10, 1e-14)
"""Sparse however many arcs there are; enough to see which are in use."""

FIRM = NewtonOptions(0.1, 1e-11, 1e-20)
"""Dense if there are many more arcs than labels; right to the last digit."""

Step = tuple[Floats, Floats, Floats]
"""Changes of the potentials and leans, of multipliers, and of the biases."""

Program = TypeVar("Program", bound=ArcProgram)


def used(program: Program, point: Point) -> tuple[Program, Point]:
    """The arcs in use, and the exact answer on them without a floor under the prior: only a claim.

    Where floats give out the best that was found stands.

    Raises
    ------
    SolverFailed
        If no arc looks in use.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found, least = (program, point), Equations(program, point).residual
        for plausible in PLAUSIBLE:
            some, near = _only(program, point, plausible)
            some, near = _only(some, settled(some, near, QUICK), plausible)
            if not some.n:
                continue
            near = settled(some, near, FIRM)
            error = Equations(some, near).error
            if error < least:
                # What was left out must not be missed.
                error = max(error, -float(program.reduced_costs(near.potentials)[0].min()))
            if error < least:
                found, least = (some, near), error
            if error < EXACT:
                break
        some, near = _only(*found, 0.0)
        if not some.n and program.bounded:
            raise SolverFailed("no column looks in use in the cone solver's answer: epsilon is too large for floats")
        free = some.without_floor()
        return _only(free, settled(free, near, FIRM, CENTRED * some.floor), 0.0) if some.n else found


def _only(program: Program, point: Point, complementarity: float) -> tuple[Program, Point]:
    """The program and the point on the arcs that look at least so much in use."""
    n = program.n
    kept = point.complementarity[:n] > complementarity
    every = np.concatenate((kept, np.ones(program.bounded, dtype=bool), np.tile(kept, len(program.ends))))
    return program.only(kept), replace(point, multipliers=point.multipliers[every], slacks=point.slacks[every])


class Elimination:
    """Sparse factors; the order of elimination is found once where no pivots change it."""

    def __init__(self, pivot: float) -> None:
        self.pivot = pivot
        self.order: NDArray[np.intp] | None = None

    def solver(self, matrix: sparse.csc_array) -> Callable[[Floats], Floats]:
        """Solver of one system of equations."""
        options, order = {"SymmetricMode": True}, self.order
        if order is None:
            found = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=self.pivot, options=options)
            self.order = None if self.pivot else np.argsort(found.perm_c)
            return lambda right: np.asarray(found.solve(right))
        even = sparse.csc_array(matrix[order][:, order])
        factors = splu(even, permc_spec="NATURAL", diag_pivot_thresh=self.pivot, options=options)

        def solve(right: Floats) -> Floats:
            solved = np.empty_like(right)
            solved[order] = factors.solve(right[order])
            return solved

        return solve


def settled(program: ArcProgram, point: Point, options: NewtonOptions, least: float = 0.0) -> Point:
    """Take an interior point's steps until the products vanish; the best found where floats give out first.

    No product of multiplier and slack starts below `least`.
    """
    if not program.n:
        return point
    point = _centred(program, point, least)
    elimination = Elimination(options.pivot)
    best, error, before, idle = point, np.inf, np.inf, 0
    for _ in range(STEPS):
        equations = Equations(program, point)
        here = equations.residual
        if here < error:
            best, error = point, here
        idle = 0 if here < IDLE * before else idle + 1
        if not np.isfinite(here) or point.multipliers @ point.slacks < options.gap or idle == PATIENCE:
            break
        before = here
        try:
            point = _stepped(equations, options.ridge, elimination)
        except RuntimeError:
            break
    return best


def _centred(program: ArcProgram, point: Point, least: float) -> Point:
    """No slack below its error, and no product with its multiplier far below the others: the smaller one is raised."""
    slacks = np.maximum(point.slacks, np.abs(_slack_errors(program, point)))
    products, bound = point.multipliers * slacks, point.multipliers > slacks
    lift = np.maximum(max(least, CENTRED * float(products.mean())) / products, 1.0)
    multipliers = np.where(bound, point.multipliers, point.multipliers * lift)
    return replace(point, multipliers=multipliers, slacks=np.where(bound, slacks * lift, slacks))


def _stepped(equations: Equations, ridge: float, elimination: Elimination) -> Point:
    """The point after one predictor and corrector step."""
    point = equations.point
    multipliers, slacks = point.multipliers, point.slacks
    solve = equations.solver(slacks / multipliers, ridge, elimination)

    def direction(products: Floats) -> tuple[Step, Floats]:
        step = solve(equations.off - products / multipliers)
        return step, equations.off + equations.rows @ step[0]

    (_, mass, _), slack = direction(-multipliers * slacks)
    length = min(_length(multipliers, mass), _length(slacks, slack))
    mean = float(multipliers @ slacks) / slacks.size
    reached = float((multipliers + length * mass) @ (slacks + length * slack)) / slacks.size
    centring = min(1.0, max(reached / mean, 0.0)) ** 3
    (moved, mass, bias), slack = direction(-multipliers * slacks - length**2 * mass * slack + centring * mean)
    length = min(_length(multipliers, mass), _length(slacks, slack))
    length = 1.0 if length == 1.0 else DAMPING * length
    return Point(
        point.potentials + length * moved[: point.potentials.size].reshape(point.potentials.shape),
        np.maximum(multipliers + length * mass, TINY),
        np.maximum(slacks + length * slack, TINY),
        point.biases + length * bias,
    )


def _slack_errors(program: ArcProgram, point: Point) -> Floats:
    """By how much reduced costs, a variable prior and leans exceed the slacks."""
    leans = program.leans(point)
    costs, slopes, weights = program.curves(point.potentials, leans)
    priors = program.nodes.amounts(point.potentials)[: program.bounded, -1] - program.floor / program.k
    return np.concatenate((costs - slopes**2 / (2 * weights), priors, leans)) - point.slacks


class Equations:
    """Newton's equations at one point: potentials but for the total prior, leans, multipliers, and biases at a price.

    With ``H`` the second derivatives, ``J`` the gradients of the reduced costs, the prior and the leans, and ``Q`` that
    of the prices of bias by the biases,

        H dx - J' dc - Q' dq = gradient,    -J dx - (s / c) dc = ...,    -Q dx - (lam p) dq = ...
    """

    def __init__(self, program: ArcProgram, point: Point) -> None:
        self.program, self.point, self.off = program, point, _slack_errors(program, point)
        n, leans = program.n, program.leans(point)
        x = np.concatenate((point.potentials.ravel(), leans))
        _, slopes, weights = program.curves(point.potentials, leans)
        aligned = program.aligned_curves
        cost, slope, weight = aligned.entries
        beta, shares = program.label_rows
        tilt = aligned.each(slopes / weights)
        others = [rows for rows in (shares[: program.bounded], program.lean_rows) if rows.shape[0]]
        moved = aligned.matrix(cost - tilt * slope + tilt**2 / 2 * weight)
        self.rows: Rows = sparse.csr_array(sparse.vstack([moved, *others])) if others else moved
        curved = aligned.matrix(slope - tilt * weight)
        self.curvature: Rows = sparse.csr_array(curved.T @ scaled(point.multipliers[:n] / weights, curved))
        gradient = np.asarray(self.rows.T @ point.multipliers)
        gradient[: program.gain.size] += program.gain.ravel()
        self.charged, self.unpaid, self.charges = beta[:0], np.zeros(0), np.zeros(0)
        if not program.problem.unbiased:
            penalty, biases = program.problem.bias_penalty, point.biases
            self.charges = program.bias_weights + penalty * (shares @ x)
            self.charged = beta + scaled(penalty * biases, shares)
            self.unpaid = beta @ x + self.charges * biases
            gradient += beta.T @ biases + shares.T @ (penalty * biases**2 / 2)
        self.free = np.flatnonzero(np.arange(program.columns) != program.fixed)
        self.gradient = gradient[self.free]

    @property
    def error(self) -> float:
        """The largest error of an equation."""
        return float(np.abs(np.concatenate((self.off, self.gradient, self.unpaid))).max())

    @property
    def residual(self) -> float:
        """The error, and the sum of the products that are to vanish."""
        return self.error + float(self.point.multipliers @ self.point.slacks)

    def solver(self, ratios: Floats, ridge: float, elimination: Elimination) -> Callable[[Floats], Step]:
        """Solver of the equations: given the right-hand sides of the multipliers, for ``s / c`` in `ratios`.

        Raises
        ------
        RuntimeError
            A matrix that is singular in floats.
        """
        fixed, charged = self.program.fixed, self.charged.shape[0]
        rows = without(sparse.csr_array(sparse.vstack([self.rows, self.charged])) if charged else self.rows, fixed)
        square = without(sparse.csr_array(without(self.curvature, fixed).T), fixed)
        below = -np.concatenate((ratios, self.charges))
        matrix, diagonals = _symmetric(square, -rows, below)
        ridged = matrix.copy()
        ridged.data[diagonals] += ridge * np.concatenate((square.diagonal() + 1.0, -np.ones(below.size)))
        solver = elimination.solver(ridged)

        def solve(right: Floats) -> Step:
            target = np.concatenate((self.gradient, right, self.unpaid))
            solved, lack = np.zeros(target.size), target
            for _ in range(REFINED):
                after = solved + solver(lack)
                rest = target - matrix @ after
                if not np.abs(rest).max() < np.abs(lack).max():
                    break
                solved, lack = after, rest
            moved, mass, bias = np.split(solved, (self.free.size, self.free.size + right.size))
            step = np.zeros(self.rows.shape[1])
            step[self.free] = moved
            return step, mass, bias if bias.size else np.zeros(self.program.k)

        return solve


def _symmetric(square: Rows, rows: Rows, below: Floats) -> tuple[sparse.csc_array, NDArray[np.intp]]:
    """The matrix ``[[square, rows.T], [rows, diag(below)]]``, and where its diagonal lies in its data."""
    n, size = square.shape[0], square.shape[0] + below.size
    each = np.arange(size)
    upper = np.repeat(each[:n], np.diff(square.indptr)), square.indices
    lower = np.repeat(each[n:], np.diff(rows.indptr)), rows.indices
    data = np.concatenate((square.data, rows.data, rows.data, np.zeros(n), below))
    first: NDArray[np.int64] = np.concatenate((upper[0], lower[0], lower[1], each))
    second: NDArray[np.int64] = np.concatenate((upper[1], lower[1], lower[0], each))
    matrix = sparse.csc_array((data, (first, second)), shape=(size, size))
    return matrix, np.flatnonzero(matrix.indices == np.repeat(each, np.diff(matrix.indptr)))


def _length(amounts: Floats, change: Floats) -> float:
    """The longest step up to 1 that keeps amounts from turning negative."""
    falling = change < 0
    return min(1.0, float((-amounts[falling] / change[falling]).min(initial=1.0)))
