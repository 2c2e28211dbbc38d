r"""From a cone solver's answer to the last digit: a primal-dual interior-point method for the minimax program.

A general cone solver leaves masses right to some six digits, and a largest loss is as wrong as the masses are. With
:math:`h` the reduced costs of the arcs at their best outputs and the prior
(:mod:`optrand.solvers.flow.minimax_program`), multipliers :math:`c` and slacks :math:`s`, Newton's steps go to

.. math:: h(\pi) = s, \qquad \nabla_\pi L = 0, \qquad c_j s_j \to 0,

first with a floor under the prior, where the arcs in use are few and part from the others by orders of magnitude, and
then on those alone without the floor.

A reduced cost has the gradient :math:`(1, -v, v^2/2)` by :math:`(A, B, P)`, and of second derivatives only that of
:math:`-B^2 / 2P`, which is :math:`-w w' / P` with :math:`w = (0, 1, -v)`. A price of bias is the least over :math:`q`
of :math:`\lambda p q^2 / 2 - \beta q`, so that nothing is ever divided by a prior that vanishes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from optrand.base.validation import Floats
from optrand.errors import SolverFailed
from optrand.solvers.flow.minimax_program import TINY, MinimaxPoint, MinimaxProgram
from optrand.solvers.flow.nodes import Rows, beside, composed

__all__ = ["used"]

PLAUSIBLE = (1e-3, 1e-6, 0.0)
"""Arcs whose mass is a smaller share of their reduced cost are left out at once, if the rest will do.

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


class Care(NamedTuple):
    """Newton options: how a step's equations are solved, and until when.

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


QUICK = Care(0.0, 1e-10, 1e-14)
"""Sparse however many arcs there are; enough to see which are in use."""

FIRM = Care(0.1, 1e-13, 1e-20)
"""Dense if there are many more arcs than labels; right to the last digit."""

Step = tuple[Floats, Floats, Floats]
"""Changes of the potentials, of multipliers, and of the biases."""


def used(program: MinimaxProgram, point: MinimaxPoint) -> tuple[MinimaxProgram, MinimaxPoint]:
    """The arcs in use, and the exact answer on them without a floor under the prior: only a claim.

    Which arcs these are is told with the floor of `program`; one that is too high may show the wrong ones.

    Raises
    ------
    SolverFailed
        If no arc looks in use.
    """
    # Where floats give out at a large epsilon, what was found before stands.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for share in PLAUSIBLE:
            some, near = _only(program, point, share)
            some, near = _only(some, settled(some, _centred(near), QUICK), share)
            near = settled(some, _centred(near), FIRM)
            if _Equations(some, near).error < EXACT:
                break
        some, near = _only(some, near, 1.0)
        free = replace(some, floor=0.0)
        return _only(free, settled(free, _centred(near, CENTRED * program.floor), FIRM), 1.0)


def _only(program: MinimaxProgram, point: MinimaxPoint, share: float) -> tuple[MinimaxProgram, MinimaxPoint]:
    """The program and the point on the arcs whose mass is more than a share of their reduced cost."""
    kept = point.multipliers[: program.n] > share * point.slacks[: program.n]
    if not kept.any():
        raise SolverFailed("no column looks in use in the cone solver's answer: epsilon is too large for its scaling")
    every = np.concatenate((kept, np.ones(program.k, dtype=bool), np.tile(kept, len(program.ends))))
    fewer = replace(point, multipliers=point.multipliers[every], slacks=point.slacks[every])
    return program.only(kept), fewer


def settled(program: MinimaxProgram, point: MinimaxPoint, care: Care) -> MinimaxPoint:
    """Take an interior point's steps until the products vanish; the best found where floats give out first."""
    best, least, before, idle = point, np.inf, np.inf, 0
    for _ in range(STEPS):
        equations = _Equations(program, point)
        gap = float(point.multipliers @ point.slacks)
        here = equations.error + gap
        if here < least:
            best, least = point, here
        idle = 0 if here < IDLE * before else idle + 1
        if not np.isfinite(here) or gap < care.gap or idle == PATIENCE:
            break
        before = here
        try:
            point = _step(equations, care)
        except RuntimeError:
            break
    return best


def _centred(point: MinimaxPoint, least: float = 0.0) -> MinimaxPoint:
    """No product of multiplier and slack below `least` or far below the others: the smaller of the two is raised."""
    products = point.multipliers * point.slacks
    lift = np.maximum(max(least, CENTRED * float(products.mean())) / products, 1.0)
    return replace(
        point,
        multipliers=np.where(point.bound, point.multipliers, point.multipliers * lift),
        slacks=np.where(point.bound, point.slacks * lift, point.slacks),
    )


