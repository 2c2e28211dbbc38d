r"""Problems of few labels in numbers of hundreds of bits: for the epsilons and the priors at which floats give out.

With :math:`E = e^\epsilon` losses are near :math:`1 / E` and labels near 1, so the reduced costs of arcs are differences
of numbers that are alike in :math:`\epsilon / \ln 2` bits; and thin priors take more. Here all arcs over the labels are
columns, and the interior point of :mod:`optrand.solvers.reduced_dual.kernel` runs on integers over a power of two, the
entries of numpy's arrays of objects. An end of the outputs clips the best output of an arc, whose reduced cost keeps a
continuous slope; a price of bias is a square of the multipliers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import exp_bracket
from optrand.errors import SolverFailed
from optrand.model import losses
from optrand.model.arcs import Arcs
from optrand.model.feasibility import balanced
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Dual, Solution, Stats
from optrand.solvers.closed_form import debiased_rr_within
from optrand.solvers.dual_repair import repair
from optrand.solvers.failures import GuardedSolver

__all__ = ["LongNumbers"]

Long = NDArray[np.object_]
"""Integers over ``2**bits``."""

MARGIN = 240
"""Bits beyond those that epsilon, the prior and the gaps between labels take."""

GAP = 100
"""Bits of the relative gap at the end."""

EXACT = 70
"""Bits of the errors of rows, and of means in the range of the labels, at the end."""

STEPS = 200
"""At most so many."""

DAMPING = 0.99
"""Share of the way to the boundary that a step may go."""


class Step(NamedTuple):
    """Changes of the sums of both multipliers, of slacks and of masses, and of the arcs' slopes."""

    sums: Long
    slacks: Long
    masses: Long
    moved: Long


@dataclass(frozen=True)
class LongNumbers(GuardedSolver):
    """Interior point on all arcs, in as many bits as the problem takes.

    Attributes
    ----------
    most : int
        Number of labels, at most; a step takes a number of operations near the cube of it.
    gap : float
        The relative gap for which the multipliers are repaired (:mod:`optrand.solvers.dual_repair`).

    Notes
    -----
    At 10 labels tenths of a second, at 21 labels some seconds.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2, 3], [0, 0.3, 0.7, 0], 30.0)
    >>> optrand.certify(LongNumbers()(problem)).gap < 1e-12
    True
    """

    most: int = 32
    gap: float = 1e-10

    refusal = (
        "LongNumbers() takes squared loss with a bias penalty above 0, outputs on the line or an interval, and from two "
        "to `most` labels"
    )

    def accepts(self, problem: Problem) -> bool:
        """Squared loss, a positive bias penalty, outputs that are not a grid, and a few labels."""
        squared = problem.loss == losses.squared and problem.bias_penalty > 0
        return squared and not isinstance(problem.outputs, Grid) and 1 < problem.k <= self.most

    def _solution(self, problem: Problem) -> Solution:
        response = debiased_rr_within(problem)
        if response:
            return response
        program = LongProgram(problem)
        point, steps = program.solved()
        arcs, dual = program.used(point), program.dual(point)
        if not problem.unbiased:
            dual = repair(problem, arcs, dual, gap=self.gap)
        randomizer = Randomizer.of_arcs(problem.labels, arcs, problem.epsilon)
        return Solution(problem, randomizer, dual, Stats(repr(self), iterations=steps, status="solved"))


class Point(NamedTuple):
    """Sums of both multipliers up to each node, ``(2, k)``, and the slack and the mass of each arc, over ``E``."""

    sums: Long
    slacks: Long
    masses: Long


