"""Problems on a grid, by generation of staircase columns with negative reduced cost."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optrand import losses
from optrand.base._validation import Floats
from optrand.certificates._bound import lower_bound
from optrand.errors import OptrandError, SolverFailed
from optrand.losses import Tabulated
from optrand.mechanism._tabulation import Solution, Stats
from optrand.model._problem import Dual, Grid, Interval, Problem
from optrand.model._randomizer import Arcs, Randomizer, Staircase, decompose
from optrand.programs._backends import Backend, Form, Highs
from optrand.programs._parts import Pure, Unbiased
from optrand.programs._program import Program
from optrand.solvers._bins import BinPath
from optrand.solvers._clarabel import Clarabel, ConicProgram
from optrand.solvers._feasibility import reach, typical_loss
from optrand.solvers._interface import GuardedSolver
from optrand.solvers.grid._pricing import price, reduced_costs
from optrand.solvers.reduced_dual._solver import ReducedDual


@dataclass(frozen=True)
class ColumnOptions:
    """Tuning of :class:`ColumnGeneration`.

    Attributes
    ----------
    unused : float
        Columns with less mass (times ``E``) are dropped from the answer.
    all_intervals : int
        Largest number of labels whose intervals are all first columns if bias is free. Otherwise, and with more labels,
        only intervals of one and two labels are.
    confining : float
        Columns with less mass (times ``E``) do not bound the multipliers.
    slack : float
        Slack of these bounds, as a share of the largest loss.
    bounded : int
        Largest number of masters with bounded multipliers.
    shifts : int
        About the number of columns added without a bias penalty: bins whose ends are some labels from the best ones.
    patience : tuple of int
        Rounds before columns are taken from the linear program over the table, where bias is free and where there is
        none. Most problems are proven before. Of 53 labels others took a minute of rounds that each improved a little,
        and the program takes a second at most.
    entries : int
        Largest table of which they are.
    """

    unused: float = 1e-10
    all_intervals: int = 150
    confining: float = 1e-5
    slack: float = 1e-9
    bounded: int = 12
    shifts: int = 4000
    patience: tuple[int, int] = (5, 20)
    entries: int = 20_000


@dataclass(frozen=True)
class ColumnGeneration(GuardedSolver):
    """Solve over few columns, price all others, add the cheap ones, repeat.

    The first columns are intervals of labels, some of them from the problem of squared loss with outputs anywhere
    between the ends of the grid, moved to the neighbouring values. Masters are linear programs, solved by the simplex
    method, so that answers have few columns. At a finite bias penalty they are quadratic, and solved by an
    interior-point method. Multipliers of a master seldom price all columns at zero or more, though its answer may be
    optimal. Unless bias is forbidden, others are looked for within the bounds that the columns in use set to them.

    Attributes
    ----------
    gap : float
        The relative gap at which to stop, between the loss in floats and the proven bound.
    rounds : int
        Largest number of master programs.
    engine, backend : Clarabel, Backend
        Solvers of quadratic masters and of those within bounds, and of linear ones.
    options : ColumnOptions

    Examples
    --------
    >>> import numpy as np
    >>> import optrand
    >>> problem = optrand.unbiased_regression(
    ...     [0, 1, 2], [0.5, 0.3, 0.2], 1.0, outputs=np.linspace(-3, 5, 10_001)
    ... )
    >>> proof = optrand.solve(problem, ColumnGeneration()).certificate
    >>> proof.gap < 1e-8, round(proof.upper, 6)
    (True, 1.945447)
    """

    refusal = "ColumnGeneration() takes outputs on a grid: use ReducedDual() for the line or an interval"

    gap: float = 1e-9
    rounds: int = 200
    engine: Clarabel = field(default_factory=lambda: Clarabel(tolerance=1e-12))
    backend: Backend = field(default_factory=Highs)
    options: ColumnOptions = field(default_factory=ColumnOptions, repr=False)

    def accepts(self, problem: Problem) -> bool:
        """Any loss and any bias penalty, on a grid."""
        return isinstance(problem.outputs, Grid)

    def _solution(self, problem: Problem) -> Solution:
        grid: Floats = problem.outputs.values  # type: ignore[union-attr]
        columns, best = _first_columns(problem, grid, self.options), _Best(problem)
        # Without a quadratic charge of biases the masters are linear, and their answers vertices of few columns.
        linear = problem.unbiased or not problem.bias_penalty
        rounds, status = 0, ""
        while rounds < self.rounds:
            rounds += 1
            # Solve over the columns so far. Judge the answer by the certificate's own bound.
            arcs, dual, status = self._solve(Master(problem, *columns), simplex=linear)
            best.update(arcs, dual)
            before = columns[1].size
            if not problem.bias_penalty and best.gap > self.gap:
                columns = _merge(columns, *self._within_bounds(arcs, best))
            small = problem.k * grid.size <= self.options.entries
            if linear and small and best.gap > self.gap and rounds == self.options.patience[problem.unbiased]:
                columns = _merge(columns, *self._columns_of_program(best))
            if best.gap <= self.gap:
                break
            columns = _merge(columns, *_find_violated(problem, dual))
            if columns[1].size == before:
                break
        if not linear and best.gap > self.gap:
            self._within_bounds(best.arcs, best)
        # Central masses are positive everywhere. Those of idle columns are of the size of its tolerance.
        arcs = best.arcs.only(best.arcs.masses * math.exp(problem.epsilon) > self.options.unused)
        if not arcs.masses.size:
            raise SolverFailed("the last master uses no column: its coefficients are too far apart for floats")
        return Solution(
            problem, _restore(problem, arcs), best.dual, Stats(repr(self), iterations=rounds, status=status)
        )

    def _columns_of_program(self, best: _Best) -> Columns:
        """Return the columns of the linear program over the table, and try its multipliers."""
        problem, grid = best.problem, best.problem.outputs.values  # type: ignore[union-attr]
        constraints = [Unbiased()] if problem.unbiased else []
        notion, loss = Pure(problem.epsilon, form="floor"), problem.loss_table(grid)
        program = Program(problem.labels, problem.prior, grid, loss=loss, privacy=notion, constraints=constraints)
        answer = program.solve(self.backend)
        # Without an answer the table is NaN, and no output is in use.
        top = answer.table.max(axis=0)
        used = top > self.options.confining
        if not used.any():
            return np.zeros((problem.k, 0), dtype=bool), np.zeros(0)
        # Entries break privacy by the tolerance of the backend.
        table = np.clip(answer.table, top * math.exp(-problem.epsilon), top)[:, used]
        found = Randomizer(problem.labels, grid[used], table / table.sum(axis=1, keepdims=True), problem.epsilon)
        staircase = decompose(found, math.exp(problem.epsilon), self.options.confining)
        slopes = answer.duals["mean"] if problem.unbiased else np.zeros(problem.k)
        best.update(staircase, Dual(answer.duals["sum"], slopes))
        return staircase.members, staircase.outputs

    def _within_bounds(self, arcs: Staircase, best: _Best) -> Columns:
        """Look for multipliers that the columns in use admit, and return these columns and others of negative cost.

        If an optimal answer is not proven by its own multipliers, others that prove it are within these bounds.
        """
        problem, dual = best.problem, best.dual
        used = arcs.only(arcs.masses * math.exp(problem.epsilon) > self.options.confining)
        # The multipliers of biases are their charges.
        slopes = -problem.bias_weights * _randomizer_of(problem, arcs).biases
        confining = Master(problem, used.members, used.outputs, slopes=slopes)
        columns, bounds = (used.members, used.outputs), _slackness_bounds(confining, self.options.slack)
        best.update(arcs, _fit_multipliers(confining, dual))
        before = 0
        for _ in range(self.options.bounded):
            columns = _merge(columns, *_find_violated(problem, dual))
            if best.gap <= self.gap or columns[1].size == before:
                break
            before = columns[1].size
            try:
                _, dual, _ = self._solve(Master(problem, *columns, bounds, slopes), simplex=False)
            except SolverFailed:
                break
            best.update(arcs, dual)
        return columns

    def _solve(self, master: Master, *, simplex: bool) -> tuple[Staircase, Dual, str]:
        if simplex:
            vertex = self.backend.run(master.linear())
            if vertex.x.size and vertex.multipliers.size:
                return *master.read(vertex.x, vertex.multipliers), vertex.message
        # At a large epsilon the simplex method may end without an answer.
        central = self.engine.solve(master.conic())
        return *master.read(central.x, central.equal_dual), central.status


def _slackness_bounds(used: Master, slack: float) -> tuple[Floats, Floats]:
    """Bound the multipliers of rows by complementary slackness, given those of biases.

    A column in use costs nothing and is the cheapest at its output, so that the loss there is at most the multiplier of
    its own labels and at least that of the others, up to a slack as a share of the largest loss.
    """
    slack *= float(np.abs(used.table).max(initial=1e-300))
    lowest = np.where(used.members, used.table, -np.inf).max(axis=1, initial=-np.inf)
    highest = np.where(used.members, np.inf, used.table).min(axis=1, initial=np.inf)
    return lowest - slack, highest + slack


def _fit_multipliers(used: Master, dual: Dual) -> Dual:
    """Return the nearest multipliers at which columns in use cost nothing, as they do at an optimum.

    Those of an interior-point method miss that by its tolerance, which is more than losses of about exp(-epsilon) are.
    """
    weights, alpha = used.steepness, dual.alpha + dual.beta * used.centre
    costs = (weights * (used.table - alpha[:, np.newaxis])).sum(axis=0)
    # Columns that differ by rounding alone count as one.
    alpha = alpha + np.linalg.lstsq(weights.T, costs, rcond=1e-10)[0]
    beta = np.zeros(alpha.size) if used.slopes is None else used.slopes
    return Dual(alpha - beta * used.centre, beta)


def _randomizer_of(problem: Problem, columns: Staircase) -> Randomizer:
    return Randomizer(problem.labels, *columns.table(math.exp(problem.epsilon)), problem.epsilon)


def _restore(problem: Problem, columns: Staircase) -> Randomizer:
    """Return the randomizer of some columns, after the least change that makes its rows sum to 1."""
    restored = restore_rows(columns, math.exp(problem.epsilon))
    if restored.arcs is not None:
        return Randomizer.of_arcs(problem.labels, restored.arcs, problem.epsilon)
    return _randomizer_of(problem, restored)


def restore_rows(columns: Staircase, ratio: float) -> Staircase:
    """Restore rows that sum to 1 by the least relative change of the masses.

    Means, if they must be right, are restored with the exact table.
    """
    # A row sums to 1 if the masses that favour its label, and the 1 / (E - 1)-th part of all, are 1 / (E - 1).
    matrix, masses = columns.members + 1 / (ratio - 1), columns.masses
    # Each round restores what clipped changes left.
    for _ in range(3):
        scaled = matrix * masses
        # Unknowns are shares of the masses, so that least squares leave light columns light.
        change = np.linalg.lstsq(scaled, 1 / (ratio - 1) - scaled.sum(axis=1), rcond=1e-13)[0]
        masses = masses * np.clip(1 + change, 0.5, 2.0)
    return replace(columns, masses=masses)


class _Best:
    """The last primal answer, the best bound seen so far, and the gap between them."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.arcs = Staircase(np.zeros((problem.k, 0), dtype=bool), np.zeros(0), np.zeros(0))
        self.dual = Dual(np.zeros(problem.k), np.zeros(problem.k))
        # Zero multipliers prove that the loss is at least zero. If it is a matter of rounding, no others prove more.
        self.bound, self.gap = lower_bound(problem, self.dual), math.inf

    def update(self, arcs: Staircase, dual: Dual) -> None:
        """Take in a primal answer and multipliers that may prove more than the best so far."""
        problem = self.problem
        # Values of restricted programs fall as columns are added, so the last answer is the best. Bounds may rise and
        # fall.
        self.arcs = arcs
        bound = lower_bound(problem, dual)
        if bound > self.bound:
            self.bound, self.dual = bound, dual
        value = problem.sign * problem.value(_randomizer_of(problem, arcs))
        self.gap = abs(value - self.bound) / (abs(value) or 1.0)


