"""Any problem on a grid as one linear program with a floor per output (:class:`~optrand.programs.Pure`).

It has the optimum of the program with a row per pair of labels, and ``2 k n`` rows of privacy, not ``n k (k - 1)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from optrand.base._validation import Floats
from optrand.errors import InvalidInput, SolverFailed
from optrand.model._problem import Dual, Grid, Problem
from optrand.model._randomizer import Randomizer, Solution, Stats, decompose, rounding_noise
from optrand.programs._backends import Backend, Highs
from optrand.programs._constraints import Unbiased
from optrand.programs._privacy import Pure
from optrand.programs._program import Program
from optrand.solvers._dual_repair import randomizer_of
from optrand.solvers._failures import GuardedSolver
from optrand.solvers._feasibility import mend_masses
from optrand.solvers._scales import typical_loss


@dataclass(frozen=True)
class LinearProgram(GuardedSolver):
    """Solve the program with a floor per output, and restore rows, means and privacy to the last digits.

    The programs as they are printed are in :mod:`optrand.programs`.

    Attributes
    ----------
    backend : Backend
        Backend of :mod:`optrand.programs._backends`: `Highs`, `Scipy` or `Cvxpy`.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression(
    ...     [0, 1, 2], [0.5, 0.3, 0.2], 1.0, outputs=[-2, -1, 0, 1, 2, 3, 4]
    ... )
    >>> proof = optrand.solve(problem, LinearProgram()).certificate
    >>> proof.gap < 1e-9, round(proof.upper, 6)
    (True, 2.003059)
    """

    refusal = (
        "LinearProgram() takes outputs on a grid and a bias penalty of 0 or infinity: use solve(problem), which "
        "knows who takes what"
    )

    backend: Backend = field(default_factory=Highs)

    def is_quick(self, problem: Problem) -> bool:
        """Return whether the solver accepts the problem, and its table is so small that columns would take longer."""
        entries = problem.k * problem.outputs.values.size if isinstance(problem.outputs, Grid) else math.inf
        return problem.unbiased and entries <= 2_000 and self.accepts(problem)

    def accepts(self, problem: Problem) -> bool:
        """Return whether outputs are on a grid and the bias penalty is 0 or infinite."""
        return isinstance(problem.outputs, Grid) and (problem.unbiased or not problem.bias_penalty)

    def _solution(self, problem: Problem) -> Solution:
        # Labels and outputs over a power of two, which keeps neighbours apart, and losses over the loss of an answer.
        grid: Floats = problem.outputs.values  # type: ignore[union-attr]
        width = 2.0 ** math.frexp(float(np.abs(grid).max()))[1]
        unit = typical_loss(problem, grid)
        answer = Program(
            problem.labels / width,
            problem.prior,
            grid / width,
            loss=problem.loss_table(grid) / unit,
            privacy=Pure(problem.epsilon, form="floor"),
            constraints=[Unbiased()] if problem.unbiased else [],
        ).solve(self.backend)
        if not answer.point.size:
            raise SolverFailed(f"{answer.backend} ended with the status {answer.message!r} and no answer to read")
        beta = unit / width * answer.duals["mean"] if problem.unbiased else np.zeros(problem.k)
        dual = Dual(unit * answer.duals["sum"], beta)
        # Entries that differ by rounding alone make no staircase of their own.
        columns = decompose(
            read_table(problem, answer.table), math.exp(problem.epsilon), negligible=rounding_noise(problem.epsilon)
        )
        randomizer = randomizer_of(problem, mend_masses(problem, columns, means=problem.unbiased))
        return Solution(problem, randomizer, dual, Stats("", iterations=answer.iterations, status=answer.message))


def read_table(problem: Problem, table: Floats) -> Randomizer:
    """Convert a backend's table to a randomizer: move entries into the cone of private columns, drop unused outputs.

    Simplex answers break privacy by their tolerance, infinitely so where an entry that should be tiny is 0; lifting
    each column's small entries to ``max / exp(epsilon)`` mends that and moves the row sums by no more than the
    tolerance did.
    """
    top = np.maximum(table.max(axis=0), 0.0)
    if not isinstance(problem.outputs, Grid):
        raise InvalidInput("only a table over a grid can be read")
    # Outputs of no more probability than the backend's tolerance are left out.
    used = top > 1e-10
    top, table = top[used], table[:, used]
    lifted = np.clip(table, top * math.exp(-problem.epsilon), top)
    return Randomizer(problem.labels, problem.outputs.values[used], lifted, problem.epsilon)
