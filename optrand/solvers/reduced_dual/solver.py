"""Squared loss on the line or an interval: two descents, and the flow behind them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np

from optrand.base.compiled import compile_kernels
from optrand.errors import SolverFailed
from optrand.model import losses
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.solution import Solution
from optrand.solvers.failures import GuardedSolver
from optrand.solvers.flow.solver import OUT_OF_TIME, Flow, refuse_close_labels
from optrand.solvers.gaps import PROVEN, decided_gap
from optrand.solvers.reduced_dual.descent import Descent, Rung, TimeOver, TooWide
from optrand.solvers.reduced_dual.reduced import Claim, Reduced

__all__ = ["ReducedDual"]

PATIENCE = 6.0
"""Seconds of the flow by default: if both attempts fail it takes minutes, or proves no more."""

ATTEMPTS = (Rung(priced=False), Rung(3, 32, floor=1e-6, cautious=True))
"""A descent, and one that is wider and more cautious."""


@dataclass(frozen=True)
class ReducedDual(GuardedSolver):
    """Interior point on the arcs near the path of cheapest intervals, and `Flow` if two attempts prove too little.

    Attributes
    ----------
    gap : float
        Relative gap, proven in floats, at which an answer is taken; the best one otherwise.
    flow : Flow
        Solver to call if two attempts prove too little; by default for 6 seconds. Some problems need
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
    >>> proof = optrand.solve(problem, ReducedDual()).certificate
    >>> proof.gap < 1e-12, round(proof.upper, 6)
    (True, 1.945447)
    """

    gap: float = PROVEN
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
        compile_kernels(problem.k)
        reduced, end = Reduced(problem), time.perf_counter() + self.time_limit
        best, failure = self._descended(reduced, end), SolverFailed("no descent ended")
        if not best.gap <= PROVEN:
            flow = replace(self.flow, time_limit=min(self.flow.time_limit, end - time.perf_counter()))
            try:
                found = flow(problem)
            except SolverFailed as error:
                failure = error
            else:
                gap = decided_gap(found)
                # An answer that is proven less well is better than none.
                if best.solution is None or not best.gap <= gap:
                    best = best._replace(solution=found, gap=gap)
        if best.solution is None:
            raise failure
        stats = best.solution.stats
        if not stats.solver:
            stats = replace(stats, iterations=best.steps)
        if end <= time.perf_counter() and best.gap > self.gap:
            stats = replace(stats, status=OUT_OF_TIME)
        return replace(best.solution, problem=problem, stats=stats)

    def _descended(self, reduced: Reduced, end: float) -> Claim:
        """Return the best claim of the attempts, up to the first one that is good enough."""
        best = Claim(None, math.inf, 0)
        for attempt in ATTEMPTS:
            try:
                claim = Descent(reduced, attempt, end).claim()
            except (TooWide, np.linalg.LinAlgError):
                continue
            except TimeOver:
                break
            gap = math.inf if claim.solution is None else decided_gap(claim.solution)
            solution = claim.solution if gap < best.gap else best.solution
            best = Claim(solution, min(gap, best.gap), best.steps + claim.steps)
            if best.gap <= self.gap:
                break
        return best
