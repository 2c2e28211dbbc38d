r"""Squared loss off a grid as one second-order cone program, its prior given or unknown, on Clarabel.

Without a prior the least of the largest losses over labels is the largest optimum over priors,

.. math:: \min_M \max_y \ell_y(M) = \max_p \min_M \sum_y p_y \ell_y(M),

since the right side is a linear program's dual for a fixed :math:`M`. The dual of the inner problem is concave in the
prior and the multipliers together, so the prior may be a variable (``docs/mathematics.md``, section 13).

*Variables* are the sums over labels up to each node :math:`j = 0 \ldots k` of the prior, :math:`F_j`, and of
:math:`b_y = p_y y + \beta_y` and :math:`c_y = p_y y^2/2 - \alpha_y`. An arc of the nodes :math:`i < j` has the weights
:math:`A = F_j - F_i + F_k / (E - 1)`, and :math:`B, C` alike. Its reduced cost over :math:`E - 1` at the output
:math:`v` is the parabola :math:`C - B v + A v^2 / 2`, nonnegative everywhere if and only if :math:`B^2 \le 2 A C`, a
rotated second-order cone. If outputs have ends, the parabola need only be above a line that is zero at an end and
rises into the interval: its slope is a nonnegative variable. The multiplier of the cone is the mass and the output of
the arc.

*Objective*: :math:`\sum_y b_y y - c_y - p_y y^2 / 2 - \beta_y^2 / (2 \lambda p_y)`, the last term, again a cone, only
at a finite bias penalty :math:`\lambda`.

*Arcs*: all intervals of up to 64 labels. Of more labels a coarser program, in which the sums are piecewise linear
between some of the nodes, points at the arcs of the next one, as in :mod:`optrand.solvers.reduced_dual._solver`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optrand.base._validation import Floats
from optrand.errors import SolverFailed
from optrand.model._problem import Dual, Line, Problem
from optrand.model._randomizer import Arcs, Indices
from optrand.solvers._clarabel import Clarabel, ConicProgram, ConicSolution
from optrand.solvers._feasibility import attainable_loss
from optrand.solvers.reduced_dual._arcs import (
    Level,
    Terms,
    all_arcs,
    arcs_near_path,
    coarsen_to,
    end_arcs,
    find_violated_arcs,
    unite_arcs,
)

Rows = sparse.csr_array


@dataclass(frozen=True)
class ConeOptions:
    """Tuning of :func:`solve_cones`.

    Attributes
    ----------
    tolerance, coarse : float
        Tolerances of Clarabel for the finest program and for coarser ones, which only point at arcs.
    fewest : int
        Largest number of labels whose intervals are all arcs.
    reach : int
        Steps from the path of cheapest intervals at which arcs are kept.
    rounds : int
        Largest number of times that violated arcs are added on a level.
    violation : float
        Reduced cost, in units of the loss, below which an arc is added.
    floor : float
        ``k`` times a lower bound of an unknown prior on coarse levels: if a prior is zero, no reduced cost shows which
        arcs are next.
    """

    tolerance: float = 1e-12
    coarse: float = 1e-7
    fewest: int = 64
    reach: int = 2
    rounds: int = 4
    violation: float = 1e-12
    floor: float = 1e-2


@dataclass(frozen=True, eq=False)
class ConeAnswer:
    """Answer of Clarabel to a :class:`ConeProgram`, in its units.

    Attributes
    ----------
    sums : (3, k + 1) array
        Sums of ``p``, ``b`` and ``c`` up to each node.
    masses, outputs, slacks : (n,) arrays
        Mass, times ``E - 1``, output, and reduced cost, over ``E - 1``, of each arc.
    status : str
        Clarabel's own word.
    """

    sums: Floats
    masses: Floats
    outputs: Floats
    slacks: Floats
    status: str

    @property
    def in_use(self) -> NDArray[np.bool_]:
        """Arcs of more mass than slack: one of the two vanishes at an optimum."""
        in_use: NDArray[np.bool_] = self.masses > self.slacks
        return in_use


@dataclass(frozen=True, eq=False)
class ConeProgram:
    """The program over some arcs.

    Parameters
    ----------
    problem : Problem
        Squared loss, a positive bias penalty, outputs on the line or an interval.
    first, end : (n,) arrays of int
        Nodes of each arc, as numbers of coarse nodes.
    prolongation : sparse (k + 1, m + 1) array
        Sums at all nodes from those at the coarse ones.
    unknown : bool
        Whether the prior is a variable. Otherwise it is the problem's.
    floor : float
        ``k`` times the lower bound of an unknown prior.

    Examples
    --------
    >>> import optrand
    >>> from optrand.solvers.reduced_dual._arcs import all_arcs
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> program = ConeProgram(
    ...     problem, *all_arcs(3), sparse.eye_array(4, format="csr"), unknown=True
    ... )
    >>> answer = program.read(Clarabel().solve(program.build()))
    >>> answer.sums[0].round(6).tolist()
    [0.0, 0.25, 0.75, 1.0]
    """

    problem: Problem
    first: Indices
    end: Indices
    prolongation: Rows
    unknown: bool = False
    floor: float = 0.0

    @cached_property
    def centre(self) -> float:
        """Middle of the labels, from which labels and outputs are measured."""
        return float(self.problem.labels[0] + np.ptp(self.problem.labels) / 2)

    @cached_property
    def unit(self) -> float:
        """Root of twice a loss that some closed form attains: the unit of labels and outputs."""
        # Of an unknown prior an even one: the largest loss is at most k times as large as the mean.
        even = np.full(self.problem.k, 1 / self.problem.k)
        problem = replace(self.problem, prior=even) if self.unknown else self.problem
        return math.sqrt(2 * attainable_loss(problem))

    @cached_property
    def labels(self) -> Floats:
        """Labels from the centre in this unit."""
        labels: Floats = (self.problem.labels - self.centre) / self.unit
        return labels

    @cached_property
    def box(self) -> tuple[float, float]:
        """Ends of the outputs likewise."""
        outputs = self.problem.outputs
        return (outputs.low - self.centre) / self.unit, (outputs.high - self.centre) / self.unit

    @property
    def inv_ratio_m1(self) -> float:
        """``1 / (E - 1)``."""
        return 1 / math.expm1(self.problem.epsilon)

    @cached_property
    def ends(self) -> list[tuple[float, float]]:
        """Finite ends of the outputs, each after the direction in which outputs lie, scaled to the end's distance."""
        ends = zip((1.0, -1.0), self.box, strict=True)
        return [(side / max(1.0, abs(end)), end) for side, end in ends if math.isfinite(end)]

    @cached_property
    def nodes(self) -> int:
        """Number of coarse nodes, without the first, whose sums are zero."""
        return int(self.prolongation.shape[1]) - 1

    def build(self) -> ConicProgram:
        """Return the minimisation. Variables are the three sums at each node, then slopes at ends, then charges."""
        n, m, k = self.first.size, self.nodes, self.problem.k
        charged = 0 if self.problem.unbiased else k
        size = 3 * m + n * len(self.ends) + charged
        variables = sparse.eye_array(size, format="csr")
        sums, charges = [variables[:m], variables[m : 2 * m], variables[2 * m : 3 * m]], variables[size - charged :]
        # A, B and C of each arc: those of its labels, and of all labels over E - 1. Sums at node 0 are no variables.
        nodes = sparse.eye_array(m + 1, format="csr")[:, 1:]
        arcs = nodes[self.end] - nodes[self.first] + self.inv_ratio_m1 * nodes[np.full(n, m)]
        weight, slope, cost = (arcs @ each for each in sums)
        # The lines at the ends count in the latter two.
        lines = variables[3 * m : size - charged]
        for number, (side, end) in enumerate(self.ends):
            line = side * lines[number * n : (number + 1) * n]
            slope, cost = slope + line, cost + end * line
        cones = [second_order(weight, slope, cost)]
        amounts = self.prolongation[1:, 1:] - self.prolongation[:-1, 1:]
        prior, slopes, costs = (amounts @ each for each in sums)
        # The charge of a bias, half the squared multiplier over penalty times prior, is a cone of its own.
        if charged:
            beta = slopes - sparse.diags_array(self.labels) @ prior
            cones.append(second_order(self.problem.bias_penalty * prior, beta, charges))
        # The bound of section 13 by the amounts of each label: -y**2 / 2 for its prior, y for its b and -1 for its c.
        gain = slopes.T @ self.labels - prior.T @ (self.labels**2 / 2) - costs.T @ np.ones(k)
        # A known prior fixes the first sums at all nodes. An unknown one is positive and sums to one.
        equal, equal_to, positive, lower = sums[0], self.before[1:], lines, np.zeros(lines.shape[0])
        if self.unknown:
            equal, equal_to = sums[0][m - 1 :], np.ones(1)
            positive, lower = sparse.vstack([lines, prior]), np.append(lower, np.full(k, self.floor / k))
        return ConicProgram(
            quadratic=sparse.csc_array((size, size)),
            cost=charges.T @ np.ones(charged) - gain,
            equal=sparse.csc_array(equal),
            equal_to=equal_to,
            less=sparse.csc_array(-positive),
            less_than=-lower,
            cones=sparse.csc_array(sparse.vstack(cones)),
        )

    @cached_property
    def before(self) -> Floats:
        """Given prior before each coarse node."""
        before: Floats = np.append(0.0, np.cumsum(self.problem.prior)) / self.problem.prior.sum()
        return before[_find_nodes(self.prolongation)]

    def read(self, answer: ConicSolution) -> ConeAnswer:
        """Return the sums at all nodes, and the masses and outputs of the arcs."""
        sums = np.zeros((3, self.nodes + 1))
        sums[:, 1:] = answer.x[: 3 * self.nodes].reshape(3, -1)
        # The rows of a cone are A + C, A - C and sqrt(2) B. In its multiplier C has the mass as its coefficient, and B
        # minus the mass times the output.
        high, low, side = answer.cone_dual[: self.first.size].T
        masses = np.maximum(high - low, 0.0)
        outputs = np.divide(-math.sqrt(2) * side, masses, out=np.zeros_like(masses), where=masses > 0)
        high, low, side = answer.cone_slack[: self.first.size].T
        # The difference of squares as a product, which keeps the digits of a slack near zero.
        slacks = np.maximum((high - np.hypot(low, side)) * (high + np.hypot(low, side)) / (2 * (high + low)), 0.0)
        return ConeAnswer(sums @ self.prolongation.T, masses, np.clip(outputs, *self.box), slacks, answer.status)

    def terms(self, before: Floats) -> Terms:
        """Return a level for the functions that price arcs."""
        return Terms(before, np.zeros(before.size), self.inv_ratio_m1, np.zeros(0), *self.box)

    def arcs(self, answer: ConeAnswer) -> Arcs:
        """Return the columns in use of the finest program."""
        used, bounds = answer.in_use, self.problem.outputs
        outputs = np.clip(self.centre + self.unit * answer.outputs[used], bounds.low, bounds.high)
        masses = self.inv_ratio_m1 * answer.masses[used]
        return Arcs(self.problem.k, self.first[used], self.end[used] - 1, outputs, masses)

    def dual(self, answer: ConeAnswer) -> tuple[Floats, Dual]:
        """Return the prior and the multipliers in the units of the problem."""
        prior, slopes, costs = np.diff(answer.sums)
        prior = np.maximum(prior, 0.0)
        prior = prior / prior.sum()
        # b_y = p_y y + beta_y and c_y = p_y y**2 / 2 - alpha_y, in units and from the centre of this program.
        beta = slopes - prior * self.labels
        # The charge of a multiplier is infinite at a label without weight.
        if not self.problem.unbiased:
            beta = np.where(prior > 0, beta, 0.0)
        alpha, beta = (prior * self.labels**2 / 2 - costs) * self.unit**2, beta * self.unit
        alpha = alpha - beta * self.centre
        if not (np.isfinite(alpha).all() and np.isfinite(beta).all()):
            raise SolverFailed("the multipliers of the cone program overflow")
        return prior, Dual(alpha, beta)


