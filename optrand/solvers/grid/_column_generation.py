"""Problems on a grid, by generation of staircase columns with negative reduced cost."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from optrand import losses
from optrand.base._validation import Floats
from optrand.certificates._bound import lower_bound
from optrand.errors import OptrandError, SolverFailed
from optrand.losses import Tabulated
from optrand.model._problem import Dual, Grid, Interval, Problem
from optrand.model._randomizer import Arcs, Randomizer, Solution, Staircase, Stats
from optrand.programs._backends import Backend, Highs
from optrand.solvers._dual_repair import randomizer_of, repair
from optrand.solvers._failures import GuardedSolver
from optrand.solvers._feasibility import balance_arcs, mend_masses
from optrand.solvers._gaps import price
from optrand.solvers.backends._cones import Clarabel
from optrand.solvers.bins._path import BinPath
from optrand.solvers.grid._master import Master, all_intervals
from optrand.solvers.reduced_dual._solver import ReducedDual


@dataclass(frozen=True)
class ColumnOptions:
    """Tuning of :class:`ColumnGeneration`.

    Attributes
    ----------
    unused : float
        Columns with less mass (times ``E``) are dropped from the answer.
    repairs : int
        Rounds of a dual repair between two masters.
    all_intervals : int
        Largest number of labels whose intervals are all first columns if bias is free. Otherwise, and with more labels,
        only intervals of one and two labels are.
    widened : tuple of pairs ``(shift, arcs)``
        With a bias penalty, ends of up to `arcs` arcs in use are moved by `shift` labels.
    best : float
        Share of the best multipliers so far in those that are priced beside a master's, at a price of bias.
    central_until : float
        Relative gap from which on multipliers of a vertex are taken in place of central ones.
    """

    unused: float = 1e-10
    repairs: int = 12
    all_intervals: int = 150
    widened: tuple[tuple[int, float], ...] = ((3, 12), (2, 40), (1, math.inf))
    best: float = 0.9
    central_until: float = 1e-6


@dataclass(frozen=True)
class ColumnGeneration(GuardedSolver):
    """Solve over few columns, price all others with the certificate, add the cheap ones, repeat.

    The first columns come from the problem of squared loss with outputs anywhere between the ends of the grid, moved to
    the neighbouring values. Masters are solved by an interior-point method, whose
    central multipliers need a few rounds where vertices would need hundreds; the last ones by the simplex method, so
    that the answer is a vertex.

    Attributes
    ----------
    gap : float
        The relative gap at which to stop: verified, since the pricing step is the certificate.
    rounds : int
        Largest number of master programs.
    engine, backend : Clarabel, Backend
        Solvers of central masters, and of those whose answer is a vertex.
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
        rounds, status = 0, ""
        for simplex, target in self._phases(problem):
            # Solve over the columns so far; judge the answer by the certificate's own bound.
            while rounds < self.rounds:
                rounds += 1
                arcs, dual, status = self._solve(Master(problem, *columns), simplex)
                best.update(arcs, dual)
                if best.gap <= target:
                    break
                # Repaired or mixed multipliers may prove the answer where the master's do not.
                duals = [dual]
                if not problem.bias_penalty and not simplex:
                    best.update(arcs, repair(problem, arcs, dual, gap=target, rounds=self.options.repairs))
                if not problem.unbiased and not simplex:
                    # Multipliers of one master after the other lie far apart: those next to the best ones ask for less.
                    duals.append(_mix(dual, best.dual, self.options.best))
                    best.update(arcs, duals[-1])
                # At each output the cheapest column, if its reduced cost is negative.
                before = columns[1].size
                for prices in (price(problem, dual) for dual in duals):
                    cheap = np.flatnonzero(prices.costs < 0)
                    columns = _merge(columns, prices.signatures(cheap), prices.outputs[cheap])
                if best.gap <= target or columns[1].size == before:
                    break
        # Central masses are positive everywhere; those of idle columns are of the size of its tolerance.
        arcs = best.arcs.only(best.arcs.masses * math.exp(problem.epsilon) > self.options.unused)
        if not arcs.masses.size:
            raise SolverFailed("the last master uses no column: its coefficients are too far apart for floats")
        randomizer = _mend(problem, arcs)
        dual = best.dual if problem.unbiased else repair(problem, arcs, best.dual, gap=self.gap)
        return Solution(problem, randomizer, dual, Stats(repr(self), iterations=rounds, status=status))

    def _phases(self, problem: Problem) -> list[tuple[bool, float]]:
        """Return the phases: whether the simplex method solves the masters, and the gap at which each ends."""
        if problem.unbiased or not problem.bias_penalty:
            return [(False, self.options.central_until), (True, self.gap)]
        return [(False, self.gap)]

    def _solve(self, master: Master, simplex: bool) -> tuple[Staircase, Dual, str]:
        if simplex:
            vertex = self.backend.run(master.linear())
            if not (vertex.x.size and vertex.multipliers.size):
                raise SolverFailed(
                    f"{self.backend.name} ended with the status {vertex.message!r} and no answer to read"
                )
            return *master.read(vertex.x, vertex.multipliers), vertex.message
        central = self.engine.solve(master.conic())
        return *master.read(central.x, central.equal_dual), central.status


