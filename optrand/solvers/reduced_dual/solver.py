"""Squared loss on the line or an interval: descents, ever wider, and the flow behind them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np

from optrand.certificates.quick import quick_gap
from optrand.errors import SolverFailed
from optrand.model import losses
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.solution import Solution
from optrand.solvers.closed_form import debiased_rr_within
from optrand.solvers.dual_repair import relative_gap, repair
from optrand.solvers.failures import GuardedSolver
from optrand.solvers.flow.solver import OUT_OF_TIME, Flow, refuse_close_labels
from optrand.solvers.reduced_dual.descent import Descent, Rung, TimeOver, TooWide
from optrand.solvers.reduced_dual.reduced import Claim, Reduced

__all__ = ["ReducedDual"]

ENOUGH = 1e-9
"""Relative gap above which the flow is asked."""

UNTOLD = 1e-5
"""Relative gaps below this, in floats, may be less."""

PATIENCE = 6.0
"""Seconds of a repair, and by default of the flow: where the ladder fails it takes minutes, or proves no more."""

LADDER = (Rung(priced=False), Rung(3, 32, floor=1e-6), Rung(4, 64, floor=1e-8), Rung(8, 128, floor=1e-10))
"""Ever wider descents."""

LAST = Rung(4, 64, floor=1e-8, work=4.0)
"""The descent that follows where a band was too wide, and no other one has proven enough."""


@dataclass(frozen=True)
class ReducedDual(GuardedSolver):
    """Interior point on the arcs near the path of cheapest intervals; behind it `Flow`, where none of a ladder proves.

    Attributes
    ----------
    gap : float
        Relative gap, proven in floats, at which an answer is taken; the best one otherwise.
    flow : Flow
        What is asked where the ladder falls short by more; by default for 6 seconds. Some problems need
        ``Flow(time_limit=600)``.
    time_limit : float
        Seconds, looked at between levels. When they have passed, the answer is the best one so far, or
        what `Flow` has without time, and its status is "time limit".

    Notes
    -----
    ``O(k log k)`` time in practice, and ``O(k)`` memory. With numba installed (``pip install optrand[fast]``) the
    kernel is compiled: for half a minute at the first problem ever, then it is kept on disk.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> proof = optrand.certify(ReducedDual()(problem))
    >>> proof.gap < 1e-12, round(proof.upper, 6)
    (True, 1.945447)
    """

    gap: float = 9e-10
    flow: Flow = field(default_factory=lambda: Flow(time_limit=PATIENCE))
    time_limit: float = math.inf

    refusal = (
        "ReducedDual() takes squared loss with a bias penalty above 0, outputs on the line or an interval, and at "
        "least two labels: use ColumnGeneration() for a grid and BinPath() where bias is free"
    )

    def accepts(self, problem: Problem) -> bool:
        """Squared loss, a positive bias penalty, outputs that are not a grid, and at least two labels."""
        squared = problem.loss == losses.squared and problem.bias_penalty > 0
        return squared and not isinstance(problem.outputs, Grid) and problem.k > 1

    def _check(self, problem: Problem) -> None:
        """Refuse as well labels that are too close together."""
        super()._check(problem)
        refuse_close_labels(problem)

    def _solution(self, problem: Problem) -> Solution:
        response = debiased_rr_within(problem)
        if response:
            return response
        reduced, end = Reduced(problem), time.perf_counter() + self.time_limit
        best, failure = self._climbed(reduced, end), SolverFailed("no descent ended")
        if not best.gap <= ENOUGH and not problem.unbiased:
            best = self._repaired(best, end)
        if not best.gap <= ENOUGH:
            flow = replace(self.flow, time_limit=min(self.flow.time_limit, end - time.perf_counter()))
            try:
                found = flow(problem)
            except SolverFailed as error:
                failure = error
            else:
                gap = self._gap(found, quick_gap(found))
                # An answer that is proven less well is better than none.
                if best.solution is None or not best.gap <= gap:
                    best = best._replace(solution=found, gap=gap)
        if best.solution is None:
            raise failure
        late = end <= time.perf_counter() and best.gap > self.gap
        status = OUT_OF_TIME if late else best.solution.stats.status
        stats = replace(best.solution.stats, iterations=best.steps, status=status)
        return replace(best.solution, problem=problem, stats=stats)

    def _climbed(self, reduced: Reduced, end: float) -> Claim:
        """The best claim of the rungs, up to the first one that is good enough."""
        best, wide = Claim(None, math.inf, 0), False
        for rung in (*LADDER, LAST):
            if rung is LAST and not wide:
                break
            try:
                claim = Descent(reduced, rung, end).claim()
            except TooWide:
                wide = True
                continue
            except np.linalg.LinAlgError:
                continue
            except TimeOver:
                break
            gap = math.inf if claim.solution is None else self._gap(claim.solution, claim.gap)
            solution = claim.solution if gap < best.gap else best.solution
            best = Claim(solution, min(gap, best.gap), best.steps + claim.steps)
            if best.gap <= self.gap:
                break
        return best

    def _repaired(self, claim: Claim, end: float) -> Claim:
        """The claim with multipliers for which sets of labels that are no intervals cost enough, where some are found.

        At a finite penalty those of a descent may leave such sets too cheap.
        """
        solution, seconds = claim.solution, min(PATIENCE, end - time.perf_counter())
        if solution is None or solution.randomizer.arcs is None or solution.dual is None or seconds <= 0:
            return claim
        dual = repair(solution.problem, solution.randomizer.arcs, solution.dual, gap=self.gap, seconds=seconds)
        found = replace(solution, dual=dual)
        gap = self._gap(found, quick_gap(found))
        return claim._replace(solution=found, gap=gap) if gap < claim.gap else claim

    def _gap(self, solution: Solution, gap: float) -> float:
        """The proven gap in floats, or, where they do not tell, by the exact bound."""
        arcs, dual = solution.randomizer.arcs, solution.dual
        if self.gap < gap < UNTOLD and arcs is not None and dual is not None:
            gap = relative_gap(solution.problem, arcs, dual)
        return gap