def second_order(weight: Any, slope: Any, cost: Any) -> Rows:
    """Return the rows of the cones ``slope**2 <= 2 * weight * cost``, one cone after the other."""
    # (A - C)**2 + 2 B**2 <= (A + C)**2 says that B**2 <= 2 A C. Then rows are sorted by cone.
    stacked = sparse.csr_array(-sparse.vstack([weight + cost, weight - cost, math.sqrt(2) * slope]))
    return sparse.csr_array(stacked[np.arange(stacked.shape[0]).reshape(3, -1).T.ravel()])


def solve_cones(
    problem: Problem, *, unknown: bool = False, options: ConeOptions = ConeOptions(), floor: float = 0.0
) -> tuple[ConeProgram, ConeAnswer, int]:
    """Solve a problem level by level, adding arcs until none is violated.

    Returns
    -------
    program : ConeProgram
        The finest program.
    answer : ConeAnswer
    calls : int
        Number of calls of Clarabel.
    """
    levels = _build_levels(problem, options)
    prolongations = [sparse.csr_array(sparse.eye_array(problem.k + 1))]
    for level in levels[1:]:
        prolongations.append(sparse.csr_array(prolongations[-1] @ _build_interpolation(level)))
    nodes, calls = all_arcs(levels[-1].before.size - 1), 0
    # From the coarsest level, whose arcs are all intervals, to the finest: each answer points at the next level's arcs.
    for number in range(len(levels) - 1, -1, -1):
        prolongation, finest = prolongations[number], number == 0
        here = floor if finest else options.floor
        engine = Clarabel(options.tolerance if finest else options.coarse)
        for _ in range(options.rounds):
            program = ConeProgram(problem, *nodes, prolongation, unknown, here)
            answer = program.read(engine.solve(program.build()))
            calls += 1
            sums = answer.sums[:, _find_nodes(prolongation)]
            # The answer of a coarse level only points at arcs, so that rough ones are enough there.
            violation = options.violation if finest else 1e-3
            more = unite_arcs(nodes, find_violated_arcs(program.terms(sums[0]), sums[1], sums[2], -violation))
            if more[0].size == nodes[0].size:
                break
            nodes = more
        if not finest:
            sums = answer.sums[:, _find_nodes(prolongations[number - 1])]
            nodes = arcs_near_path(program.terms(sums[0]), sums[1], sums[2], options.reach)
            # With bounds or a bias, arcs near the path may hold no randomizer. Those of the two ends do if any do.
            if not (problem.unbiased and isinstance(problem.outputs, Line)):
                nodes = unite_arcs(nodes, end_arcs(sums.shape[1] - 1))
    return program, answer, calls


