r"""From a solver's answer to the last digit: a primal-dual interior-point method on the arcs that may be in use.

A general cone solver stops when its own tolerances are met, with some ten digits of the loss and no say in which of two
neighbouring arcs is in use. From its answer a few of Newton's steps on the optimality conditions

.. math:: \text{reduced cost}_j(\pi) = \text{slack}_j, \qquad \nabla_\pi L = 0, \qquad c_j \, \text{slack}_j \to 0

tell the arcs in use from the others by twenty orders of magnitude; and a few more on the arcs in use alone, whose
reduced costs must vanish, make masses and potentials exact to rounding. A step costs as much as factoring a matrix with
the sparsity of the flow (:mod:`optrand.solvers.flow.interior_point`): milliseconds at a thousand labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from optrand.base.validation import Floats
from optrand.solvers.flow.program import FlowPoint, FlowProgram

__all__ = ["NodeSystem", "polished", "settled", "used"]

PLAUSIBLE = (-3.0, -6.0, -np.inf)
"""Arcs whose mass is so many orders of magnitude below their reduced cost are left out at once, if the rest will do.

Where labels are clustered, masses far below the engine's tolerance may be needed.
"""

EXACT = 1e-10
"""Residuals of an answer that needs no further arcs, in units of the program."""

DAMPING = 0.995
"""Share of the way to the boundary that a step may go."""

DECIDED = 4.0
"""An arc is in use, or not, when its mass and reduced cost are so many orders of magnitude apart."""

PATIENCE = 2
"""Steps in a row that bring nothing; where outputs reach an end of their interval the first may not."""

STEPS = 60
"""More steps than that mean that the equations have become singular in floats."""

CENTRED = 0.03
"""No product of mass and slack starts below this share of their mean."""

RIDGE, FAINT_RIDGE = 1e-13, 1e-30
"""Potentials that no arc in use, or no arc at all, determines stay where they are."""

STIFFNESS = 1e8
"""A reduced cost of the inverse of this share of the spread weighs as much as a whole mass."""


def used(program: FlowProgram, point: FlowPoint) -> tuple[FlowProgram, FlowPoint]:
    """The arcs in use, and the exact answer on them: the best that was found, where floats give out.

    The engine's answer stays where nothing is better.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return _used(program, point)


def _used(program: FlowProgram, point: FlowPoint) -> tuple[FlowProgram, FlowPoint]:
    found, least = (program, point), _residual(program, point)
    for plausible in PLAUSIBLE:
        some, near = _only(program, point, plausible)
        if not some.n:
            continue
        whole = some, settled(some, near)
        some, near = _only(*whole, 0.0)
        if not some.n:
            continue
        near = polished(some, near)
        error = _error(some, near) if (near.masses >= 0).all() else np.inf
        if not error < np.inf:
            # Where many arcs will do, as between labels next to prior zero, Newton's steps may ask for negative masses.
            unsettled = _residual(*whole)
            if unsettled < least:
                found, least = whole, unsettled
        if error < least:
            # What was left out must not be missed.
            error = max(error, -float(program.reduced_costs(near.potentials)[0].min()))
        if error < least:
            found, least = (some, near), error
        if error < EXACT:
            break
    return found


def _residual(program: FlowProgram, point: FlowPoint) -> float:
    """Residual of a point with masses and slacks: rows that miss one, and masses at a cost."""
    outputs = program.reduced_costs(point.potentials)[1]
    gradient = _gradient(program, point.potentials, point.masses, outputs)
    return float(np.abs(gradient).max() + point.masses @ point.slacks)


def _error(program: FlowProgram, point: FlowPoint) -> float:
    """The largest residual of the equations that arcs in use satisfy."""
    true, outputs = program.reduced_costs(point.potentials)
    gradient = _gradient(program, point.potentials, point.masses, outputs)
    return float(max(np.abs(true).max(), np.abs(gradient).max()))


def _only(program: FlowProgram, point: FlowPoint, complementarity: float) -> tuple[FlowProgram, FlowPoint]:
    """The program and the point on the arcs that look at least so much in use."""
    kept = point.complementarity > complementarity
    return (
        FlowProgram(program.problem, program.first[kept], program.last[kept]),
        FlowPoint(point.potentials, point.masses[kept], point.slacks[kept]),
    )


