"""Problems with squared loss, a price of bias, and outputs on the line or an interval: flows of interval columns."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass, field, replace

from optrand import losses
from optrand.arcs import Arcs
from optrand.certificate import lower_bound
from optrand.closed_forms import debiased_rr
from optrand.errors import InvalidInput
from optrand.outputs import Grid
from optrand.problem import Problem
from optrand.programs.flow import FlowPoint, FlowProgram
from optrand.programs.interval_prices import lacking
from optrand.randomizer import Randomizer
from optrand.solution import Dual, Solution, Stats
from optrand.solvers.backends.cones import Clarabel
from optrand.solvers.dual_repair import repair
from optrand.solvers.levels import Intervals, all_arcs, coarsened, refined, united, widened
from optrand.solvers.polish import used

__all__ = ["Flow"]

FEWEST = 32
"""Up to so many labels all intervals are arcs."""

COARSE = 1e-7
"""The engine's tolerance where its answer only points at the arcs of the next level."""

VIOLATED = 1e-11
"""Arcs that cost less than minus this, in units of the loss, are missing from a program."""

COARSE_VIOLATED = 1e-6
"""The same where the answer only points at the arcs of the next level."""

PROVEN = 1e-12
"""A closed form within this share of its bound is the answer."""

WIDENED = 2
"""A missing arc brings those whose ends are up to so many labels away."""


@dataclass(frozen=True)
class Flow:
    """Solve the cone program of flows level by level, polish the answer, and add arcs until none is missing.

    At a large epsilon debiased randomized response is optimal and proven in closed form; that is tried first.

    Attributes
    ----------
    engine : backends.Clarabel
        Finds the arcs in use; its tolerance need not be that of the answer.
    rounds : int
        How often arcs may be added on one level.
    gap : float
        The relative gap for which the multipliers are repaired (:mod:`optrand.solvers.dual_repair`).

    Notes
    -----
    On each level the engine sees some ``8 k`` arcs, and pricing all of them takes ``O(k^2)`` time and ``O(k)`` memory:
    milliseconds at 53 labels, tenths of a second at 401, seconds at 4,001.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> proof = optrand.certify(Flow()(problem))
    >>> proof.gap < 1e-9, round(proof.upper, 6)
    (True, 1.945447)
    """

    engine: Clarabel = field(default_factory=lambda: Clarabel(1e-9))
    rounds: int = 4
    gap: float = 1e-10

    def accepts(self, problem: Problem) -> bool:
        """Squared loss, a positive bias penalty, outputs that are not a grid, and at least two labels."""
        squared = problem.loss == losses.squared and problem.bias_penalty > 0
        return squared and not isinstance(problem.outputs, Grid) and problem.k > 1

    def __call__(self, problem: Problem) -> Solution:
        """Solve `problem`; the answer is a claim, to be certified."""
        if not self.accepts(problem):
            raise InvalidInput(
                "Flow() takes squared loss with a bias penalty above 0 and outputs on the line or an interval: "
                "use ColumnGeneration() for a grid and BinPath() where bias is free"
            )
        start = time.perf_counter()
        response = _debiased_response(problem)
        if response:
            stats = Stats(repr(self), time.perf_counter() - start, 0, response.stats.status)
            return replace(response, problem=problem, stats=stats)
        arcs, dual, status, rounds = self.arcs(problem)
        dual = repair(problem, arcs, dual, gap=self.gap)
        randomizer = Randomizer.of_arcs(problem.labels, arcs, problem.epsilon)
        return Solution(problem, randomizer, dual, Stats(repr(self), time.perf_counter() - start, rounds, status))

    def arcs(self, problem: Problem) -> tuple[Arcs, Dual, str, int]:
        """The arcs of the answer, the multipliers before any repair, the engine's last word and its number of calls."""
        levels = list(coarsened(problem, FEWEST))
        intervals = all_arcs(levels[-1][0].k if levels else problem.k)
        calls = 0
        for level, (coarse, kept) in reversed(list(enumerate(levels))):
            program, point, _, more = self._found(coarse, intervals)
            calls += more
            intervals = refined(program, point, kept, levels[level - 1][0].k if level else problem.k)
        program, point, status, more = self._answer(problem, intervals)
        return program.arcs(point), program.dual(point.potentials), status, calls + more

    def _found(self, problem: Problem, intervals: Intervals) -> tuple[FlowProgram, FlowPoint, str, int]:
        """The engine's answer on a coarse level, with the arcs added that it turned out to lack."""
        engine = replace(self.engine, tolerance=max(self.engine.tolerance, COARSE))
        for calls in itertools.count(1):
            program = FlowProgram(problem, *intervals)
            answer = engine.solve(program.build())
            point = program.read(answer)
            missing = lacking(program, point.potentials, COARSE_VIOLATED)
            if not missing[0].size or calls >= self.rounds or program.n == program.k * (program.k + 1) // 2:
                break
            intervals = united(problem.k, intervals, widened(problem.k, *missing, by=WIDENED))
        return program, point, answer.status, calls

    def _answer(self, problem: Problem, intervals: Intervals) -> tuple[FlowProgram, FlowPoint, str, int]:
        """The polished answer on the finest level."""
        for calls in itertools.count(1):
            program = FlowProgram(problem, *intervals)
            answer = self.engine.solve(program.build())
            program, point = used(program, program.read(answer))
            missing = lacking(program, point.potentials, VIOLATED)
            if not missing[0].size or calls >= self.rounds:
                break
            intervals = united(problem.k, intervals, widened(problem.k, *missing, by=WIDENED))
        return program, point, answer.status, calls


def _debiased_response(problem: Problem) -> Solution | None:
    """Debiased randomized response where its dual proves it optimal: from some epsilon on it always is."""
    if not problem.unbiased or math.expm1(problem.epsilon) < problem.k:
        return None
    try:
        found = debiased_rr(problem.labels, problem.epsilon, prior=problem.prior)
    except InvalidInput:
        return None
    outputs = found.randomizer.outputs
    inside = problem.outputs.low <= outputs[0] and outputs[-1] <= problem.outputs.high
    if not inside or found.dual is None:
        return None
    value = found.value
    return found if lower_bound(problem, found.dual) >= value - PROVEN * value else None
