"""Squared loss without a prior: the randomizer whose largest loss over labels is least, and the prior as proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter

from optrand.errors import SolverFailed
from optrand.model.feasibility import balanced
from optrand.model.problem import Problem
from optrand.model.solution import Solution, Stats
from optrand.solvers.backends.cones import Clarabel
from optrand.solvers.dual_repair import randomizer_of, repair
from optrand.solvers.flow.interior_point import used
from optrand.solvers.flow.levels import Intervals, descended, growing
from optrand.solvers.flow.minimax_program import MinimaxProgram
from optrand.solvers.flow.program import Point
from optrand.solvers.flow.solver import ArcSolver
from optrand.solvers.gaps import worst_case_gap

__all__ = ["MinimaxFlow"]

FEWEST = 64
"""Up to so many labels all intervals are arcs."""

FLOORS = (1e-4, 1e-7, 1e-10)
"""Under the prior, while the arcs in use are looked for: the first is taken that shows those of the exact answer."""


@dataclass(frozen=True)
class MinimaxFlow(ArcSolver):
    """Solve the minimax cone program level by level, polish the answer, and add arcs until none is missing.

    Attributes
    ----------
    engine : backends.Clarabel
        Finds the arcs in use; its tolerance need not be that of the answer.
    rounds : int
        How often arcs may be added on one level.
    gap : float
        The relative gap for which the multipliers are repaired (:mod:`optrand.solvers.dual_repair`).

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> solution = MinimaxFlow()(problem)
    >>> solution.problem.prior.round(6).tolist(), round(solution.value, 6)
    ([0.25, 0.5, 0.25], 1.966347)
    """

    refusal = (
        "MinimaxFlow() takes two or more labels, squared loss with a bias penalty above 0, and outputs on the line or "
        "an interval"
    )

    engine: Clarabel = field(default_factory=lambda: Clarabel(1e-9))

    def _solution(self, problem: Problem) -> Solution:
        intervals, calls = descended(problem, FEWEST, self._programs(FLOORS[0]), self.engine.solve, rounds=self.rounds)
        found = list[tuple[float, Solution]]()
        for floor in FLOORS:
            program_of = partial(self._programs(floor), problem)
            try:
                *_, answer = growing(program_of, intervals, self.engine.solve, rounds=self.rounds, polish=used)
                calls += answer.calls
                stats = Stats(repr(self), iterations=calls, status=answer.status)
                solution = self._claim(answer.program, answer.point, stats)
            except SolverFailed:
                if not found and floor == FLOORS[-1]:
                    raise
                continue
            found.append((worst_case_gap(solution), solution))
            if found[-1][0] <= self.gap:
                break
        return min(found, key=itemgetter(0))[1]

    @staticmethod
    def _programs(floor: float) -> Callable[[Problem, Intervals], MinimaxProgram]:
        return lambda problem, intervals: MinimaxProgram(problem, *intervals, floor=floor)

    def _claim(self, program: MinimaxProgram, point: Point, stats: Stats) -> Solution:
        """The claim of a point without a floor: a worst prior, the randomizer, and multipliers."""
        prior = program.prior(point)
        worst = replace(program.problem, prior=prior)
        arcs = balanced(worst, program.arcs(point))
        dual = repair(worst, arcs, program.dual(point.potentials, prior), gap=self.gap)
        return Solution(worst, randomizer_of(worst, arcs), dual, stats)
