r"""Linear program with one floor per output: the same optimum, ``k n`` privacy rows instead of ``n k (k - 1)``.

Each column lies between its floor :math:`m_i` and :math:`e^\epsilon m_i`. With the excess :math:`x_{y i} = M_{y i} -
m_i` and the floor scaled, :math:`a_i = (e^\epsilon - 1) m_i`, all coefficients but those of the floor in a row sum are
1:

.. math:: 0 \leq x_{y i} \leq a_i, \qquad M_{y i} = \frac{a_i}{e^\epsilon - 1} + x_{y i}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from optrand.base.validation import Floats
from optrand.model.problem import Dual, Problem
from optrand.model.randomizer import Randomizer
from optrand.solvers.backends.linear import LP, LPSolution
from optrand.solvers.grid.program import GridScale, read_table

__all__ = ["Floor"]


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