def _mix(some: Dual, others: Dual, share: float) -> Dual:
    """Mix multipliers with others, which have the given share."""
    alpha, beta = ((1 - share) * a + share * b for a, b in ((some.alpha, others.alpha), (some.beta, others.beta)))
    return Dual(alpha, beta)


def _mend(problem: Problem, staircase: Staircase) -> Randomizer:
    """Restore rows and means to rounding, by a flow if every column favours an interval of labels."""
    if staircase.arcs is not None:
        return randomizer_of(problem, balance_arcs(problem, staircase.arcs))
    return randomizer_of(problem, mend_masses(problem, staircase, means=problem.unbiased))


class _Best:
    """The last primal answer, the best bound seen so far, and the gap between them."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.arcs = Staircase(np.zeros((problem.k, 0), dtype=bool), np.zeros(0), np.zeros(0))
        self.dual = Dual(np.zeros(problem.k), np.zeros(problem.k))
        self.bound, self.gap = -math.inf, math.inf

    def update(self, arcs: Staircase, dual: Dual) -> None:
        """Take in a primal answer and multipliers that may prove more than the best so far."""
        problem = self.problem
        # Values of restricted programs fall as columns are added, so the last answer is the best; bounds may rise and
        # fall.
        self.arcs = arcs
        bound = lower_bound(problem, dual)
        if bound > self.bound:
            self.bound, self.dual = bound, dual
        value = problem.sign * problem.value(randomizer_of(problem, arcs))
        self.gap = abs(value - self.bound) / (abs(value) or 1.0)


Columns = tuple[NDArray[np.bool_], Floats]


def _merge(columns: Columns, members: NDArray[np.bool_], outputs: Floats) -> Columns:
    """Add columns to others, each once."""
    both = np.vstack((np.hstack((columns[0], members)), np.concatenate((columns[1], outputs))))
    unique = np.unique(both, axis=1)
    return unique[:-1].astype(bool), unique[-1]


def _first_columns(problem: Problem, grid: Floats, options: ColumnOptions) -> Columns:
    """Return the columns that make the master feasible, and those of the problem between the ends of the grid."""
    k = problem.k
    upward = np.tri(k, dtype=bool)
    everything = np.ones((k, 1), dtype=bool)
    # Labels from each one on at the highest value, and up to each one at the lowest: these hold an unbiased randomizer
    # wherever there is one (section 13). On a small grid, constant answers as well.
    members = np.hstack((upward, upward.T, np.repeat(everything, grid.size if grid.size <= 64 else 0, axis=1)))
    outputs = np.concatenate((np.full(k, grid[-1]), np.full(k, grid[0]), grid if grid.size <= 64 else grid[:0]))
    columns = _merge((members, outputs), *_best_intervals(problem, grid, options))
    # Tables and classes have no loss between the values of the grid, so that no problem there could point at columns.
    unordered = isinstance(problem.loss, Tabulated) or problem.loss == losses.zero_one
    if grid.size == 1 or unordered or problem.k == 1:
        return columns
    between = replace(problem, outputs=Interval(grid[0], grid[-1]), loss=losses.squared)
    arcs: Arcs | None = None
    if problem.bias_penalty or problem.k > options.all_intervals:
        # Without an answer near by the first columns are the generic ones.
        with suppress(OptrandError):
            arcs = (ReducedDual() if problem.bias_penalty else BinPath())(between).randomizer.arcs
    if arcs is None:
        return columns
    if not problem.unbiased:
        arcs = _widen(arcs, next(by for by, most in options.widened if arcs.n <= most))
    staircase = Staircase.of_arcs(arcs)
    # The reduced cost of a column is convex in its output: near the best output one of its two neighbours is best.
    right = np.clip(np.searchsorted(grid, arcs.outputs), 1, grid.size - 1)
    for neighbour in (right - 1, right):
        columns = _merge(columns, staircase.members, grid[neighbour])
    return columns


def _widen(arcs: Arcs, by: int) -> Arcs:
    """Return the arcs, and all others whose ends are at most a number of labels away."""
    steps = range(-by, by + 1)
    moved = [(arcs.first + a, arcs.last + b) for a in steps for b in steps]
    first, last = np.hstack(moved)
    outputs = np.tile(arcs.outputs, len(moved))
    there = (first >= 0) & (last < arcs.k) & (first <= last)
    return Arcs(arcs.k, first[there], last[there], outputs[there], np.zeros(int(there.sum())))


def _best_intervals(problem: Problem, grid: Floats, options: ColumnOptions) -> Columns:
    """Return the intervals of labels, each at its best output: enough for a convex loss if bias is free."""
    if problem.bias_penalty or problem.k > options.all_intervals:
        singles = np.eye(problem.k, dtype=bool)
        members = np.hstack((singles, singles[:, :-1] | singles[:, 1:]))
    else:
        members = all_intervals(problem.k)
    steepness = np.where(members, 1.0, math.exp(-problem.epsilon))
    table = problem.prior[:, np.newaxis] * problem.loss_table(grid)
    return members, grid[(steepness.T @ table).argmin(axis=1)]