@dataclass(frozen=True, eq=False)
class LongProgram:
    """The program over all arcs, its labels measured from the lowest in their range."""

    problem: Problem

    @cached_property
    def bits(self) -> int:
        """Bits after the point."""
        problem = self.problem
        prior, gaps = problem.prior[problem.prior > 0], np.diff(problem.labels)
        thin = -math.log2(prior.min()) + math.log2(np.ptp(problem.labels) / gaps.min())
        return MARGIN + math.ceil(4 * problem.epsilon / math.log(2) + 2 * thin)

    def long(self, number: Fraction) -> int:
        """A rational in this arithmetic."""
        return (number.numerator << self.bits) // number.denominator

    def longs(self, numbers: list[Fraction]) -> Long:
        """Rationals in this arithmetic."""
        return np.array([self.long(x) for x in numbers] or [0], dtype=object)

    def product(self, *factors: Any) -> Any:
        """Of numbers or arrays."""
        first, *rest = factors
        for factor in rest:
            first = (first * factor) >> self.bits
        return first

    def quotient(self, above: Any, below: Any) -> Any:
        """Of numbers or arrays."""
        return (above << self.bits) // below

    @cached_property
    def one(self) -> int:
        """The number 1."""
        return 1 << self.bits

    @cached_property
    def range(self) -> Fraction:
        """Unit of the labels."""
        return Fraction(float(self.problem.labels[-1])) - self.lowest

    @cached_property
    def lowest(self) -> Fraction:
        """Origin of the labels."""
        return Fraction(float(self.problem.labels[0]))

    @cached_property
    def places(self) -> Long:
        """The labels."""
        return self.longs([(Fraction(y) - self.lowest) / self.range for y in self.problem.labels.tolist()])

    @cached_property
    def box(self) -> tuple[int, int] | None:
        """Ends of the outputs, if there are any."""
        ends = self.problem.outputs.low, self.problem.outputs.high
        if not all(map(math.isfinite, ends)):
            return None
        low, high = (self.long((Fraction(float(x)) - self.lowest) / self.range) for x in ends)
        return low, high

    @cached_property
    def prior(self) -> Long:
        """The prior, which sums to 1."""
        prior = [Fraction(p) for p in self.problem.prior.tolist()]
        total = sum(prior, Fraction(0))
        return self.longs([p / total for p in prior])

    @cached_property
    def arcs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """First and end node of every arc."""
        first, end = np.triu_indices(self.problem.k + 1, 1)
        return first, end

    @cached_property
    def least(self) -> int:
        """``1 / E``."""
        return self.long(1 / exp_bracket(self.problem.epsilon, self.bits)[0])

    def weighted(self, sums: Long) -> Long:
        """For each arc ``sum_y s_y x_y / E`` of amounts whose sums up to each node after the first are given."""
        sums = np.concatenate((np.array([0], dtype=object), sums))
        first, end = self.arcs
        inside: Long = self.product(self.one - self.least, sums[end] - sums[first])
        return inside + self.product(self.least, sums[-1])

    def gathered(self, amounts: Long) -> Long:
        """The transpose of :meth:`weighted`: at each node after the first, from amounts of arcs."""
        table = self._table(amounts)
        ends: Long = self.product(self.one - self.least, table.sum(axis=0) - table.sum(axis=1))
        ends[-1] += self.product(self.least, amounts.sum())
        return ends[1:]

    def squared(self, amounts: Long) -> Long:
        """The matrix of ``sum_j a_j (weighted_j)**2`` over the nodes after the first."""
        table, k = self._table(amounts), self.problem.k
        share, least = self.one - self.least, self.least
        matrix = -table - table.T
        ends = table.sum(axis=0) + table.sum(axis=1)
        matrix[np.arange(k + 1), np.arange(k + 1)] = ends
        matrix = self.product(share, share, matrix)
        mixed = self.product(share, least, table.sum(axis=0) - table.sum(axis=1))
        matrix[:, -1] += mixed
        matrix[-1] += mixed
        matrix[-1, -1] += self.product(least, least, amounts.sum())
        return matrix[1:, 1:]

    def _table(self, amounts: Long) -> Long:
        """Amounts of arcs by first and end node."""
        k = self.problem.k
        table = np.zeros((k + 1, k + 1), dtype=object)
        table[self.arcs] = amounts
        return table

    @cached_property
    def moments(self) -> tuple[Long, Long, Long]:
        """Weight, weight times mean, and half the weight times square of the labels of each arc."""
        prior, places = self.prior, self.places
        weights, firsts, squares = (
            self.weighted(np.cumsum(amounts))
            for amounts in (prior, self.product(prior, places), self.product(prior, places, places))
        )
        return weights, firsts, squares >> 1

    @cached_property
    def gain(self) -> Long:
        """What is maximised but for the price of bias, as coefficients of the sums."""
        gain = np.zeros((2, self.problem.k), dtype=object)
        gain[0, -1] = self.one
        gain[1] = self.places
        gain[1, :-1] -= self.places[1:]
        return gain

    @cached_property
    def charges(self) -> Long | None:
        """What a squared multiplier of a bias costs twice."""
        if self.problem.unbiased:
            return None
        penalty = self.long(Fraction(self.problem.bias_penalty))
        return self.quotient(self.one, np.maximum(self.product(penalty, self.prior), 1))

    def costs(self, sums: Long) -> tuple[Long, Long, NDArray[np.bool_]]:
        """Reduced cost of each arc at its best output, that output, and whether it may move."""
        weights, firsts, squares = self.moments
        slopes = firsts + self.weighted(sums[1])
        outputs = self.quotient(slopes, weights)
        free = np.ones(outputs.size, dtype=bool)
        if self.box is not None:
            clipped = np.clip(outputs, *self.box)
            free, outputs = clipped == outputs, clipped
        costs = squares - self.weighted(sums[0]) + self.product(self.product(weights, outputs) // 2 - slopes, outputs)
        return costs, outputs, free.astype(bool)

    def value(self, sums: Long) -> int:
        """What is maximised."""
        value = int(self.product(self.gain, sums).sum())
        if self.charges is not None:
            beta = np.diff(sums[1], prepend=0)
            value -= int(self.product(self.charges, beta, beta).sum()) >> 1
        return value

    def start(self) -> Point:
        """A point far from all bounds."""
        k, n = self.problem.k, self.arcs[0].size
        alpha = -self.prior - self.one // k
        sums = np.stack((np.cumsum(alpha), np.zeros(k, dtype=object)))
        slacks = self.costs(sums)[0]
        return Point(sums, slacks, self.quotient(self.one // n, slacks))

    def solved(self) -> tuple[Point, int]:
        """The last point, and the number of steps.

        Raises
        ------
        SolverFailed
            A singular matrix, or too many steps.
        """
        point = self.start()
        for step in range(STEPS):
            equations = Equations(self, point)
            if equations.done:
                return point, step
            point = equations.stepped()
        raise SolverFailed(f"LongNumbers() has not converged in {STEPS} steps")

    def dual(self, point: Point) -> Dual:
        """The multipliers in the units of the problem, as floats."""
        alpha, beta = (np.diff(sums, prepend=0) for sums in point.sums)
        total, unit = sum((Fraction(p) for p in self.problem.prior.tolist()), Fraction(0)), Fraction(1, self.one)
        alphas = [Fraction(a) * unit * self.range**2 for a in alpha.tolist()]
        betas = [Fraction(b) * unit * self.range for b in beta.tolist()]
        alphas = [total * (a - b * self.lowest) for a, b in zip(alphas, betas, strict=True)]
        return Dual(np.array([float(a) for a in alphas]), np.array([float(total * b) for b in betas]))

    def used(self, point: Point) -> Arcs:
        """The arcs in use, as floats, with rows and means right to rounding."""
        problem, value = self.problem, max(self.value(point.sums), 1)
        _, outputs, _ = self.costs(point.sums)
        used = np.flatnonzero(self.product(point.masses, value) > point.slacks)
        first, end = self.arcs[0][used], self.arcs[1][used]
        places = np.array([float(self.lowest + self.range * Fraction(v, self.one)) for v in outputs[used].tolist()])
        places = np.clip(places, problem.outputs.low, problem.outputs.high)
        masses = np.array([m / self.one for m in point.masses[used].tolist()]) * math.exp(-problem.epsilon)
        order = np.lexsort((end, first, places))
        arcs = Arcs(problem.k, first[order], end[order] - 1, places[order], masses[order])
        return balanced(problem, arcs)


class Equations:
    """Newton's equations at a point."""

    def __init__(self, program: LongProgram, point: Point) -> None:
        self.program, self.point = program, point
        costs, self.outputs, self.free = program.costs(point.sums)
        self.off = costs - point.slacks
        self.total = int(program.product(point.masses, point.slacks).sum())
        self.gradient = program.gain - self._gathered(point.masses, program.product(point.masses, self.outputs))
        if program.charges is not None:
            paid = program.product(program.charges, np.diff(point.sums[1], prepend=0))
            self.gradient[1] -= paid
            self.gradient[1, :-1] += paid[1:]

    def _gathered(self, masses: Long, moments: Long) -> Long:
        return np.stack((self.program.gathered(masses), self.program.gathered(moments)))

    @property
    def done(self) -> bool:
        """Whether the gap is closed and equations hold."""
        program, value = self.program, abs(self.program.value(self.point.sums))
        closed = self.total <= value >> GAP and np.abs(self.off).max() <= value >> EXACT
        return bool(closed and np.abs(self.gradient).max() <= program.one >> EXACT)

    def stepped(self) -> Point:
        """The point after one predictor and corrector step."""
        program, point = self.program, self.point
        solve = self._solver()
        nothing = np.zeros(point.masses.size, dtype=object)
        step = solve(nothing, nothing, nothing)
        to_slack, to_mass = (
            min(1.0, longest(*pair)) for pair in ((point.slacks, step.slacks), (point.masses, step.masses))
        )
        ahead = [a + scaled(b, x) for a, b, x in zip(point[1:], step[1:3], (to_slack, to_mass), strict=True)]
        reached = int(program.product(*ahead).sum())
        share = max(reached / self.total if self.total else 0.0, 0.0)
        mean = scaled(np.array([self.total // nothing.size], dtype=object), min(share**3, 1.0))[0]
        bent = np.where(self.free, program.product(step.moved, program.quotient(step.moved, program.moments[0])), 0)
        turned = np.where(self.free, program.quotient(program.product(step.masses, step.moved), program.moments[0]), 0)
        both = to_slack * to_mass
        products = mean - scaled(program.product(step.masses, step.slacks), both)
        step = solve(products, scaled(bent, to_slack**2 / 2), scaled(turned, both))
        to_slack, to_mass = (
            min(1.0, DAMPING * longest(*pair)) for pair in ((point.slacks, step.slacks), (point.masses, step.masses))
        )
        return Point(
            point.sums + scaled(step.sums, to_slack),
            np.maximum(point.slacks + scaled(step.slacks, to_slack), 1),
            np.maximum(point.masses + scaled(step.masses, to_mass), 1),
        )

    def _solver(self) -> Any:
        """Solver of the equations for products of mass and slack, and what bends costs and gradients."""
        program, (sums, slacks, masses) = self.program, self.point
        k = program.problem.k
        ratios = program.quotient(masses, slacks)
        outputs = self.outputs
        pulls = program.product(ratios, outputs)
        curves = np.where(self.free, program.quotient(masses, program.moments[0]), 0)
        matrix = np.zeros((2 * k, 2 * k), dtype=object)
        matrix[:k, :k] = program.squared(ratios)
        matrix[:k, k:] = program.squared(pulls)
        matrix[k:, :k] = matrix[:k, k:]
        matrix[k:, k:] = program.squared(program.product(pulls, outputs) + curves)
        if program.charges is not None:
            each, next_one = k + np.arange(k), k + np.arange(k - 1)
            matrix[each, each] += program.charges
            matrix[next_one, next_one] += program.charges[1:]
            matrix[next_one, next_one + 1] -= program.charges[1:]
            matrix[next_one + 1, next_one] -= program.charges[1:]
        factors = factored(matrix, program.bits)

        def solve(products: Long, bent: Long, turned: Long) -> Step:
            off = self.off - bent
            towards = program.quotient(products - program.product(masses, off), slacks) - masses
            gathered = self._gathered(towards, program.product(towards, outputs) + turned)
            right = (self.gradient - gathered).ravel()
            change = substituted(factors, right, program.bits).reshape(2, k)
            moved = program.weighted(change[1])
            costs = -program.weighted(change[0]) - program.product(outputs, moved)
            return Step(change, costs + off, towards - program.product(ratios, costs), moved)

        return solve


def longest(amounts: Long, changes: Long) -> float:
    """Length of the longest step that leaves all amounts positive."""
    lengths = [
        a / -b if a.bit_length() - b.bit_length() < 1000 else math.inf
        for a, b in zip(amounts, changes, strict=True)
        if b < 0
    ]
    return min(lengths, default=math.inf)


def scaled(amounts: Long, share: float) -> Long:
    """Amounts times a float."""
    above, below = share.as_integer_ratio()
    return amounts * above >> (below.bit_length() - 1)


def factored(matrix: Long, bits: int) -> tuple[Long, Long]:
    """Unit lower triangle and diagonal of a symmetric matrix."""
    matrix = matrix.copy()
    size = matrix.shape[0]
    for at in range(size):
        if matrix[at, at] <= 0:
            # Of a bounded step in an unknown that nothing holds there is nothing to lose.
            matrix[at, at] = 1 << 4 * bits
        pivot = matrix[at, at]
        below = (matrix[at + 1 :, at] << bits) // pivot
        matrix[at + 1 :, at + 1 :] -= (below[:, np.newaxis] * matrix[at, at + 1 :]) >> bits
        matrix[at + 1 :, at] = below
    return np.tril(matrix, -1), matrix.diagonal().copy()


def substituted(factors: tuple[Long, Long], right: Long, bits: int) -> Long:
    """Solution of the system that was factored."""
    lower, diagonal = factors
    found = right.copy()
    for at in range(found.size - 1):
        found[at + 1 :] -= (lower[at + 1 :, at] * found[at]) >> bits
    found = (found << bits) // diagonal
    for at in range(found.size - 1, 0, -1):
        found[:at] -= (lower[at, :at] * found[at]) >> bits
    return found
