r"""Problems of few labels in numbers of hundreds of bits: for the epsilons and the priors at which floats give out.

With :math:`E = e^\epsilon` losses are near :math:`1 / E` and labels near 1, so that the reduced costs of columns are
differences of numbers that are alike in :math:`\epsilon / \ln 2` bits; thin priors take more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from optrand.errors import SolverFailed
from optrand.model import losses
from optrand.model.feasibility import balanced
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Solution, Stats
from optrand.model.staircase import Staircase
from optrand.solvers.closed_form import debiased_rr_within, priced_rr_within
from optrand.solvers.dual_repair import randomizer_of
from optrand.solvers.failures import GuardedSolver
from optrand.solvers.long_numbers.interior_point import Point, extended, solved, start
from optrand.solvers.long_numbers.pricing import missing
from optrand.solvers.long_numbers.program import LongProgram, Set, bits_for

__all__ = ["LongNumbers"]

WORK = 1e9
"""Square of labels times bits, at most: some seconds."""

GAPS = 8, 16, 30, 50, 100
"""Bits of the relative gaps at which sets are looked for; the last is that of the answer."""

VIOLATED = 50
"""Bits of the loss: sets that cost less than nothing by more are missing."""


@dataclass(frozen=True)
class LongNumbers(GuardedSolver):
    """Interior point on all intervals of labels, in as many bits as the problem takes; sets that are missing are added.

    Attributes
    ----------
    most : int
        Number of labels, at most; a step takes operations like the cube of it. Fewer at an epsilon of hundreds.
    rounds : int
        How often sets may be added to an answer.

    Notes
    -----
    At 10 labels tenths of a second, at 32 labels some seconds.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2, 3], [0, 0.3, 0.7, 0], 30.0)
    >>> optrand.certify(LongNumbers()(problem)).gap < 1e-12
    True
    """

    most: int = 32
    rounds: int = 12

    refusal = (
        "LongNumbers() takes squared loss with a bias penalty above 0, outputs on the line or an interval, and a few "
        "labels, two or more"
    )

    def accepts(self, problem: Problem) -> bool:
        """Squared loss, a positive bias penalty, outputs that are not a grid, and a few labels."""
        k, squared = problem.k, problem.loss == losses.squared and problem.bias_penalty > 0
        few = not isinstance(problem.outputs, Grid) and 1 < k <= self.most
        return squared and few and (k * bits_for(problem)) ** 2 <= WORK

    def _solution(self, problem: Problem) -> Solution:
        response = debiased_rr_within(problem) or priced_rr_within(problem)
        if response:
            return response
        program = LongProgram(problem)
        point, steps, known = start(program), 0, set[Set]()
        for gap in (*GAPS, *GAPS[-1:] * self.rounds):
            point, more = solved(program, point, gap)
            steps += more
            found = missing(program, point.sums, abs(program.value(point.sums)) >> min(gap, VIOLATED)) - known
            if found:
                known |= found
                program = replace(program, sets=(*program.sets, *found))
                point = extended(program, point)
            elif gap == GAPS[-1]:
                break
        stats = Stats(repr(self), iterations=steps, status="solved")
        return Solution(problem, _randomizer(program, point), program.dual(point.sums), stats)


def _randomizer(program: LongProgram, point: Point) -> Randomizer:
    """The columns in use, with rows and means right to rounding."""
    problem, numbers, k = program.problem, program.numbers, program.problem.k
    used = np.flatnonzero(numbers.product(point.masses, max(program.value(point.sums), 1)) > point.slacks)
    if not used.size:
        raise SolverFailed("the interior point in long numbers ended with no column in use")
    (first, end), labels = program.intervals, np.arange(k)[:, np.newaxis]
    intervals = (first <= labels) & (labels < end)
    members = np.concatenate((intervals, program.members.astype(np.bool_).T), axis=1)[:, used]
    places = program.columns(point.sums).outputs[used].tolist()
    outputs = np.array([float(program.lowest + program.range * numbers.rational(v)) for v in places])
    outputs = np.clip(outputs, problem.outputs.low, problem.outputs.high)
    masses = np.array([float(numbers.rational(m)) for m in point.masses[used].tolist()]) * math.exp(-problem.epsilon)
    columns = Staircase(members, outputs, masses)
    arcs = columns.arcs
    return randomizer_of(problem, columns if arcs is None else balanced(problem, arcs))
