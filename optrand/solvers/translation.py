"""Labels far from zero: the problem is solved where they lie near it, and the answer is carried back without loss.

Floats near ``1e15`` are an eighth apart, so that neither outputs nor multipliers of labels there have digits to spare.
But the differences of such labels are floats (:attr:`optrand.model.problem.Problem.origin`). Squared and absolute loss,
and tables, do not change when labels and outputs move together; so randomizers and multipliers are found for the
differences, and remember from where they are measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from optrand.base.validation import Floats
from optrand.model import losses
from optrand.model.losses import Tabulated
from optrand.model.outputs import Grid, Interval, OutputSet
from optrand.model.problem import Dual, Problem
from optrand.model.randomizer import Arcs, Randomizer, Solution

__all__ = ["Translation", "near_zero"]


@dataclass(frozen=True, eq=False)
class Translation:
    """A problem with its labels near zero, and the way back.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([1e15, 1e15 + 1, 1e15 + 3], [0.2, 0.5, 0.3], 1.0)
    >>> Translation(problem).apply().labels.tolist()
    [-1.0, 0.0, 2.0]
    """

    problem: Problem

    @cached_property
    def origin(self) -> float:
        """From where labels and outputs are measured; 0 where moving them is not needed, or would round them."""
        problem = self.problem
        moves = problem.loss in (losses.squared, losses.absolute) or isinstance(problem.loss, Tabulated)
        origin = problem.origin
        return origin if moves and _move(problem.outputs, origin) is not None else 0.0

    def apply(self) -> Problem:
        """Return the problem with labels near zero, or the problem itself if the origin is 0."""
        problem, outputs = self.problem, _move(self.problem.outputs, self.origin)
        if not self.origin or outputs is None:
            return problem
        return replace(problem, labels=problem.labels - self.origin, outputs=outputs)

    def invert(self, solution: Solution) -> Solution:
        """Move the answer back to the labels, under its own prior."""
        if not self.origin:
            return solution
        problem = replace(self.problem, prior=solution.problem.prior)
        given, dual = solution.randomizer, solution.dual
        if dual is not None:
            # Measured from zero first: the sum of two origins would be rounded.
            dual = Dual(dual.alpha - dual.beta * dual.origin, dual.beta, self.origin)
        if given.arcs is not None and not isinstance(problem.outputs, Grid):
            outputs, rests = _sum(given.arcs.outputs, self.origin)
            arcs = Arcs(given.k, given.arcs.first, given.arcs.last, outputs, given.arcs.masses, rests)
            randomizer = Randomizer.of_arcs(problem.labels, arcs, given.epsilon)
        else:
            outputs = given.outputs + self.origin
            near = solution.problem.outputs
            if isinstance(problem.outputs, Grid) and isinstance(near, Grid):
                outputs = problem.outputs.values[np.searchsorted(near.values, given.outputs)]
            randomizer = Randomizer(problem.labels, outputs, given.matrix, given.epsilon)
        return replace(solution, problem=problem, randomizer=randomizer, dual=dual)


def near_zero(problem: Problem, solver: Callable[[Problem], Solution]) -> Solution:
    """Carry back the answer of a solver to the problem with labels near zero."""
    translation = Translation(problem)
    return translation.invert(solver(translation.apply()))


def _sum(offsets: Floats, origin: float) -> tuple[Floats, Floats]:
    """Return the nearest floats to some sums, and the exact remainders, whichever term is larger."""
    # Knuth, The Art of Computer Programming, volume 2, section 4.2.2, Theorem B.
    sums = offsets + origin
    moved = sums - offsets
    rests: Floats = (offsets - (sums - moved)) + (origin - moved)
    return sums, rests


def _move(outputs: OutputSet, origin: float) -> OutputSet | None:
    """Measure from an origin. Return None if grid values would coincide or the ends of an interval be rounded."""
    if isinstance(outputs, Grid):
        values = outputs.values - origin
        return Grid(values) if (np.diff(values) > 0).all() else None
    if isinstance(outputs, Interval):
        low, high = outputs.low - origin, outputs.high - origin
        exact = math.fsum((low, origin, -outputs.low)) == 0 == math.fsum((high, origin, -outputs.high))
        return Interval(low, high) if exact else None
    return outputs
