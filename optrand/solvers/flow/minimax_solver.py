"""Squared loss without a prior: the randomizer whose largest loss over labels is least, and the prior as proof."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field, replace
from operator import itemgetter

from optrand.certificates.largest_loss import certify_largest_loss
from optrand.errors import InvalidInput, SolverFailed
from optrand.model import losses
from optrand.model.feasibility import balanced
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Solution, Stats
from optrand.solvers.backends.cones import Clarabel
from optrand.solvers.dual_repair import repair
from optrand.solvers.failures import solver_failures
from optrand.solvers.flow.levels import Intervals, all_arcs, coarsened, refined, united, widened
from optrand.solvers.flow.minimax_interior_point import used
from optrand.solvers.flow.minimax_program import MinimaxPoint, MinimaxProgram
from optrand.solvers.flow.program import FlowPoint, FlowProgram

__all__ = ["MinimaxFlow"]

FEWEST = 64
"""Up to so many labels all intervals are arcs."""

FLOORS = (1e-4, 1e-7, 1e-10)
"""Under the prior, while the arcs in use are looked for: the first is taken that shows those of the exact answer."""

VIOLATED = 1e-11
"""Arcs that cost less than minus this, in units of the loss, are missing from a program."""

COARSE_VIOLATED = 1e-6
"""Violation above which arcs are missing where the answer only points at the arcs of the next level."""


@dataclass(frozen=True)
class MinimaxFlow:
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

    engine: Clarabel = field(default_factory=lambda: Clarabel(1e-9))
    rounds: int = 4
    gap: float = 1e-10

    def accepts(self, problem: Problem) -> bool:
        """Squared loss, a positive bias penalty, outputs that are not a grid, and at least two labels."""
        squared = problem.loss == losses.squared and problem.bias_penalty > 0
        return squared and not isinstance(problem.outputs, Grid) and problem.k > 1

    def __call__(self, problem: Problem) -> Solution:
        """The answer to `problem` under a worst prior instead of its own; a claim, to be certified."""
        if not self.accepts(problem):
            raise InvalidInput(
                "MinimaxFlow() takes two or more labels, squared loss with a bias penalty above 0, and outputs on the "
                "line or an interval"
            )
        with solver_failures(self):
            return self._answered(problem)

    def _answered(self, problem: Problem) -> Solution:
        start = time.perf_counter()
        levels = list(coarsened(problem, FEWEST))
        intervals = all_arcs(levels[-1][0].k if levels else problem.k)
        calls = 0
        for level, (coarse, kept) in reversed(list(enumerate(levels))):
            program, point, more = self._found(coarse, intervals)
            calls += more
            shape = FlowProgram(coarse, program.first, program.last)
            looks = FlowPoint(point.potentials, *(x[: program.n] for x in (point.multipliers, point.slacks)))
            intervals = refined(shape, looks, kept, levels[level - 1][0].k if level else problem.k)
        found = list[tuple[float, Solution]]()
        for floor in FLOORS:
            try:
                program, point, status, more = self._answer(problem, intervals, floor)
                calls += more
                stats = Stats(repr(self), time.perf_counter() - start, calls, status)
                solution = self._solution(program, point, stats)
            except SolverFailed:
                if not found and floor == FLOORS[-1]:
                    raise
                continue
            found.append((certify_largest_loss(solution).gap, solution))
            if found[-1][0] <= 2 * self.gap:
                break
        return min(found, key=itemgetter(0))[1]

    def _solution(self, program: MinimaxProgram, point: MinimaxPoint, stats: Stats) -> Solution:
        """The claim of a point without a floor: a worst prior, the randomizer, and multipliers."""
        prior = program.prior(point)
        worst = replace(program.problem, prior=prior)
        arcs = balanced(worst, program.arcs(point))
        dual = repair(worst, arcs, program.dual(point, prior), gap=self.gap)
        return Solution(worst, Randomizer.of_arcs(worst.labels, arcs, worst.epsilon), dual, stats)

    def _found(self, problem: Problem, intervals: Intervals) -> tuple[MinimaxProgram, MinimaxPoint, int]:
        """The engine's answer on a coarse level, with the arcs added that it turned out to lack."""
        for calls in itertools.count(1):
            program = MinimaxProgram(problem, *intervals, floor=FLOORS[0])
            point = program.read(self.engine.solve(program.build()))
            missing = program.lacking(point.potentials, COARSE_VIOLATED)
            if not missing[0].size or calls >= self.rounds:
                break
            intervals = united(problem.k, intervals, widened(problem.k, *missing, by=2))
        return program, point, calls

    def _answer(
        self, problem: Problem, intervals: Intervals, floor: float
    ) -> tuple[MinimaxProgram, MinimaxPoint, str, int]:
        """The polished answer on the finest level."""
        for calls in itertools.count(1):
            whole = MinimaxProgram(problem, *intervals, floor=floor)
            answer = self.engine.solve(whole.build())
            program, point = used(whole, whole.read(answer))
            missing = program.lacking(point.potentials, VIOLATED)
            more = united(problem.k, intervals, widened(problem.k, *missing, by=2))
            if more[0].size == whole.n or calls >= self.rounds:
                break
            intervals = more
        return program, point, answer.status, calls
