"""Any problem on a grid, as one linear program."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer, Solution, Stats
from optrand.model.staircase import decompose, rounding_noise
from optrand.programs.backends import Backend, Highs
from optrand.solvers.backends.linear import solve_linear
from optrand.solvers.dual_repair import randomizer_of
from optrand.solvers.failures import GuardedSolver
from optrand.solvers.feasibility import mend_masses
from optrand.solvers.grid.floor import Floor

__all__ = ["LinearProgram"]


@dataclass(frozen=True)
class LinearProgram(GuardedSolver):
    """Solve the program with a floor per output (:class:`~optrand.solvers.grid.floor.Floor`).

    The programs as they are printed are in :mod:`optrand.programs`.

    Attributes
    ----------
    backend : Backend
        Of :mod:`optrand.programs.backends`: `Highs`, `Scipy` or `Cvxpy`.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0, outputs=[-2, -1, 0, 1, 2, 3, 4])
    >>> proof = optrand.solve(problem, LinearProgram()).certificate
    >>> proof.gap < 1e-9, round(proof.upper, 6)
    (True, 2.003059)
    """

    refusal = (
        "LinearProgram() takes outputs on a grid and a bias penalty of 0 or infinity: use solve(problem), which "
        "knows who takes what"
    )

    backend: Backend = field(default_factory=Highs)

    def accepts(self, problem: Problem) -> bool:
        """Return whether outputs are on a grid and the bias penalty is 0 or infinite."""
        return isinstance(problem.outputs, Grid) and (problem.unbiased or not problem.bias_penalty)

    def _solution(self, problem: Problem) -> Solution:
        program = Floor()
        answer = solve_linear(program.build(problem), self.backend)
        randomizer, dual = program.read(problem, answer)
        stats = Stats(repr(self), iterations=answer.iterations, status=answer.status)
        return Solution(problem, _mended(problem, randomizer), dual, stats)


def _mended(problem: Problem, randomizer: Randomizer) -> Randomizer:
    """Restore rows and means to the last digits, if a backend stopped at its tolerance."""
    arcs = decompose(randomizer, math.exp(problem.epsilon), negligible=rounding_noise(problem.epsilon))
    return randomizer_of(problem, mend_masses(problem, arcs, means=problem.unbiased))
