"""Squared loss on the line or an interval: two attempts of the interior point on candidate arcs."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from optrand.errors import Infeasible, InvalidInput, SolverFailed
from optrand.model import losses
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.randomizer import Solution, Stats
from optrand.solvers.closed_form import feasible_answer
from optrand.solvers.compiled import compile_kernels
from optrand.solvers.cones import solve_cones
from optrand.solvers.dual_repair import repair
from optrand.solvers.failures import GuardedSolver
from optrand.solvers.gaps import PROVEN, decided_gap
from optrand.solvers.optimality import candidates
from optrand.solvers.reduced_dual.descent import Descent, Rung, TimeOver, TooWide
from optrand.solvers.reduced_dual.reduced import Claim, Reduced

__all__ = ["OUT_OF_TIME", "ReducedDual", "refuse_close_labels"]

CLOSEST = 1e-13
"""Labels that differ by less than this share of the range of all labels are not told apart."""

REPAIR = 6.0
"""Seconds for finding multipliers of the cone program's answer that price all sets of labels."""

OUT_OF_TIME = "time limit"
"""Status of a solution that is the best so far."""

ATTEMPTS = (Rung(priced=False), Rung(3, 32, floor=1e-6, cautious=True))
"""Options of a first attempt, and of a second one with more arcs and safeguarded steps.

The first attempt proves 99 % of random problems, the second most of the rest; further ones proved none.
"""


@dataclass(frozen=True)
class ReducedDual(GuardedSolver):
    """Interior point on the arcs near the path of cheapest intervals, level by level; then the cone program.

    The cone program (:mod:`optrand.solvers.cones`) is solved if two attempts of the interior point prove too little.
    The answer of the smallest gap is returned.

    Attributes
    ----------
    gap : float
        Relative gap, proven in floats, at which an answer is taken; the best one otherwise.
    time_limit : float
        Seconds, looked at between levels. When they have passed, the answer is the best one so far, or a feasible one
        in closed form (:func:`optrand.solvers.closed_form.feasible_answer`), and its status is "time limit".

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
    time_limit: float = math.inf

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
        refuse_close_labels(problem)

    def _solution(self, problem: Problem) -> Solution:
        compile_kernels(problem.k)
        end = time.perf_counter() + self.time_limit
        best = self._descended(Reduced(problem), end)
        if not best.gap <= self.gap and time.perf_counter() < end:
            best = self._with_cones(problem, best, end)
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
        raise SolverFailed("neither the interior point nor the cone program has an answer")

    def _with_cones(self, problem: Problem, best: Claim, end: float) -> Claim:
        """Return the better one of a claim and the answer of the cone program.

        At a bias penalty the columns in use leave multipliers open, and those of the cone program price intervals only.
        """
        with suppress(SolverFailed):
            for found in candidates(*solve_cones(problem)):
                arcs, dual = found.randomizer.arcs, found.dual
                if not problem.unbiased and arcs is not None and dual is not None:
                    seconds = min(REPAIR, end - time.perf_counter())
                    found = replace(found, dual=repair(problem, arcs, dual, gap=self.gap, seconds=seconds))
                gap = decided_gap(found)
                if best.solution is None or gap < best.gap:
                    best = Claim(found, gap, best.steps)
                if gap <= self.gap:
                    break
        return best

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
