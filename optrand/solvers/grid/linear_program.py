r"""Any problem on a grid as one linear program with a floor per output.

It has the optimum of the program with a row per pair of labels, and ``k n`` rows of privacy instead of ``n k (k - 1)``.

Each column lies between its floor :math:`m_i` and :math:`e^\epsilon m_i`. With the excess :math:`x_{y i} = M_{y i} -
m_i` and the floor scaled, :math:`a_i = (e^\epsilon - 1) m_i`, all coefficients but those of the floor in a row sum are
1:

.. math:: 0 \leq x_{y i} \leq a_i, \qquad M_{y i} = \frac{a_i}{e^\epsilon - 1} + x_{y i}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from optrand.base.validation import Floats
from optrand.errors import InvalidInput
from optrand.model.outputs import Grid
from optrand.model.problem import Dual, Problem
from optrand.model.randomizer import Randomizer, Solution, Stats
from optrand.model.staircase import decompose, rounding_noise
from optrand.programs.backends import Backend, Highs
from optrand.solvers.backends.linear import LP, LPSolution, solve_linear
from optrand.solvers.dual_repair import randomizer_of
from optrand.solvers.failures import GuardedSolver
from optrand.solvers.feasibility import mend_masses
from optrand.solvers.scales import typical_loss

__all__ = ["Floor", "GridScale", "LinearProgram", "read_table"]

UNUSED = 1e-10
"""An output whose largest probability is below this is left out."""


@dataclass(frozen=True, eq=False)
class GridScale:
    """A problem on a grid in units that keep the numbers of a program near 1.

    Attributes
    ----------
    problem : Problem
    outputs : (n,) array
        The grid, less its middle, over half its width.
    labels : (k,) array
        The labels in the same units.
    costs : (k, n) array
        ``p_y g(v_i, y)`` over `unit`.
    unit : float
        About what an answer costs.
    """

    problem: Problem
    outputs: Floats
    labels: Floats
    costs: Floats
    unit: float
    centre: float
    width: float

    @classmethod
    def of(cls, problem: Problem) -> GridScale:
        """Scale a problem whose outputs are a grid and whose bias penalty is 0 or infinite."""
        if not isinstance(problem.outputs, Grid):
            raise InvalidInput("this program needs outputs on a grid: pass outputs= an array of values")
        if problem.bias_penalty and not problem.unbiased:
            raise InvalidInput("a linear program takes a bias penalty of 0 or math.inf: use solvers.ColumnGeneration()")
        grid = problem.outputs.values
        centre, width = (grid[0] + grid[-1]) / 2, (grid[-1] - grid[0]) / 2 or 1.0
        costs = problem.prior[:, np.newaxis] * problem.loss_table(grid)
        unit = typical_loss(problem, grid)
        return cls(
            problem, (grid - centre) / width, (problem.labels - centre) / width, costs / unit, unit, centre, width
        )

    def rows(self, table: sparse.csr_array) -> tuple[sparse.csr_array, Floats]:
        """Return the equations of normalisation, and of unbiasedness if required, for the table ``table @ x``."""
        k = self.problem.k
        sums = sparse.kron(sparse.eye_array(k), np.ones((1, self.outputs.size)))
        if not self.problem.unbiased:
            return sparse.csr_array(sums @ table), np.ones(k)
        means = sparse.kron(sparse.eye_array(k), self.outputs[np.newaxis, :])
        return sparse.csr_array(sparse.vstack((sums, means)) @ table), np.concatenate((np.ones(k), self.labels))

    def dual(self, multipliers: Floats) -> Dual:
        """Return the multipliers of :meth:`rows` in the units of the problem."""
        k = self.problem.k
        alpha = self.unit * multipliers[:k]
        if not self.problem.unbiased:
            return Dual(alpha, np.zeros(k))
        beta = self.unit * multipliers[k:] / self.width
        return Dual(alpha - beta * self.centre, beta)


def read_table(problem: Problem, table: Floats) -> Randomizer:
    """Convert a backend's table to a randomizer: move entries into the cone of private columns, drop unused outputs.

    Simplex answers break privacy by their tolerance, infinitely so where an entry that should be tiny is 0; lifting
    each column's small entries to ``max / exp(epsilon)`` mends that and moves the row sums by no more than the
    tolerance did.
    """
    top = np.maximum(table.max(axis=0), 0.0)
    if not isinstance(problem.outputs, Grid):
        raise InvalidInput("only a table over a grid can be read")
    used = top > UNUSED
    top, table = top[used], table[:, used]
    lifted = np.clip(table, top * math.exp(-problem.epsilon), top)
    return Randomizer(problem.labels, problem.outputs.values[used], lifted, problem.epsilon)


@dataclass(frozen=True)
class Floor:
    """One floor variable per output; variables ``a_i``, then ``x[y, i]`` row by row."""

    def build(self, problem: Problem) -> LP:
        """Build the program of `problem`, whose outputs must be a grid."""
        scale = GridScale.of(problem)
        k, n = problem.k, scale.outputs.size
        table = self._table(problem, n)
        equal, equal_to = scale.rows(table)
        below = sparse.kron(np.ones((k, 1)), -sparse.eye_array(n))
        less = sparse.csr_array(sparse.hstack((below, sparse.eye_array(k * n))))
        cost: Floats = scale.costs.ravel() @ table
        return LP(cost, equal, equal_to, less, np.zeros(k * n))

    def read(self, problem: Problem, answer: LPSolution) -> tuple[Randomizer, Dual]:
        """Return the randomizer and the multipliers of an answer to :meth:`build`."""
        scale = GridScale.of(problem)
        table: Floats = (self._table(problem, scale.outputs.size) @ answer.x).reshape(problem.k, -1)
        return read_table(problem, table), scale.dual(answer.equal_dual)

    @staticmethod
    def _table(problem: Problem, n: int) -> sparse.csr_array:
        floor = sparse.kron(np.ones((problem.k, 1)), sparse.eye_array(n) / math.expm1(problem.epsilon))
        return sparse.csr_array(sparse.hstack((floor, sparse.eye_array(problem.k * n))))


@dataclass(frozen=True)
class LinearProgram(GuardedSolver):
    """Solve the program with a floor per output (:class:`~optrand.solvers.grid.linear_program.Floor`).

    The programs as they are printed are in :mod:`optrand.programs`.

    Attributes
    ----------
    backend : Backend
        Backend of :mod:`optrand.programs.backends`: `Highs`, `Scipy` or `Cvxpy`.

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

    def accepts(self, problem: Problem) -> bool:
        """Return whether outputs are on a grid and the bias penalty is 0 or infinite."""
        return isinstance(problem.outputs, Grid) and (problem.unbiased or not problem.bias_penalty)

    def _solution(self, problem: Problem) -> Solution:
        program = Floor()
        answer = solve_linear(program.build(problem), self.backend)
        randomizer, dual = program.read(problem, answer)
        stats = Stats(repr(self), iterations=answer.iterations, status=answer.status)
        return Solution(problem, _mend(problem, randomizer), dual, stats)


def _mend(problem: Problem, randomizer: Randomizer) -> Randomizer:
    """Restore rows and means to the last digits, if a backend stopped at its tolerance."""
    arcs = decompose(randomizer, math.exp(problem.epsilon), negligible=rounding_noise(problem.epsilon))
    return randomizer_of(problem, mend_masses(problem, arcs, means=problem.unbiased))
