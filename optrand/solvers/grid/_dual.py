r"""Squared loss on a grid, unbiased or at a bias penalty: the interior point of arcs, each with a fixed output.

On the line an arc (an interval of favoured labels) answers at its best output, where its reduced cost, a parabola in
the output, is least. On a grid it answers at a grid value, and since the parabola is convex, only the two values beside
that best output can be optimal at the given multipliers. So the columns are pairs of an arc and a grid value: first the
two values for each arc near the path of the problem without the grid, then, after each solve, the two values beside the
new best outputs and intervals of negative reduced cost. The kernel is that of
:class:`~optrand.solvers.ReducedDual`, with the two bounds of each arc's output equal.

Grids that reach hardly further than unbiased outputs need are beyond its floats. Those that it leaves unproven go to a
few rounds of column generation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np

from optrand import losses
from optrand.base._validation import Floats
from optrand.certificates._certificate import PROVEN
from optrand.errors import SolverFailed
from optrand.mechanism._tabulation import Solution, Stats
from optrand.model._problem import Dual, Grid, Interval, Problem
from optrand.model._randomizer import Arcs, Indices, Randomizer
from optrand.solvers._interface import GuardedSolver
from optrand.solvers._positions import Numbers
from optrand.solvers.grid._column_generation import ColumnGeneration
from optrand.solvers.reduced_dual._answers import Reduced, better, prove, restore_feasibility
from optrand.solvers.reduced_dual._arcs import Arcs as ArcOrder
from optrand.solvers.reduced_dual._arcs import Nodes, Terms, end_arcs
from optrand.solvers.reduced_dual._interior_point import Point
from optrand.solvers.reduced_dual._multipliers import Groups, Sums
from optrand.solvers.reduced_dual._solver import FIRST, Descent, TooWide


@dataclass(frozen=True)
class GridOptions:
    """Tuning of :class:`GridDual`, on 300 random problems of up to 60 labels and 600 values.

    Attributes
    ----------
    rough : float
        Gap of the problem without the grid, whose multipliers only point at the first columns.
    accuracy, least : float
        Gap of the problem over some columns, as a share of the objective, and its lower bound.
    rounds, patience : int
        Largest number of solves with added columns. After `patience` solves each must converge, and every `patience` of
        them must halve the gap.
    candidates : int
        Number of multipliers from the support that are tried after each solve, at a finite bias penalty.
    priced : int
        Number of labels times grid values, times the rounds of column generation that try an unproven problem. For
        labels that grow like squares, a few rounds prove problems whose gap was open by more than the optimum.
    block : int
        Reduced costs of labels at grid values that are computed at a time: 8 MB per array.
    """

    rough: float = 1e-2
    accuracy: float = 1e-14
    least: float = 1e-18
    rounds: int = 20
    patience: int = 6
    candidates: int = 6
    priced: int = 50_000
    block: int = 1 << 20


@dataclass(frozen=True)
class GridDual(GuardedSolver):
    """Interior point on arcs with fixed outputs, for the columns that its multipliers point at.

    Attributes
    ----------
    gap : float
        Relative gap at which an answer is taken. Otherwise the answer of the smallest gap is.
    options : GridOptions

    Notes
    -----
    Some eight columns per label beside the path of the problem without the grid, or all ``k (k - 1)`` up to 24 labels.
    ``O(k n)`` to find the columns that are missing, in blocks of the ``n`` grid values, after each solve but the last.

    Examples
    --------
    >>> import numpy as np
    >>> import optrand
    >>> problem = optrand.unbiased_regression(
    ...     [0, 1, 2], [0.5, 0.3, 0.2], 1.0, outputs=np.linspace(-3, 5, 801)
    ... )
    >>> proof = optrand.solve(problem, GridDual()).certificate
    >>> proof.gap < 1e-9, round(proof.upper, 6)
    (True, 1.945453)
    """

    gap: float = PROVEN
    options: GridOptions = field(default_factory=GridOptions)

    refusal = (
        "GridDual() takes squared loss with a bias penalty above 0, two or more labels and a grid of two or more "
        "outputs: use ColumnGeneration() for other problems on a grid, and ReducedDual() for the line or an interval"
    )

    def accepts(self, problem: Problem) -> bool:
        """Return whether the loss is squared, the bias penalty positive, and the grid has two values or more."""
        squared = problem.loss == losses.squared and problem.bias_penalty > 0
        return squared and isinstance(problem.outputs, Grid) and problem.outputs.values.size > 1 and problem.k > 1

    def _solution(self, problem: Problem) -> Solution:
        found, posed = None, GridProblem(problem, self.options)
        with suppress(TooWide, np.linalg.LinAlgError):
            found = posed.solve(self.gap)
        rounds = self.options.priced // (problem.k * posed.grid.size)
        if rounds and (found is None or found.gap > self.gap):
            with suppress(SolverFailed):
                found = better(found, ColumnGeneration(rounds=min(rounds, ColumnGeneration.rounds))(problem))
        if found is None:
            raise SolverFailed("the interior point has no randomizer on the grid: ColumnGeneration() may have one")
        return found


class Columns(NamedTuple):
    """Pairs of an arc and a grid value.

    Attributes
    ----------
    first, end : (n,) arrays
        Nodes of each arc.
    at : (n,) array
        Index of its output in the grid.
    mass : (n,) array
        Masses near which an iteration begins.
    """

    first: Indices
    end: Indices
    at: Indices
    mass: Floats

    @classmethod
    def without_mass(cls, first: Indices, end: Indices, at: Indices) -> Columns:
        """Return columns without mass."""
        return cls(first, end, at, np.zeros(at.size))

    def unite(self, *others: Columns) -> Columns:
        """Join these columns and some others, in the order of the arcs. Equal ones become one of the sum of masses."""
        *places, mass = (np.concatenate(parts) for parts in zip(self, *others, strict=True))
        first, end, at = places
        order = np.lexsort((at, end, first))
        keys = np.stack(places)[:, order]
        new = np.append(True, (np.diff(keys, axis=1) != 0).any(axis=0))
        first, end, at = keys[:, new]
        sums: Floats = np.bincount(np.cumsum(new) - 1, mass[order]).astype(np.float64, copy=False)
        return Columns(first, end, at, sums)


@dataclass(frozen=True, eq=False)
class GridProblem:
    """A problem on a grid, and the same problem on the interval between the ends of the grid."""

    problem: Problem
    options: GridOptions

    @cached_property
    def reduced(self) -> Reduced:
        """The problem on the interval, in the unit of the kernel."""
        return Reduced(replace(self.problem, outputs=Interval(self.grid[0], self.grid[-1])))

    @property
    def grid(self) -> Floats:
        """Values of the grid."""
        values: Floats = self.problem.outputs.values  # type: ignore[union-attr]
        return values

    @cached_property
    def values(self) -> Floats:
        """Values of the grid in the unit of the kernel."""
        reduced = self.reduced
        values: Floats = (self.grid - self.problem.labels[0] - reduced.mean) / reduced.unit
        # Exactly the ends of the interval, which the shifted values may miss by rounding.
        values[0], values[-1] = reduced.box
        return values

    @cached_property
    def terms(self) -> Terms:
        """All labels, for the kernel."""
        finest = self.reduced.finest
        return self.reduced.terms(finest.before, finest.gaps)._replace(values=self.values)

    def solve(self, gap: float) -> Solution | None:
        """Solve over some columns and add others, until the gap is small enough or no column is missing."""
        options, descent = self.options, Descent(self.reduced, FIRST)
        # Without the grid first: its answer points at the columns, and its masses and multipliers are near theirs.
        nodes, start, whole, steps = descent.candidate_arcs()
        _, point, count, _ = descent.solve(self.terms, nodes, options.rough, start, whole=whole)
        columns = self.beside(nodes, point.slopes, point.mass).unite(self.feasible_columns())
        accuracy = max(options.least, options.accuracy * self.reduced.share)
        best, gaps, steps = None, [math.inf], steps + count
        for number in range(options.rounds):
            values = self.values[columns.at]
            # If the iteration fails from the last sums and masses, begin again at the centre, which is slower.
            for start, mass in (((point.slopes, point.costs), columns.mass), (self.terms.centre, None)):
                arcs, point, count, failed = descent.solve(
                    self.terms, columns[:2], accuracy, start, whole=whole, values=values, mass=mass
                )
                solved = columns._replace(mass=point.mass)
                found = self.best_answer(arcs, solved, point, gap)
                best, steps = better(best, found), steps + count
                if not failed and found is not None and found.gap < math.inf:
                    break
            gaps.append(math.inf if best is None else best.gap)
            stalled = number >= options.patience and (failed or not gaps[-1] < gaps[-1 - options.patience] / 2)
            if found is None or gaps[-1] <= gap or stalled:
                break
            # Columns that may be missing: beside the new best outputs, and those of negative reduced cost.
            unused = np.zeros(nodes[0].size)
            columns = solved.unite(self.beside(nodes, point.slopes, unused), self.find_violated(found))
            if columns.at.size == solved.at.size:
                break
        return None if best is None else best.with_stats(iterations=steps)

    def beside(self, nodes: Nodes, slopes: Floats, mass: Floats) -> Columns:
        """Return each of some arcs at the two grid values beside its best output, the mass divided so as to keep it."""
        (first, end), terms, values = nodes, self.terms, self.values
        weight = terms.before[end] - terms.before[first] + terms.excess
        # B / A, where the parabola of an arc is least (docs/mathematics.md, section 13).
        best = np.clip((slopes[end] - slopes[first] + terms.excess * slopes[-1]) / weight, values[0], values[-1])
        above = np.clip(np.searchsorted(values, best), 1, values.size - 1)
        share = (best - values[above - 1]) / (values[above] - values[above - 1])
        return Columns(first, end, above - 1, (1 - share) * mass).unite(Columns(first, end, above, share * mass))

    def feasible_columns(self) -> Columns:
        """Return prefixes at the lowest and suffixes at the highest value, which hold a randomizer if there is one."""
        first, end = end_arcs(self.problem.k)
        return Columns.without_mass(first, end, np.where(first == 0, 0, self.values.size - 1))

    def find_violated(self, solution: Solution) -> Columns:
        """Find columns of negative reduced cost: the cheapest at each grid value, up to each node, and from each node.

        If some labels hardly matter, the cheapest at the values are few, and alone they would take many rounds.
        """
        if solution.dual is None:
            return Columns.without_mass(*np.zeros((3, 0), np.int64))
        found, k = [], self.problem.k
        nodes, step = np.arange(k), max(1, self.options.block // k)
        for start in range(0, self.grid.size, step):
            at = np.arange(start, min(start + step, self.grid.size))
            sums = self._sum_reduced_costs(solution.dual, self.grid[at])
            firsts, costs = self._cheapest_before(sums)
            for ends, values in ((costs.argmin(axis=0), at - start), (nodes, costs.argmin(axis=1))):
                found.append((firsts[ends, values], ends + 1, at[values], costs[ends, values]))
            # Labels in the opposite order, so that the first node of an interval is the last one.
            firsts, costs = self._cheapest_before(sums[-1] - sums[::-1])
            values = costs.argmin(axis=1)
            found.append((k - 1 - nodes, k - firsts[nodes, values], at[values], costs[nodes, values]))
        *columns, cost = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return Columns.without_mass(*(part[cost < 0] for part in columns))

    def _cheapest_before(self, sums: Floats) -> tuple[Indices, Floats]:
        """Find the interval of smallest reduced cost before each node but the first, at some outputs.

        The cheapest set of labels need not be an interval, and then does not point at the intervals that are missing.

        Returns
        -------
        firsts, costs : (k, n) arrays
            First node of each interval, and the reduced cost of its column.
        """
        k = self.problem.k
        # Labels from one node to another cost the difference of the sums there: the best start has the highest sum.
        highest = np.maximum.accumulate(sums[:-1], axis=0)
        firsts = np.maximum.accumulate(np.where(sums[:-1] == highest, np.arange(k)[:, np.newaxis], 0), axis=0)
        costs = sums[-1] + math.expm1(self.problem.epsilon) * (sums[1:] - highest)
        # The column of all labels is no arc: those of the labels before and after a node sum to a multiple of it
        # (section 13).
        costs[-1, firsts[-1] == 0] = np.inf
        return firsts, costs

    def _sum_reduced_costs(self, dual: Dual, outputs: Floats) -> Floats:
        """Return the sums of the labels' reduced costs at some outputs up to each node, shape ``(k + 1, n)``."""
        problem = self.problem
        costs = problem.prior[:, np.newaxis] * problem.loss_table(outputs) - dual.alpha[:, np.newaxis]
        costs -= dual.beta[:, np.newaxis] * (outputs - dual.origin)
        return np.concatenate((np.zeros((1, outputs.size)), np.cumsum(costs, axis=0)))

    def best_answer(self, arcs: ArcOrder, columns: Columns, point: Point, gap: float) -> Solution | None:
        """Return the answer with the best of several multipliers, or the first whose gap is small enough."""
        if not point.is_finite():
            return None
        terms, sums = self.terms, Sums(self.terms.before, point.slopes, point.costs)
        mass, _ = restore_feasibility(arcs, terms, point.slopes, np.where(point.in_use, point.mass, 0.0), arcs.low)
        if not (mass > 0).any():
            return None
        answer = Solution(self.problem, self.randomizer(columns, mass), stats=Stats("", status="solved"))
        families: list[Iterable[Numbers]] = [[sums.costs]]
        if not self.problem.unbiased:
            groups = Groups.of_used(terms, sums, (columns.first, columns.end, self.values[columns.at]), mass > 0)
            families.insert(0, islice(groups.candidates(), self.options.candidates))
        biases = answer.randomizer.biases
        duals = ((self.reduced.dual(sums.slopes, np.diff(cost), biases) for cost in costs) for costs in families)
        return prove(answer, duals, gap)

    def randomizer(self, columns: Columns, mass: Floats) -> Randomizer:
        """Return the randomizer of some masses, scaled to probabilities."""
        used = np.flatnonzero(mass > 0)
        (first, end, at), mass = (part[used] for part in columns[:3]), mass[used]
        # Scaled so that the probabilities of a label sum to one.
        mass = mass / (mass.sum() + math.expm1(self.problem.epsilon) * mass[first == 0].sum())
        order = np.lexsort((end, first, at))
        arcs = Arcs(self.problem.k, first[order], end[order] - 1, self.grid[at[order]], mass[order])
        return Randomizer.of_arcs(self.problem.labels, arcs, self.problem.epsilon)
