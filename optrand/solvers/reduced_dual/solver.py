"""Squared loss on the line or an interval: two attempts of the interior point on candidate arcs.

In an interval that is hardly wider than the narrowest one, nearly all outputs of an unbiased randomizer are its ends.
There the slacks are not differentiable, and Newton's method may cycle. Problems of few labels that both attempts leave
unproven go to the cone program (:mod:`optrand.solvers.cones`), which has a variable for each end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from optrand.errors import Infeasible, InvalidInput, SolverFailed
from optrand.model import losses
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.randomizer import Solution, Stats
from optrand.solvers.closed_form import feasible_answer
from optrand.solvers.cones import solve_cones
from optrand.solvers.failures import GuardedSolver
from optrand.solvers.gaps import PROVEN, decide_gap, estimated_gap
from optrand.solvers.optimality import candidates
from optrand.solvers.reduced_dual.descent import FIRST, SECOND, Attempt, Descent, TimeOver, TooWide
from optrand.solvers.reduced_dual.reduced import Candidate, Reduced

__all__ = ["OUT_OF_TIME", "ReducedDual"]

CLOSEST = 1e-13
"""Labels that differ by less than this share of the range of all labels are refused."""

FEW = 64
"""Largest number of labels of the cone program, all of whose intervals are then arcs."""

OUT_OF_TIME = "time limit"
"""Status of a solution that is the best so far."""


@dataclass(frozen=True)
class ReducedDual(GuardedSolver):
    """Interior point on the arcs near the path of cheapest intervals, level by level, in at most two attempts.

    Attributes
    ----------
    gap : float
        Relative gap, estimated in floats, at which an answer is taken; the best one otherwise.
    time_limit : float
        Seconds, looked at between levels. When they have passed, the answer is the best one so far, or a feasible one
        in closed form (:func:`optrand.solvers.closed_form.feasible_answer`), and its status is "time limit".
    attempts : tuple of Attempt
        Options of the attempts, the second one with more arcs and safeguarded steps.

    Notes
    -----
    ``O(k log k)`` time in practice, and ``O(k)`` memory.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> proof = optrand.solve(problem, ReducedDual()).certificate
    >>> proof.gap < 1e-12, round(proof.upper, 6)
    (True, 1.945447)
    """

    gap: float = PROVEN
    time_limit: float = math.inf
    attempts: tuple[Attempt, ...] = field(default=(FIRST, SECOND), repr=False)

    refusal = (
        "ReducedDual() takes squared loss with a bias penalty above 0, outputs on the line or an interval, and at "
        "least two labels: use GridDual() for a grid and BinPath() where bias is free"
    )

    def accepts(self, problem: Problem) -> bool:
        """Squared loss, a positive bias penalty, outputs that are not a grid, and at least two labels."""
        squared = problem.loss == losses.squared and problem.bias_penalty > 0
        return squared and not isinstance(problem.outputs, Grid) and problem.k > 1

    def _check(self, problem: Problem) -> None:
        """Refuse as well labels that are too close together."""
        super()._check(problem)
        _refuse_close_labels(problem)

    def _solution(self, problem: Problem) -> Solution:
        end = time.perf_counter() + self.time_limit
        best = self._try_all(Reduced(problem), end)
        late = time.perf_counter() >= end and not best.gap <= self.gap
        if best.solution is not None:
            status = OUT_OF_TIME if late else best.solution.stats.status
            return replace(best.solution, problem=problem, stats=Stats("", iterations=best.steps, status=status))
        if late:
            return replace(feasible_answer(problem), stats=Stats("", status=OUT_OF_TIME))
        if not problem.unbiased:
            # Multipliers of a huge penalty overflow. Those of the unbiased problem prove nearly the same optimum.
            with suppress(Infeasible):
                return replace(self._solution(replace(problem, bias_penalty=math.inf)), problem=problem)
        raise SolverFailed("the interior point has no answer")

    def _try_all(self, reduced: Reduced, end: float) -> Candidate:
        """Return the best candidate of the attempts, and then of the cone program, up to one that is good enough."""
        best = Candidate(None, math.inf, 0)
        try:
            for found in self._candidates(reduced, end):
                gap = math.inf if found.solution is None else decide_gap(found.solution, found.gap)
                solution = found.solution if gap < best.gap else best.solution
                best = Candidate(solution, min(gap, best.gap), best.steps + found.steps)
                if best.gap <= self.gap:
                    break
        except TimeOver:
            pass
        return best

    def _candidates(self, reduced: Reduced, end: float) -> Iterator[Candidate]:
        """Generate the candidate of each attempt, and for few labels without bias in an interval those of cones."""
        for attempt in self.attempts:
            with suppress(TooWide, np.linalg.LinAlgError):
                yield Descent(reduced, attempt, end).best_candidate()
        if reduced.boxed and self.attempts and reduced.problem.k <= FEW and time.perf_counter() < end:
            with suppress(SolverFailed):
                for solution in candidates(*solve_cones(reduced.problem)):
                    found = replace(solution, problem=reduced.problem)
                    yield Candidate(found, estimated_gap(found), solution.stats.iterations)


def _refuse_close_labels(problem: Problem) -> None:
    """Refuse labels that are too close together, by their positions."""
    gaps = np.diff(problem.labels)
    closest = int(gaps.argmin())
    share = float(gaps[closest] / np.ptp(problem.labels))
    if share < CLOSEST:
        raise InvalidInput(
            f"labels number {closest} and {closest + 1} in increasing order are {share:.1g} of the labels' range "
            f"apart, too close for floats to tell apart in a solution (at least {CLOSEST:g}): merge them"
        )