def _step(equations: _Equations, care: Care) -> MinimaxPoint:
    """One predictor and corrector step."""
    point = equations.point
    multipliers, slacks = point.multipliers, point.slacks
    solve = equations.solver(slacks / multipliers, care)

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
    return MinimaxPoint(
        point.potentials + length * moved[: point.potentials.size].reshape(-1, 3),
        np.maximum(multipliers + length * mass, TINY),
        np.maximum(slacks + length * slack, TINY),
        point.biases + length * bias,
    )


class _Equations:
    """Newton's equations at one point: potentials but for the total prior, leans, multipliers, and biases at a price.

    With ``H`` the second derivatives, ``J`` the gradients of the reduced costs, the prior and the leans, and ``Q`` that
    of the prices of bias by the biases,

        H dx - J' dc - Q' dq = gradient,    -J dx - (s / c) dc = ...,    -Q dx - (lam p) dq = ...
    """

    def __init__(self, program: MinimaxProgram, point: MinimaxPoint) -> None:
        self.program, self.point = program, point
        nodes, n, k, ends = program.nodes, program.n, program.k, program.ends
        columns = 3 * k + n * len(ends)
        leans = point.slacks[n + k :]
        costs, outputs, weights = program.curves(point.potentials, leans)
        _, slopes, self.prior = program.amounts(point.potentials).T
        self.off = np.concatenate((costs, self.prior - program.floor / k, leans)) - point.slacks
        every, none, nowhere = np.ones(n), np.zeros(n), np.zeros(k)
        towards = [_diagonal(side * (end - outputs)) for side, end in ends]
        rows = [
            beside(composed(nodes.arcs, every, -outputs, outputs**2 / 2), *towards, columns=columns),
            beside(composed(nodes.labels, nowhere, nowhere, np.ones(k)), columns=columns),
            sparse.eye_array(n * len(ends), columns, k=3 * k, format="csr"),
        ]
        self.rows: Rows = sparse.csr_array(sparse.vstack(rows))
        sides = [_diagonal(side * every) for side, _ in ends]
        curved = beside(composed(nodes.arcs, none, every, -outputs), *sides, columns=columns)
        self.curvature: Rows = sparse.csr_array(curved.T @ _diagonal(point.multipliers[:n] / weights) @ curved)
        gradient = np.asarray(self.rows.T @ point.multipliers)
        gradient[: 3 * k] += program.gain.ravel()
        self.charged: Rows = sparse.csr_array((0, columns))
        self.unpaid = np.zeros(0)
        if not program.problem.unbiased:
            penalty, biases = program.problem.bias_penalty, point.biases
            pull = program.labels - penalty * biases
            self.charged = beside(composed(nodes.labels, nowhere, np.ones(k), -pull), columns=columns)
            self.unpaid = slopes - self.prior * pull
            price = biases * (penalty * biases / 2 - program.labels)
            gradient[: 3 * k] += composed(nodes.labels, nowhere, biases, price).T @ np.ones(k)
        self.free = np.arange(columns) != 3 * k - 1
        self.gradient = gradient[self.free]

    @property
    def error(self) -> float:
        """The largest error of an equation."""
        return float(np.abs(np.concatenate((self.off, self.gradient, self.unpaid))).max())

    def solver(self, ratios: Floats, care: Care) -> Callable[[Floats], Step]:
        """Solver of the equations: given the right-hand sides of the multipliers, for ``s / c`` in `ratios`.

        Raises
        ------
        RuntimeError
            A matrix that is singular in floats.
        """
        program, free = self.program, np.flatnonzero(self.free)
        rows = sparse.csr_array(-sparse.vstack([self.rows, self.charged]))[:, free]
        charges = program.problem.bias_penalty * self.prior if self.unpaid.size else self.unpaid
        square, below = self.curvature[free][:, free], _diagonal(-np.concatenate((ratios, charges)))
        matrix = sparse.block_array([[square, sparse.csr_array(rows.T)], [rows, below]], format="csc")
        ridge = care.ridge * np.concatenate((square.diagonal() + 1.0, -np.ones(below.shape[0])))
        factors = splu(
            sparse.csc_array(matrix + _diagonal(ridge)),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=care.pivot,
            options={"SymmetricMode": True},
        )

        def solve(right: Floats) -> Step:
            target = np.concatenate((self.gradient, right, self.unpaid))
            solved, lack = np.zeros(target.size), target
            for _ in range(REFINED):
                after = solved + factors.solve(lack)
                rest = target - matrix @ after
                if not np.abs(rest).max() < np.abs(lack).max():
                    break
                solved, lack = after, rest
            moved, mass, bias = np.split(solved, (free.size, free.size + right.size))
            step = np.zeros(self.free.size)
            step[free] = moved
            return step, mass, bias if bias.size else np.zeros(program.k)

        return solve


def _diagonal(values: Floats) -> Rows:
    return sparse.csr_array(sparse.diags_array(values))


def _length(amounts: Floats, change: Floats) -> float:
    """The longest step up to 1 that keeps amounts from turning negative."""
    falling = change < 0
    return min(1.0, float((-amounts[falling] / change[falling]).min(initial=1.0)))