Columns = tuple[NDArray[np.bool_], Floats]


def _merge(columns: Columns, members: NDArray[np.bool_], outputs: Floats) -> Columns:
    """Add columns to others, each once."""
    both = np.vstack((np.hstack((columns[0], members)), np.concatenate((columns[1], outputs))))
    unique = np.unique(both, axis=1)
    return unique[:-1].astype(bool), unique[-1]


def _find_violated(problem: Problem, dual: Dual) -> Columns:
    """Return the cheapest column at each output where its reduced cost is negative."""
    grid: Floats = problem.outputs.values  # type: ignore[union-attr]
    cheap = grid[price(problem, dual, grid) < 0]
    return reduced_costs(problem, dual, cheap) < 0, cheap


def _first_columns(problem: Problem, grid: Floats, options: ColumnOptions) -> Columns:
    """Return columns that make the master feasible, and intervals of labels near those that may be in use."""
    k = problem.k
    upward, singles = np.tri(k, dtype=bool), np.eye(k, dtype=bool)
    # Labels from each one on at the highest value, and up to each one at the lowest: these hold an unbiased randomizer
    # wherever there is one (section 13). On a small grid, constant answers as well.
    constant = grid if grid.size <= 64 else grid[:0]
    ends = np.hstack((upward, upward.T, np.ones((k, constant.size), dtype=bool)))
    columns = ends, np.concatenate((np.full(k, grid[-1]), np.full(k, grid[0]), constant))
    # If bias is free and the loss convex, intervals are enough, each at its best output.
    few = problem.bias_penalty or k > options.all_intervals
    intervals = np.hstack((singles, singles[:, :-1] | singles[:, 1:])) if few else all_intervals(k)
    steepness = np.where(intervals, 1.0, math.exp(-problem.epsilon))
    costs = steepness.T @ (problem.prior[:, np.newaxis] * problem.loss_table(grid))
    columns = _merge(columns, intervals, grid[costs.argmin(axis=1)])
    # Tables and classes have no loss between the values of the grid, so that no problem there could point at columns.
    unordered = isinstance(problem.loss, Tabulated) or problem.loss == losses.zero_one
    if not few or grid.size == 1 or unordered or k == 1:
        return columns
    between = replace(problem, outputs=Interval(grid[0], grid[-1]), loss=losses.squared)
    arcs: Arcs | None = None
    # Without an answer near by the first columns are those above.
    with suppress(OptrandError):
        arcs = (ReducedDual() if problem.bias_penalty else BinPath())(between).randomizer.arcs
    if arcs is not None:
        if not problem.bias_penalty:
            arcs = _shift_ends(arcs, max(1, (math.isqrt(options.shifts // arcs.n) - 1) // 2))
        # The reduced cost of a column is convex in its output: near the best output one of its two neighbours is best.
        staircase, right = Staircase.of_arcs(arcs), np.clip(np.searchsorted(grid, arcs.outputs), 1, grid.size - 1)
        for neighbour in (right - 1, right):
            columns = _merge(columns, staircase.members, grid[neighbour])
    return columns


def _shift_ends(arcs: Arcs, most: int) -> Arcs:
    """Return the arcs, and all others whose ends lie at most a number of labels from theirs."""
    steps = range(-most, most + 1)
    first, last = np.hstack([(arcs.first + a, arcs.last + b) for a in steps for b in steps])
    some = (first >= 0) & (last < arcs.k) & (first <= last)
    outputs = np.tile(arcs.outputs, len(steps) ** 2)[some]
    return Arcs(arcs.k, first[some], last[some], outputs, np.zeros(outputs.size))


@dataclass(frozen=True, eq=False)
class Master:
    r"""The restricted program: masses of some staircase columns ``(S, v)``, each at a value of the grid.

    .. math:: \min_{c \geq 0,\, b} \sum_j c_j \sum_y s_{j y} p_y g(v_j, y) + \tfrac{\lambda}{2} \sum_y p_y b_y^2
              \quad\text{s.t.}\quad \sum_j c_j s_{j y} = 1, \qquad \sum_j c_j s_{j y} v_j - b_y = y.

    The means are left out without a bias penalty, and ``b`` where no bias is allowed. Variables are the masses times
    ``E``, then the biases.
    """

    problem: Problem
    members: NDArray[np.bool_]
    outputs: Floats
    bounds: tuple[Floats, Floats] | None = None
    """Lower and upper bounds of the multipliers of rows, for :meth:`conic`."""
    slopes: Floats | None = None
    """Multipliers of biases, if they are given: outputs then cost what these charge, and no mean is a row."""

    @cached_property
    def table(self) -> Floats:
        """Cost of each output for each label, shape ``(k, columns)``."""
        table: Floats = self.problem.prior[:, np.newaxis] * self.problem.loss_table(self.outputs)
        return table if self.slopes is None else table - self.slopes[:, np.newaxis] * (self.outputs - self.centre)

    @cached_property
    def costs(self) -> Floats:
        """The loss of each column over ``E``."""
        costs: Floats = (self.steepness * self.table).sum(axis=0)
        return costs

    @cached_property
    def unit(self) -> float:
        """Unit by which costs are divided."""
        return typical_loss(self.problem, self.outputs)

    @property
    def centre(self) -> float:
        """Outputs are measured from here, in units of :attr:`width`."""
        return float(self.problem.labels[0] + self.problem.labels[-1]) / 2

    @property
    def width(self) -> float:
        """About how far from the centre the outputs in use lie."""
        return reach(self.problem)

    @cached_property
    def steepness(self) -> Floats:
        """Probability of each column for each label, over its largest one."""
        return np.where(self.members, 1.0, math.exp(-self.problem.epsilon))

    @property
    def _biases(self) -> int:
        return self.problem.k if self._has_means and not self.problem.unbiased else 0

    @property
    def _has_means(self) -> bool:
        return self.problem.bias_penalty > 0 and self.slopes is None

    @property
    def _magnify(self) -> Floats:
        """Factors of the differences of neighbouring rows: at small epsilon rows hardly differ."""
        return np.append(1.0, np.full(self.problem.k - 1, -1 / math.expm1(-self.problem.epsilon)))

    def _equations(self) -> tuple[Floats, Floats]:
        """Return the first row of each kind and the scaled differences of the others, finite biases included."""
        k, free = self.problem.k, self._biases
        rows = [np.hstack((self.steepness, np.zeros((k, free))))]
        right = [np.ones(k)]
        # Means are rows of their own. A finite bias is a variable that makes up for what they lack.
        if self._has_means:
            moments = self.steepness * ((self.outputs - self.centre) / self.width)
            rows.append(np.hstack((moments, -np.eye(k)[:, :free])))
            right.append((self.problem.labels - self.centre) / self.width)
        # At a small epsilon rows hardly differ: their differences, magnified, have entries near one again.
        magnify = self._magnify
        return (
            np.vstack([magnify[:, np.newaxis] * np.diff(part, axis=0, prepend=0.0) for part in rows]),
            np.concatenate([magnify * np.diff(part, prepend=0.0) for part in right]),
        )

    def linear(self) -> Form:
        """Return the program for a linear backend, for a bias penalty of 0 or infinity."""
        rows, right = self._equations()
        return Form(self.costs / self.unit, sparse.csr_array(rows), right, right, np.full(self.outputs.size, np.inf))

    def conic(self) -> ConicProgram:
        """Return the program for the interior-point engine, for any bias penalty."""
        problem, columns, free = self.problem, self.outputs.size, self._biases
        rows, right = self._equations()
        costs = self.costs
        if self.bounds is not None:
            # A bound of a multiplier is the cost of a column of its label alone, of negative mass if it is a lower one.
            lowest, highest = (np.flatnonzero(np.isfinite(bound)) for bound in self.bounds)
            alone = self._magnify[:, np.newaxis] * np.diff(np.eye(problem.k), axis=0, prepend=0.0)
            rows = np.hstack((rows, -alone[:, lowest], alone[:, highest]))
            costs = np.concatenate((costs, -self.bounds[0][lowest], self.bounds[1][highest]))
            columns = costs.size
        # In the units of the program, lengths over the width and losses over their unit.
        price_of_bias = problem.bias_weights[:free] * (self.width**2 / self.unit)
        return ConicProgram(
            quadratic=sparse.csc_array(sparse.diags_array(np.concatenate((np.zeros(columns), price_of_bias)))),
            cost=np.concatenate((costs / self.unit, np.zeros(free))),
            equal=sparse.csc_array(rows),
            equal_to=right,
            less=sparse.csc_array(-sparse.eye_array(columns, columns + free)),
            less_than=np.zeros(columns),
        )

    def read(self, x: Floats, multipliers: Floats) -> tuple[Staircase, Dual]:
        """Return the columns with their masses, and the multipliers in the units of the problem."""
        problem, k = self.problem, self.problem.k
        masses = np.maximum(x[: self.outputs.size], 0.0) * math.exp(-problem.epsilon)
        alpha = self.unit * undo_differences(self._magnify * multipliers[:k])
        beta = np.zeros(k) if self.slopes is None else self.slopes
        if self._has_means:
            # Labels without weight have no charge of bias to belong to, so that their multiplier must be zero.
            slopes = self.unit / self.width * undo_differences(self._magnify * multipliers[k:])
            beta = np.where(problem.bias_weights > 0, slopes, 0.0)
        return Staircase(self.members, self.outputs, masses), Dual(alpha - beta * self.centre, beta)


def all_intervals(k: int) -> NDArray[np.bool_]:
    """Every non-empty interval of ``k`` labels, shape ``(k, k (k + 1) / 2)``."""
    first, last = np.triu_indices(k)
    labels = np.arange(k)[:, np.newaxis]
    return (first <= labels) & (labels <= last)


def undo_differences(multipliers: Floats) -> Floats:
    """Compute the multipliers of the rows from those of their differences."""
    own: Floats = multipliers - np.append(multipliers[1:], 0.0)
    return own
