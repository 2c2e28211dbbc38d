"""Problems with squared loss, a price of bias, and outputs on the line or an interval: flows of interval columns."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from optrand.errors import InvalidInput
from optrand.model import losses
from optrand.model.arcs import Arcs
from optrand.model.feasibility import balanced, imbalance
from optrand.model.outputs import Grid, Interval
from optrand.model.problem import Problem
from optrand.model.solution import Dual, Solution, Stats
from optrand.solvers.backends.cones import Clarabel
from optrand.solvers.backends.conic import ConicProgram, ConicSolution
from optrand.solvers.closed_form import feasible_answer
from optrand.solvers.dual_repair import randomizer_of, relative_gap, repair
from optrand.solvers.failures import GuardedSolver
from optrand.solvers.flow.interior_point import used
from optrand.solvers.flow.levels import descended, growing
from optrand.solvers.flow.program import FlowProgram
from optrand.solvers.gaps import PROVEN

__all__ = ["CLOSEST", "OUT_OF_TIME", "ArcSolver", "Flow", "refuse_close_labels"]

FEWEST = 32
"""Up to so many labels all intervals are arcs."""

COARSE = 1e-7
"""The engine's tolerance where its answer only points at the arcs of the next level."""

REPAIRS = 8
"""Rounds of a repair of the multipliers before arcs are added."""

ENDS = 1e-6
"""Outputs so near to an end of their interval, as a share of it, may belong there."""

FEASIBLE = 1e-12
"""An imbalance that rounding explains."""

CLOSEST = 1e-13
"""Labels that differ by less than this share of the range of all labels are not told apart."""

OUT_OF_TIME = "time limit"
"""The status of a solution that is the best so far."""


@dataclass(frozen=True)
class ArcSolver(GuardedSolver):
    """Options of a solver of cone programs over arcs, and the problems that it takes."""

    engine: Clarabel = field(default_factory=lambda: Clarabel(1e-8))
    rounds: int = 4
    gap: float = PROVEN

    def accepts(self, problem: Problem) -> bool:
        """Squared loss, a positive bias penalty, outputs that are not a grid, and at least two labels."""
        squared = problem.loss == losses.squared and problem.bias_penalty > 0
        return squared and not isinstance(problem.outputs, Grid) and problem.k > 1