def settled(program: FlowProgram, point: FlowPoint) -> FlowPoint:
    """Take Newton's steps until every arc is in use or not; the best point found where floats give out first."""
    system = NodeSystem(program)
    best, error = point, np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        point = _centred(program, point)
        for _ in range(STEPS):
            equations = _Equations.at(program, point)
            gap = float(point.masses @ point.slacks)
            here = equations.residual + gap
            if here < error:
                best, error = point, here
            decided = gap < 1e-16 and (np.abs(point.complementarity) > DECIDED).all()
            if decided or gap < 1e-22 or not np.isfinite(here):
                break
            try:
                point = _stepped(program, system, point, equations)
            except (RuntimeError, np.linalg.LinAlgError):
                break
    return best


def _centred(program: FlowProgram, point: FlowPoint) -> FlowPoint:
    """The true reduced costs where they are clear, and no product of mass and slack far below the others."""
    true = program.reduced_costs(point.potentials)[0]
    noise = np.abs(true - point.slacks).max()
    slacks = np.where(true > 10 * noise, true, point.slacks)
    mean = float(point.masses @ slacks) / program.n
    return replace(
        point,
        slacks=np.maximum(slacks, CENTRED * mean / point.masses),
        masses=np.maximum(point.masses, CENTRED * mean / slacks),
    )


@dataclass(frozen=True, eq=False)
class _Equations:
    """Residuals at a point: of the slacks, and of the gradient; and the arcs' outputs."""

    off: Floats
    outputs: Floats
    gradient: Floats

    @classmethod
    def at(cls, program: FlowProgram, point: FlowPoint) -> _Equations:
        true, outputs = program.reduced_costs(point.potentials)
        return cls(point.slacks - true, outputs, _gradient(program, point.potentials, point.masses, outputs))

    @property
    def residual(self) -> float:
        """The largest error."""
        return float(max(np.abs(self.off).max(), np.abs(self.gradient).max()))


def _stepped(program: FlowProgram, system: NodeSystem, point: FlowPoint, equations: _Equations) -> FlowPoint:
    """The point after one predictor and corrector step."""
    masses, slacks = point.masses, point.slacks
    off, outputs = equations.off, equations.outputs
    # A reduced cost may be off by this much for each unit of mass that is about to change: without it the arcs in use
    # would weigh so much that the curvature beside them is lost to rounding.
    give = _sizes(program, outputs) / (STIFFNESS * np.maximum(masses, masses.mean()))
    pivots = slacks + give * masses
    solve = system.solver(_weights(program, masses / pivots, outputs, masses), ridge=FAINT_RIDGE)

    def direction(complementarity: Floats) -> tuple[Floats, Floats, Floats]:
        pull = (masses * off - complementarity) / pivots
        moved = solve(-equations.gradient - program.gather(np.column_stack((pull, pull * outputs))))
        a, b = program.prices(moved).T
        cost = -off - (a + outputs * b)
        mass = -(complementarity + masses * cost) / pivots
        return moved, cost + give * mass, mass

    _, slack, mass = direction(masses * slacks)
    length = min(_length(slacks, slack), _length(masses, mass))
    mean = float(masses @ slacks) / program.n
    reached = float((masses + length * mass) @ (slacks + length * slack)) / program.n
    centring = min(1.0, max(reached / mean, 0.0)) ** 3
    moved, slack, mass = direction(masses * slacks + length**2 * mass * slack - centring * mean)
    length = min(_length(slacks, slack), _length(masses, mass))
    length = 1.0 if length == 1.0 else DAMPING * length
    tiny = np.finfo(float).tiny
    return FlowPoint(
        point.potentials + length * moved,
        np.maximum(masses + length * mass, tiny),
        np.maximum(slacks + length * slack, tiny),
    )


