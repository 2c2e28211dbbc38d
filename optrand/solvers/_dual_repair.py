r"""Multipliers that certify against *all* columns on a grid where bias is allowed, from a good randomizer.

There the multipliers of a restricted program are seldom unique, and those of a solver may price other columns below
zero, though the randomizer is optimal. Given the randomizer, the multipliers of its biases are their charges,
:math:`\beta_y = -\lambda p_y b_y`. Let :math:`c_y(v) = p_y g(v, y) - \beta_y v`. For the others complementary slackness
says where to look: an output :math:`v` in use with the column of :math:`S` requires :math:`c_y(v) \leq \alpha_y` for
the labels in :math:`S` and :math:`c_y(v) \geq \alpha_y` for all others, which confines every :math:`\alpha_y` to an
interval. The linear program is then

.. math:: \max_{\alpha, m \leq 0} \sum_y \alpha_y + \frac{k}{E + k - 1} m \quad\text{s.t.}\quad
          \sum_y s_y (c_y(v) - \alpha_y) \geq m \text{ for every column } (s, v),

solved by cutting planes: price, add the columns of negative reduced cost, solve again, by an interior-point method,
whose central answers need two or three rounds where vertices would need many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optrand.base._validation import Floats
from optrand.certificates._bound import lower_bound
from optrand.errors import SolverFailed
from optrand.model._problem import Dual, Problem
from optrand.model._randomizer import Arcs, Randomizer, Staircase
from optrand.solvers._gaps import price
from optrand.solvers.backends._cones import Clarabel, ConicProgram


@dataclass(frozen=True)
class RepairOptions:
    """Tuning of :func:`repair`, on random grids of up to 60 labels and five losses.

    Attributes
    ----------
    negligible : float
        Columns with less mass (times ``E``) do not confine the multipliers.
    independent : float
        Columns in use that differ by less than this share count as one.
    largest : int
        Multipliers stay as they are if a table of all columns would have more entries.
    slack, widening : float
        Slack of multipliers, in units of the loss, from what slackness requires; the factor by which it is widened.
    least_stake : float
        Multipliers of labels that can cost less than a unit may leave their interval by less, down to this share.
    """

    negligible: float = 1e-5
    independent: float = 1e-10
    largest: int = 1 << 23
    slack: float = 1e-9
    widening: float = 30.0
    least_stake: float = 1e-4


OPTIONS = RepairOptions()


def repair(problem: Problem, columns: Staircase, dual: Dual, *, gap: float, rounds: int = 40) -> Dual:
    """Return the best multipliers found, starting from `dual`.

    Parameters
    ----------
    problem : Problem
        On a grid, with a finite bias penalty.
    columns : Staircase
        A feasible randomizer, best an optimal one.
    dual : Dual
        Any multipliers, best of a gap that is small.
    gap : float
        Relative gap at which to stop.
    rounds : int
        Largest number of linear programs, each of ``k + 1`` variables.

    Returns
    -------
    Dual
        Never worse than `dual`; the same if the randomizer's table would have too many entries.
    """
    randomizer = randomizer_of(problem, columns)
    value = problem.sign * problem.value(randomizer)
    unit = abs(value) or 1.0
    best, bound = dual, lower_bound(problem, dual)
    target = value - gap * unit
    used = columns.only(columns.masses * math.exp(problem.epsilon) > OPTIONS.negligible)
    if bound >= target or not used.masses.size or problem.k * columns.masses.size > OPTIONS.largest:
        return dual
    cuts = _Cuts(problem, used, dual, randomizer.biases, unit)
    for _ in range(rounds):
        for candidate in cuts.candidates:
            reached = lower_bound(problem, candidate)
            if reached > bound:
                best, bound = candidate, reached
        # Enough, or no multipliers that belong to these biases can prove more.
        if bound >= target or bound >= cuts.limit - 0.1 * gap * unit:
            break
        cuts.tighten()
    return best


def _snap(problem: Problem, used: Staircase, dual: Dual) -> Dual:
    """Return the multipliers with the nearest `alpha` to that of `dual` at which columns in use cost nothing."""
    weights = np.where(used.members, 1.0, math.exp(-problem.epsilon))
    table = problem.prior[:, np.newaxis] * problem.loss_table(used.outputs)
    reduced = table - dual.alpha[:, np.newaxis] - dual.beta[:, np.newaxis] * used.outputs
    # Optimal columns have reduced cost zero. Central multipliers miss that by rounding of the cone solver.
    change = np.linalg.lstsq(weights.T, (weights * reduced).sum(axis=0), rcond=OPTIONS.independent)[0]
    return Dual(dual.alpha + change, dual.beta)


def randomizer_of(problem: Problem, arcs: Staircase | Arcs) -> Randomizer:
    """Return the randomizer with these columns."""
    if isinstance(arcs, Arcs):
        return Randomizer.of_arcs(problem.labels, arcs, problem.epsilon)
    return Randomizer(problem.labels, *arcs.table(math.exp(problem.epsilon)), problem.epsilon)


class _Cuts:
    """The linear program over multipliers, growing by the columns of negative reduced cost.

    Variables are sums of multipliers up to each label: of a set of neighbours only the ends then count. Columns are
    scaled to 1 for their members and ``1 / E`` for the others.
    """

    def __init__(self, problem: Problem, used: Staircase, dual: Dual, biases: Floats, unit: float) -> None:
        self.problem, self.used, self.unit = problem, used, unit
        self.least = math.exp(-problem.epsilon)
        self.current: Dual | None = dual
        self.slack, self.limit = OPTIONS.slack, math.inf
        self.beta = -problem.bias_weights * biases
        # What these multipliers add to the bound, whatever alpha is.
        self.fixed = float(self.beta @ (problem.labels + biases / 2))
        label, column = _decisive_pairs(used)
        # Reduced costs of a label at its own columns are to be negative, at the others positive.
        sign = np.where(used.members[label, column], -1.0, 1.0)
        costs = self._costs(used.outputs)
        self.confined, self.tight = _differences(sign, label, problem.k), sign * costs[label, column]
        self.give = np.clip(costs.max(axis=1), OPTIONS.least_stake, 1.0)[label]
        self.rows: list[sparse.csr_array] = []
        self.limits: list[Floats] = []
        self._add(used.members, used.outputs)

    def _costs(self, outputs: Floats) -> Floats:
        table = self.problem.prior[:, np.newaxis] * self.problem.loss_table(outputs)
        costs: Floats = (table - self.beta[:, np.newaxis] * outputs) / self.unit
        return costs

    def _add(self, members: NDArray[np.bool_], outputs: Floats) -> None:
        """Add rows that keep the reduced costs of columns from being negative."""
        steps = members.astype(np.int8)
        steps[:-1] -= members[1:]
        label, row = np.nonzero(steps)
        k, rows = steps.shape[0], np.arange(steps.shape[1])
        values = np.concatenate(((1 - self.least) * steps[label, row], np.full(rows.size, self.least)))
        where = np.concatenate((row, rows)), np.concatenate((label, np.full(rows.size, k - 1)))
        self.rows.append(sparse.csr_array((values, where), shape=(rows.size, k)))
        self.limits.append((np.where(members, 1.0, self.least) * self._costs(outputs)).sum(axis=0))

    @property
    def candidates(self) -> list[Dual]:
        """Multipliers of the last program, and the nearest ones at which the columns in use have reduced cost zero."""
        if self.current is None:
            return []
        return [self.current, _snap(self.problem, self.used, replace(self.current, beta=self.beta))]

    def tighten(self) -> None:
        """Add the columns that the last multipliers price below zero, and find others."""
        # Only local minima of the price are added: their neighbours say nearly the same.
        if self.current is not None:
            prices = price(self.problem, self.current)
            violated = prices.improving(0.0)
            if violated.size:
                self._add(prices.signatures(violated), prices.outputs[violated])
        self.current = self._solve()

    def _solve(self) -> Dual | None:
        """Return central multipliers, or None and widen the slack if slackness admits none."""
        k = self.problem.k
        rows, limits = sparse.vstack(self.rows), np.concatenate(self.limits)
        lowest, none = sparse.csr_array(np.ones((limits.size, 1))), sparse.csr_array((self.tight.size, 1))
        sides = [[rows, lowest], [sparse.csr_array((1, k)), lowest[:1]], [self.confined, none]]
        # The bound is the last sum, and gains `share` by a lowest reduced cost of one.
        share = k / (1 + (k - 1) * self.least)
        program = ConicProgram(
            quadratic=sparse.csc_array((k + 1, k + 1)),
            cost=-np.concatenate((np.zeros(k - 1), [1.0, share])),
            equal=sparse.csc_array((0, k + 1)),
            equal_to=np.zeros(0),
            less=sparse.csc_array(sparse.block_array(sides)),
            less_than=np.concatenate((limits, [0.0], self.tight + self.slack * self.give)),
        )
        try:
            answer = Clarabel().solve(program)
        except SolverFailed:
            answer = None
        if answer is None or "nfeasible" in answer.status:
            self.slack *= OPTIONS.widening
            return None
        self.limit = self.fixed - self.unit * float(np.dot(program.cost, answer.x))
        return Dual(np.diff(answer.x[:-1], prepend=0.0) * self.unit, self.beta)


def _differences(sign: Floats, label: NDArray[np.intp], k: int) -> sparse.csr_array:
    """Return the signed multiplier of a label in each row, from sums up to each label."""
    each, inner = np.arange(label.size), label > 0
    values = np.concatenate((sign, -sign[inner]))
    where = np.concatenate((each, each[inner])), np.concatenate((label, label[inner] - 1))
    return sparse.csr_array((values, where), shape=(each.size, k))


def _decisive_pairs(used: Staircase) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return pairs of a label and a column whose slackness implies that of the others, as losses are convex."""
    # From a label's own columns those of the lowest and the highest output; from the others the neighbours outside.
    pairs = []
    for label, own in enumerate(used.members):
        columns = np.flatnonzero(own)
        if columns.size:
            first, last = columns[used.outputs[columns].argmin()], columns[used.outputs[columns].argmax()]
            below = np.flatnonzero(used.outputs < used.outputs[first])
            above = np.flatnonzero(used.outputs > used.outputs[last])
            pairs += [(label, first), (label, last)]
            pairs += [(label, below[used.outputs[below].argmax()])] if below.size else []
            pairs += [(label, above[used.outputs[above].argmin()])] if above.size else []
    found = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return found[:, 0], found[:, 1]
