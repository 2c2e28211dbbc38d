"""Problems with outputs anywhere on the line or an interval: flows of interval staircases."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from optrand import losses
from optrand.errors import InvalidInput
from optrand.mending import mend_masses, mend_outputs
from optrand.outputs import Grid
from optrand.problem import Problem
from optrand.programs.flow import ConicFlow, LinearFlow, all_intervals
from optrand.randomizer import Randomizer
from optrand.solution import Dual, Solution, Stats
from optrand.solvers.backends.base import Backend
from optrand.solvers.backends.cones import Clarabel
from optrand.solvers.backends.highs import Highs
from optrand.solvers.dual_repair import repair
from optrand.staircase import Staircase

__all__ = ["Flow"]

SPURIOUS = 1e-9
"""Columns with less mass (times ``E``) are dropped from an interior-point answer."""


MAX_LABELS = 600
"""More would fill the memory of a small machine with columns: there are ``k (k + 1) / 2``."""


@dataclass(frozen=True)
class Flow:
    """Solve over all intervals of labels at once: cones for a positive bias penalty, a linear program for none.

    Attributes
    ----------
    engine : backends.Clarabel
        For the cones.
    backend : Backend
        For the linear program.
    gap : float
        The relative gap for which the multipliers are repaired (:mod:`optrand.solvers.dual_repair`).

    Notes
    -----
    ``k (k + 1) / 2`` columns: milliseconds at 53 labels, seconds at 400.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> proof = optrand.certify(Flow()(problem))
    >>> proof.gap < 1e-9, round(proof.upper, 6)
    (True, 1.945447)
    """

    engine: Clarabel = field(default_factory=Clarabel)
    backend: Backend = field(default_factory=Highs)
    gap: float = 1e-7

    def accepts(self, problem: Problem) -> bool:
        """Outputs that are not a grid; squared loss, or no care for bias."""
        convex = problem.loss == losses.squared or not problem.bias_penalty
        return convex and not isinstance(problem.outputs, Grid)

    def __call__(self, problem: Problem) -> Solution:
        """Solve `problem`; the answer is a claim, to be certified."""
        if not self.accepts(problem):
            raise InvalidInput("Flow() takes outputs on the line or an interval: use ColumnGeneration() for a grid")
        if problem.k > MAX_LABELS:
            raise InvalidInput(
                f"there are {problem.k} labels, and Flow() works over all intervals of up to {MAX_LABELS}: merge labels"
            )
        start = time.perf_counter()
        arcs, dual, status, iterations = self.columns(problem)
        dual = repair(problem, arcs, dual, gap=self.gap)
        outputs, table = arcs.table(math.exp(problem.epsilon))
        randomizer = Randomizer(problem.labels, outputs, table, problem.epsilon)
        return Solution(problem, randomizer, dual, Stats(repr(self), time.perf_counter() - start, iterations, status))

    def columns(self, problem: Problem) -> tuple[Staircase, Dual, str, int]:
        """The staircase columns of the answer and the engine's own multipliers, before any repair."""
        members = all_intervals(problem.k)
        if not problem.bias_penalty:
            linear = LinearFlow(problem, members)
            answer = self.backend.solve(linear.build())
            arcs, dual = linear.read(answer)
            return mend_masses(problem, arcs, means=False), dual, answer.status, answer.iterations
        program = ConicFlow(problem, members)
        conic = self.engine.solve(program.build())
        arcs, dual = program.read(conic)
        arcs = mend_masses(problem, arcs.only(arcs.masses * math.exp(problem.epsilon) > SPURIOUS), means=False)
        if problem.unbiased:
            arcs = mend_outputs(problem, arcs)
        return arcs, dual, conic.status, conic.iterations