def polished(program: FlowProgram, point: FlowPoint, *, rounds: int = 12) -> FlowPoint:
    """Newton's steps on arcs that are all in use: their reduced costs vanish, and the flow is conserved.

    Where the multipliers are not unique they stay near those of `point`.
    """
    system = NodeSystem(program)
    best, error, worse = point, np.inf, 0
    for _ in range(rounds):
        true, outputs = program.reduced_costs(point.potentials)
        gradient = _gradient(program, point.potentials, point.masses, outputs)
        here = _error(program, point)
        if here < error:
            best, error, worse = point, here, 0
        else:
            worse += 1
        if not here < np.inf or worse == PATIENCE:
            break
        weights = STIFFNESS * point.masses / _sizes(program, outputs)
        try:
            solve = system.solver(_weights(program, weights, outputs, point.masses), ridge=RIDGE)
            moved = solve(program.gather(np.column_stack((weights * true, weights * true * outputs))) - gradient)
        except (RuntimeError, np.linalg.LinAlgError):
            break
        a, b = program.prices(moved).T
        masses = point.masses - weights * (true - a - outputs * b)
        point = FlowPoint(point.potentials + moved, masses, point.slacks)
    return best


def _gradient(program: FlowProgram, potentials: Floats, masses: Floats, outputs: Floats) -> Floats:
    """Gradient of the Lagrangian by the potentials: rows that miss one, and biases."""
    flow = program.gather(np.column_stack((masses, masses * outputs)))
    return flow - program.gain + program.charge_gradient(potentials)


def _weights(program: FlowProgram, weights: Floats, outputs: Floats, masses: Floats) -> Floats:
    """The second derivatives: of reduced costs that bind, and of those that curve where outputs are free."""
    low, high = program.box
    free = (outputs > low) & (outputs < high)
    curved = np.where(free, masses / program.weights, 0.0)
    return np.column_stack((weights, weights * outputs, weights * outputs**2 + curved))


def _sizes(program: FlowProgram, outputs: Floats) -> Floats:
    """Cost of each arc at its output: the size of the numbers that its reduced cost is a difference of."""
    sizes: Floats = program.spreads + program.weights * (outputs - program.means) ** 2 / 2
    return np.maximum(sizes, np.finfo(float).eps)


def _length(amounts: Floats, change: Floats) -> float:
    """The longest step up to 1 that keeps amounts from turning negative."""
    falling = change < 0
    return min(1.0, float((-amounts[falling] / change[falling]).min(initial=1.0)))


PAIRS = ((0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 2))
"""Row and column of a symmetric two by two matrix, and where its three numbers hold that entry."""

OWN_RIDGE = 1e-14
"""Every diagonal entry grows by this share of itself: where arcs in use depend on each other the matrix is singular."""


