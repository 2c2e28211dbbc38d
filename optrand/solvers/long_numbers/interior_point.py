"""Primal-dual interior point on the columns of a program in long numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from optrand.errors import SolverFailed
from optrand.solvers.long_numbers.arithmetic import Long, longest, scaled
from optrand.solvers.long_numbers.program import LongProgram

__all__ = ["Point", "extended", "solved", "start"]

EXACT = 70
"""Bits of the errors of rows, and of means in the range of the labels, at the end."""

STEPS = 250
"""At most so many for each gap."""

HALVED = 8
"""How often a step is halved that bends slacks by more than the gap."""

DAMPING = 0.99
"""Share of the way to the boundary that a step may go."""


class Point(NamedTuple):
    """Sums of both multipliers up to each label, ``(2, k)``; slack and mass of each column, both over ``E``."""

    sums: Long
    slacks: Long
    masses: Long


class Step(NamedTuple):
    """Changes of a point, and of the slope of each column."""

    sums: Long
    slacks: Long
    masses: Long
    moved: Long


def solved(program: LongProgram, point: Point, gap: int) -> tuple[Point, int]:
    """Point whose relative gap is below ``2**-gap``, from another one, and the number of steps.

    Raises
    ------
    SolverFailed
        Too many steps.
    """
    for step in range(STEPS):
        equations = Equations(program, point)
        if equations.done(gap):
            return point, step
        point = equations.stepped()
    raise SolverFailed(f"the interior point in long numbers has not converged in {STEPS} steps")


def start(program: LongProgram) -> Point:
    """A point far from all bounds."""
    k, one = program.problem.k, program.numbers.one
    alpha = -program.prior - one // k
    sums = np.stack((np.cumsum(alpha), np.zeros(k, dtype=object)))
    slacks = program.columns(sums).costs
    return Point(sums, slacks, program.numbers.quotient(one // slacks.size, slacks))


def extended(program: LongProgram, point: Point) -> Point:
    """The point with the last columns of a program, which it lacks, at a product like that of the others."""
    known, numbers = point.slacks.size, program.numbers
    total = int(numbers.product(point.masses, point.slacks).sum())
    slacks = np.maximum(np.abs(program.columns(point.sums).costs[known:]), max(total // known, 1))
    masses = np.maximum(numbers.quotient(total // known, slacks), 1)
    return Point(point.sums, np.concatenate((point.slacks, slacks)), np.concatenate((point.masses, masses)))


class Equations:
    """Newton's equations at a point."""

    def __init__(self, program: LongProgram, point: Point) -> None:
        self.program, self.numbers, self.point = program, program.numbers, point
        costs, self.outputs, self.free = program.columns(point.sums)
        self.off = costs - point.slacks
        self.total = int(self.numbers.product(point.masses, point.slacks).sum())
        self.gradient = program.gain - self._gathered(point.masses, self.numbers.product(point.masses, self.outputs))
        if program.charges is not None:
            paid = self.numbers.product(program.charges, np.diff(point.sums[1], prepend=0))
            self.gradient[1] -= paid
            self.gradient[1, :-1] += paid[1:]

    def _gathered(self, masses: Long, moments: Long) -> Long:
        return np.stack((self.program.gathered(masses), self.program.gathered(moments)))

    def done(self, gap: int) -> bool:
        """Whether the gap is closed to so many bits, and equations hold."""
        value, exact = abs(self.program.value(self.point.sums)), min(gap, EXACT)
        closed = self.total <= value >> gap and np.abs(self.off).max() <= value >> exact
        return bool(closed and np.abs(self.gradient).max() <= self.numbers.one >> exact)

    def stepped(self) -> Point:
        """The point after one predictor and corrector step."""
        numbers, point = self.numbers, self.point
        solve, nothing = self._solver(), np.zeros(point.masses.size, dtype=object)
        step = solve(nothing, nothing, nothing)
        to_slack, to_mass = self._lengths(step, 1.0)
        ahead = point.slacks + scaled(step.slacks, to_slack), point.masses + scaled(step.masses, to_mass)
        reached = int(numbers.product(*ahead).sum())
        centring = min(max(reached / self.total, 0.0) ** 3, 1.0)
        above, below = centring.as_integer_ratio()
        mean = self.total // nothing.size * above // below
        bent = turned = nothing
        if self.free.any():
            turns = np.where(self.free, numbers.quotient(step.moved, self.program.moments[0]), 0)
            bent, turned = numbers.product(step.moved, turns), numbers.product(step.masses, turns)
        both = to_slack * to_mass
        products = mean - scaled(numbers.product(step.masses, step.slacks), both)
        step = solve(products, scaled(bent, to_slack**2 / 2), scaled(turned, both))
        to_slack, to_mass = self._lengths(step, DAMPING)
        masses = np.maximum(point.masses + scaled(step.masses, to_mass), 1)
        limit = max(self.total, self._cost_of(self.off, masses))
        for _ in range(HALVED):
            sums = point.sums + scaled(step.sums, to_slack)
            slacks = np.maximum(point.slacks + scaled(step.slacks, to_slack), 1)
            if not self.free.any() or self._cost_of(self.program.columns(sums).costs - slacks, masses) <= limit:
                break
            to_slack /= 2
        return Point(sums, slacks, masses)

    def _cost_of(self, off: Long, masses: Long) -> int:
        """What errors of slacks cost."""
        return int(self.numbers.product(np.abs(off), masses).sum())

    def _lengths(self, step: Step, damping: float) -> tuple[float, float]:
        """How far slacks and masses may go."""
        lengths = longest(self.point.slacks, step.slacks), longest(self.point.masses, step.masses)
        return min(1.0, damping * lengths[0]), min(1.0, damping * lengths[1])

    def _solver(self) -> Callable[[Long, Long, Long], Step]:
        """Solver of the equations: for the products of masses and slacks, and what bends costs and gradients."""
        program, numbers, outputs, (_, slacks, masses) = self.program, self.numbers, self.outputs, self.point
        k = program.problem.k
        ratios = numbers.quotient(masses, slacks)
        pulls = numbers.product(ratios, outputs)
        squares = numbers.product(pulls, outputs)
        if self.free.any():
            squares = squares + np.where(self.free, numbers.quotient(masses, program.moments[0]), 0)
        matrix = np.zeros((2 * k, 2 * k), dtype=object)
        matrix[:k, :k], matrix[k:, k:] = program.squared(ratios), program.squared(squares)
        matrix[:k, k:] = matrix[k:, :k] = program.squared(pulls)
        if program.charges is not None:
            each, inner = k + np.arange(k), k + np.arange(k - 1)
            matrix[each, each] += program.charges
            matrix[inner, inner] += program.charges[1:]
            matrix[inner, inner + 1] -= program.charges[1:]
            matrix[inner + 1, inner] -= program.charges[1:]
        factors = numbers.factored(matrix)

        def solve(products: Long, bent: Long, turned: Long) -> Step:
            off = self.off - bent
            towards = numbers.quotient(products - numbers.product(masses, off), slacks) - masses
            gathered = self._gathered(towards, numbers.product(towards, outputs) + turned)
            change = numbers.substituted(factors, (self.gradient - gathered).ravel()).reshape(2, k)
            moved = program.weighted(change[1])
            costs = -program.weighted(change[0]) - numbers.product(outputs, moved)
            return Step(change, costs + off, towards - numbers.product(ratios, costs), moved)

        return solve
