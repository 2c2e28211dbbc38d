"""Any problem on a grid, as one linear program."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

from optrand.model import losses
from optrand.model.feasibility import mend_masses
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Dual, Solution, Stats
from optrand.model.staircase import decompose, rounding_noise
from optrand.solvers.backends.base import Backend
from optrand.solvers.backends.highs import Highs
from optrand.solvers.backends.linear import LP, LPSolution
from optrand.solvers.dual_repair import randomizer_of
from optrand.solvers.failures import GuardedSolver
from optrand.solvers.grid.finish import finished
from optrand.solvers.grid.floor import Floor
from optrand.solvers.grid.lp2 import LP2

__all__ = ["GridProgram", "LinearProgram"]


class GridProgram(Protocol):
    """Linear program of a problem, and its answer read as a randomizer."""

    def build(self, problem: Problem) -> LP:
        """The program."""
        ...

    def read(self, problem: Problem, answer: LPSolution) -> tuple[Randomizer, Dual]:
        """The randomizer and the multipliers."""
        ...


@dataclass(frozen=True)
class LinearProgram(GuardedSolver):
    """Build a program, hand it to a backend, read the answer.

    Attributes
    ----------
    program : programs.Floor, programs.Pairwise or programs.LP2
    backend : backends.Highs, backends.Scipy or backends.Cvxpy

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0, outputs=[-2, -1, 0, 1, 2, 3, 4])
    >>> solution = LinearProgram()(problem)
    >>> proof = optrand.certify(solution)
    >>> proof.gap < 1e-9, round(proof.upper, 6)
    (True, 2.003059)
    """

    refusal = (
        "LinearProgram() takes outputs on a grid and a bias penalty of 0 or infinity, with LP2 classification only: "
        "use solve(problem), which knows who takes what"
    )

    program: GridProgram = field(default_factory=Floor)
    backend: Backend = field(default_factory=Highs)

    def accepts(self, problem: Problem) -> bool:
        """Outputs on a grid, a bias penalty of 0 or infinity; LP2 only for classification."""
        if isinstance(self.program, LP2) and problem.loss != losses.zero_one:
            return False
        return isinstance(problem.outputs, Grid) and (problem.unbiased or not problem.bias_penalty)

    def _solution(self, problem: Problem) -> Solution:
        return finished(problem, self._in_floats)

    def _in_floats(self, problem: Problem) -> Solution:
        answer = self.backend.solve(self.program.build(problem))
        randomizer, dual = self.program.read(problem, answer)
        stats = Stats(repr(self), iterations=answer.iterations, status=answer.status)
        return Solution(problem, _mended(problem, randomizer), dual, stats)


def _mended(problem: Problem, randomizer: Randomizer) -> Randomizer:
    """The table with its rows and means right to the last digits, where a backend stops at its tolerance."""
    arcs = decompose(randomizer, math.exp(problem.epsilon), negligible=rounding_noise(problem.epsilon))
    return randomizer_of(problem, mend_masses(problem, arcs, means=problem.unbiased))