class NodeSystem:
    """The matrix ``sum_j w_j [A_j, B_j]' [A_j, B_j]`` over potentials, for weights that change and arcs that do not.

    Parameters
    ----------
    program : FlowProgram
        Its arcs, and its charges on bias, which add to the ``beta`` side.
    """

    def __init__(self, program: FlowProgram) -> None:
        self.program = program
        inner = program.k - 1
        left, right = program.first - 1, program.last
        self.linked = (left >= 0) & (right < inner)
        nodes = np.arange(inner)
        keys = [nodes * (inner + 1), left[self.linked] * inner + right[self.linked]]
        if program.charges is not None:
            keys.append(nodes[:-1] * inner + nodes[1:])
        self.blocks = np.unique(np.concatenate(keys))
        self.diagonal, self.links = (np.searchsorted(self.blocks, key) for key in keys[:2])
        self.neighbours = np.searchsorted(self.blocks, nodes[:-1] * inner + nodes[1:])
        self.order: NDArray[np.intp] | None = None

    @cached_property
    def _entries(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Row, column and source of every entry of the full matrix."""
        row, column = np.divmod(self.blocks, self.program.k - 1)
        above = np.flatnonzero(row != column)
        rows = np.concatenate((row, column[above]))
        columns = np.concatenate((column, row[above]))
        source = np.concatenate((np.arange(row.size), above))
        parts = [(2 * rows + i, 2 * columns + j, 3 * source + at) for i, j, at in PAIRS]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))  # type: ignore[return-value]

    def _arrange(self) -> None:
        """Lay out the entries by columns, in the order of elimination once that is known."""
        rows, columns, source = self._entries
        if self.order is not None:
            place = np.argsort(self.order)
            rows, columns = place[rows], place[columns]
        by_column = np.lexsort((rows, columns))
        counts = np.bincount(columns, minlength=2 * self.program.k - 2)
        self.rows, self.starts = rows[by_column], np.concatenate(([0], np.cumsum(counts)))
        self.source, self.counts = source[by_column], counts

    def _factor(self, entries: Floats, scale: Floats) -> Callable[[Floats], Floats]:
        """Solve with the inner part; the order of elimination is chosen once."""
        size = scale.size

        def matrix(scale: Floats) -> sparse.csc_array:
            data = entries[self.source] * scale[self.rows] * np.repeat(scale, self.counts)
            return sparse.csc_array((data, self.rows, self.starts), shape=(size, size))

        options = {"SymmetricMode": True}
        if self.order is None:
            self._arrange()
            found = splu(matrix(scale), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
            self.order = np.argsort(found.perm_c)
            self._arrange()
        order = self.order
        factors = splu(matrix(scale[order]), permc_spec="NATURAL", diag_pivot_thresh=0.0, options=options)

        def solve(right: Floats) -> Floats:
            solved = np.empty_like(right)
            solved[order] = factors.solve((scale * right.T).T[order])
            return (scale * solved.T).T

        return solve

    def solver(self, weights: Floats, *, ridge: float = 0.0) -> Callable[[Floats], Floats]:
        """Solver of the equations for arc weights ``(aa, ab, bb)``, shape ``(n, 3)``, and right sides ``(k, 2)``.

        A `ridge`, as a share of the largest entries, decides what the arcs leave open: it is not moved.

        Raises
        ------
        RuntimeError, numpy.linalg.LinAlgError
            A matrix that is singular in floats.
        """
        program, k = self.program, self.program.k
        entries = np.zeros((self.blocks.size, 3))
        border, corner = np.empty((k - 1, 3)), np.empty(3)
        for at in range(3):
            amount = weights[:, at]
            ends = [np.bincount(nodes, amount, k + 1) for nodes in (program.first, program.last + 1)]
            entries[self.diagonal, at] = (ends[0] + ends[1])[1:-1]
            entries[:, at] -= np.bincount(self.links, amount[self.linked], self.blocks.size)
            toll = program.totals * amount
            through = [np.bincount(nodes, toll, k + 1) for nodes in (program.first, program.last + 1)]
            border[:, at], corner[at] = (through[1] - through[0])[1:-1], program.totals @ toll
        if program.charges is not None:
            charges = program.charges / program.excess**2
            entries[self.diagonal, 2] += charges[:-1] + charges[1:]
            entries[self.neighbours, 2] -= charges[1:-1]
            border[-1, 2] -= program.excess * charges[-1]
            corner[2] += program.excess**2 * charges[-1]
        entries[self.diagonal] *= 1 + np.array([OWN_RIDGE, 0.0, OWN_RIDGE])
        entries[self.diagonal] += ridge * entries[self.diagonal].max(axis=0) * np.array([1.0, 0.0, 1.0])
        own = entries[self.diagonal][:, (0, 2)].ravel()
        if not (own > 0).all():
            raise np.linalg.LinAlgError("a node's own weight has been lost to rounding")
        scale = 1 / np.sqrt(own)
        inner = self._factor(entries.ravel(), scale)
        sides = np.zeros((2 * k - 2, 2))
        square = np.empty((2, 2))
        for i, j, at in PAIRS:
            sides[i::2, j], square[i, j] = border[:, at], corner[at]
        spread = inner(sides)
        reduced = square - sides.T @ spread

        def once(right: Floats) -> Floats:
            middle = inner(right[:-1].ravel())
            last = np.linalg.solve(reduced, right[-1] - sides.T @ middle)
            return np.concatenate(((middle - spread @ last).reshape(-1, 2), last[np.newaxis]))

        def solve(right: Floats) -> Floats:
            first = once(right)
            return first + once(right - self._product(weights, first))

        return solve

    def _product(self, weights: Floats, potentials: Floats) -> Floats:
        a, b = self.program.prices(potentials).T
        pulls = np.column_stack((weights[:, 0] * a + weights[:, 1] * b, weights[:, 1] * a + weights[:, 2] * b))
        return self.program.gather(pulls) + self.program.charge_gradient(potentials)