def only(program: ConeProgram, used: NDArray[np.bool_], options: ConeOptions) -> tuple[ConeProgram, ConeAnswer]:
    """Solve the finest program again over some of its arcs, without a lower bound of the prior."""
    few = replace(program, first=program.first[used], end=program.end[used], floor=0.0)
    return few, few.read(Clarabel(options.tolerance).solve(few.build()))


def _build_levels(problem: Problem, options: ConeOptions) -> list[Level]:
    """Return all levels, the finest first, by the number of labels, whatever the prior is."""
    gaps = np.concatenate(([0.0], np.diff(problem.labels), [0.0]))
    return coarsen_to(Level(np.linspace(0.0, 1.0, problem.k + 1), gaps), options.fewest)


def _build_interpolation(level: Level) -> Rows:
    """Return the matrix that takes sums of a level to those of the finer one."""
    size = level.left.size
    rows = np.tile(np.arange(size), 2)
    columns, shares = np.append(level.left, level.left + 1), np.append(1 - level.share, level.share)
    matrix = sparse.csr_array((shares, (rows, columns)), shape=(size, level.before.size))
    matrix.eliminate_zeros()
    return matrix


def _find_nodes(prolongation: Rows) -> Indices:
    """Return the node of the problem at which each coarse node lies, where interpolation takes its value as it is."""
    nodes: Indices = prolongation.argmax(axis=0)
    return nodes