@dataclass(frozen=True)
class Flow(ArcSolver):
    """Solve the cone program of flows level by level, polish the answer, and add arcs until none is missing.

    Attributes
    ----------
    engine : backends.Clarabel
        Finds the arcs in use; its tolerance need not be that of the answer.
    rounds : int
        How often arcs may be added on one level.
    gap : float
        The relative gap for which the multipliers are repaired (:mod:`optrand.solvers.dual_repair`).
    time_limit : float
        Seconds, looked at between steps. When they have passed, the answer is the best one so far and its status is
        "time limit": the one that was polished last, or, before that, one in closed form
        (:func:`optrand.solvers.closed_form.feasible_answer`).

    Notes
    -----
    On each level the engine sees some ``8 k`` arcs, and pricing all of them takes ``O(k^2)`` time and ``O(k)`` memory:
    milliseconds at 53 labels, tenths of a second at 401, seconds at 4,001.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> proof = optrand.solve(problem, Flow()).certificate
    >>> proof.gap < 1e-9, round(proof.upper, 6)
    (True, 1.945447)
    """

    refusal = (
        "Flow() takes squared loss with a bias penalty above 0 and outputs on the line or an interval: "
        "use ColumnGeneration() for a grid and BinPath() where bias is free"
    )

    time_limit: float = math.inf

    def _check(self, problem: Problem) -> None:
        """Refuse as well labels that are too close together."""
        super()._check(problem)
        refuse_close_labels(problem)

    def _solution(self, problem: Problem) -> Solution:
        end = time.perf_counter() + self.time_limit
        try:
            arcs, dual, status, rounds = self.arcs(problem)
        except _OutOfTime:
            return replace(feasible_answer(problem), stats=Stats(repr(self), status=OUT_OF_TIME))
        dual = repair(problem, arcs, dual, gap=self.gap, seconds=end - time.perf_counter())
        randomizer = randomizer_of(problem, arcs)
        return Solution(problem, randomizer, dual, Stats(repr(self), iterations=rounds, status=status))

    def arcs(self, problem: Problem) -> tuple[Arcs, Dual, str, int]:
        """The arcs of the answer, the multipliers before any repair, the solver status and the number of calls."""
        clock = _Clock(self.time_limit)
        program_of = lambda problem, intervals: FlowProgram(problem, *intervals)  # noqa: E731
        coarse = replace(self.engine, tolerance=max(self.engine.tolerance, COARSE))
        intervals, calls = descended(problem, FEWEST, program_of, partial(clock.answer, coarse), rounds=self.rounds)
        engine = partial(clock.answer, self.engine)
        for answer in growing(partial(program_of, problem), intervals, engine, rounds=self.rounds, polish=used):
            arcs, dual = answer.program.arcs(answer.point), answer.program.dual(answer.point.potentials)
            candidates = [arcs, _on_the_ends(problem, arcs)] if isinstance(problem.outputs, Interval) else [arcs]
            arcs = _best(problem, dual, [balanced(problem, some) for some in candidates])
            if answer.final or clock.left <= 0:
                break
            if not problem.unbiased:
                # The arcs in use do not determine the multipliers, and others may price all arcs right.
                dual = repair(problem, arcs, dual, gap=self.gap, rounds=REPAIRS, seconds=clock.left)
                if relative_gap(problem, arcs, dual) <= self.gap:
                    break
        late = clock.left <= 0 and not answer.final
        return arcs, dual, OUT_OF_TIME if late else answer.status, calls + answer.calls


def _on_the_ends(problem: Problem, arcs: Arcs) -> Arcs:
    """Outputs next to an end of their interval moved onto it: there many arcs may share one."""
    low, high = problem.outputs.low, problem.outputs.high
    near = ENDS * (high - low)
    outputs = np.where(arcs.outputs < low + near, low, np.where(arcs.outputs > high - near, high, arcs.outputs))
    return Arcs(arcs.k, arcs.first, arcs.last, outputs, arcs.masses)


def _best(problem: Problem, dual: Dual, found: list[Arcs]) -> Arcs:
    """Arcs of the best value among those that rounding alone keeps from being feasible; else the nearest to it."""
    if len(found) == 1:
        return found[0]
    feasible = [arcs for arcs in found if imbalance(problem, arcs) <= FEASIBLE]
    if not feasible:
        return min(found, key=lambda arcs: imbalance(problem, arcs))
    return min(feasible, key=lambda arcs: relative_gap(problem, arcs, dual))


def refuse_close_labels(problem: Problem) -> None:
    """Refuse labels that are too close together, by their positions."""
    gaps = np.diff(problem.labels)
    closest = int(gaps.argmin())
    share = float(gaps[closest] / np.ptp(problem.labels))
    if share < CLOSEST:
        raise InvalidInput(
            f"labels number {closest} and {closest + 1} in increasing order are {share:.1g} of the labels' range "
            f"apart, too close for floats to tell apart in a solution (at least {CLOSEST:g}): merge them"
        )


class _OutOfTime(Exception):
    """The limit has passed before there was an answer."""


class _Clock:
    """Time limit of a solve, and the seconds that are left."""

    def __init__(self, limit: float) -> None:
        self.end = time.perf_counter() + limit

    @property
    def left(self) -> float:
        """Seconds, negative when the limit has passed."""
        return self.end - time.perf_counter()

    def answer(self, engine: Clarabel, program: ConicProgram) -> ConicSolution:
        """The engine's answer in the time that is left."""
        if self.left > 0:
            answer = replace(engine, time_limit=min(engine.time_limit, self.left)).solve(program)
            if self.left > 0:
                return answer
        raise _OutOfTime
