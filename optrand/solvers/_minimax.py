r"""Squared loss without a prior: the randomizer whose largest loss over labels is least, and a worst prior as proof.

1. Solve the cone program whose prior is unknown (:mod:`optrand.solvers._cones`). A worst prior often vanishes at half
   of the labels, and then many randomizers are optimal. A small lower bound on the prior selects one of few columns.
2. Solve it again over these columns alone, without the lower bound.
3. Solve the conditions of an optimum on these columns by Newton's method, and restore rows, means and equal losses of
   the labels in use to rounding.
4. If that proves too little, or of more than 128 labels, take the multipliers of
   :class:`~optrand.solvers.ReducedDual` at the worst prior.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from optrand import losses
from optrand.certificates._certificate import PROVEN
from optrand.errors import InvalidInput, SolverFailed
from optrand.mechanism._tabulation import NO_MECHANISM, Solution
from optrand.model._problem import Grid, Problem
from optrand.solvers._cones import ConeOptions, only, solve_cones
from optrand.solvers._interface import GuardedSolver, Reduction
from optrand.solvers._optimality import candidates
from optrand.solvers.reduced_dual._solver import ReducedDual


@dataclass(frozen=True)
class WorstPrior(GuardedSolver):
    """Solve the cone program whose prior is a variable, and prove its answer.

    Attributes
    ----------
    gap : float
        Relative gap between the largest loss and its bound at which an answer is taken. Otherwise it is the best one.
    options : ConeOptions
    floors : tuple of float
        ``k`` times the lower bound of the prior while the columns in use are looked for.
    useless : float
        Relative gap above which an answer is refused.

    Notes
    -----
    A few calls of Clarabel on a level, of ``8 k`` cones: 0.1 s at 53 labels, seconds at 401.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> solution = WorstPrior()(problem)
    >>> solution.problem.prior.round(6).tolist(), round(solution.value, 6)
    ([0.25, 0.5, 0.25], 1.966347)
    """

    gap: float = PROVEN
    options: ConeOptions = field(default_factory=ConeOptions)
    floors: tuple[float, ...] = (1e-4, 1e-7)
    useless: float = field(default=0.1, repr=False)

    refusal = (
        "WorstPrior() takes two or more labels, squared loss with a bias penalty above 0, and outputs on the line or "
        "an interval"
    )

    def accepts(self, problem: Problem) -> bool:
        """Return whether the loss is squared, the bias penalty positive, and outputs are not on a grid."""
        squared = problem.loss == losses.squared and problem.bias_penalty > 0
        return squared and not isinstance(problem.outputs, Grid) and problem.k > 1

    def _solution(self, problem: Problem) -> Solution:
        best, least = None, math.inf
        for candidate in self._candidates(problem):
            gap = _worst_case_gap(candidate)
            if gap < least:
                best, least = candidate, gap
            if least <= self.gap:
                break
        if best is None or least > self.useless:
            raise SolverFailed("no answer is nearly proven: epsilon is too large for floats")
        return best

    def _candidates(self, problem: Problem) -> Iterator[Solution]:
        """Generate answers: of few columns first, then of all, without a lower bound of the prior."""
        calls = 0
        for floor in (*self.floors, 0.0):
            with suppress(SolverFailed):
                program, answer, count = solve_cones(problem, unknown=True, options=self.options, floor=floor)
                calls += count
                if floor:
                    program, answer = only(program, answer.in_use, self.options)
                    calls += 1
                for found in candidates(program, answer, calls):
                    yield found
                    # A solver for a known prior may prove more at the prior that was found.
                    yield from _with_kernel_multipliers(found)


def _worst_case_gap(solution: Solution) -> float:
    """Return the relative gap that is proven of the largest loss over labels, infinite if it is not feasible."""
    try:
        proof = solution.mechanism.certify(worst_case=True)
    except NO_MECHANISM:
        return math.inf
    return math.inf if proof.findings else proof.gap


def _with_kernel_multipliers(solution: Solution) -> Iterator[Solution]:
    """Generate the answer with the multipliers of the reduced dual at its prior."""
    with suppress(SolverFailed, InvalidInput):
        reduction = Reduction(solution.problem)
        yield replace(solution, dual=reduction.invert(ReducedDual()(reduction.apply())).dual)
