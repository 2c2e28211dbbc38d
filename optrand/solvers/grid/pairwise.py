r"""The programs as the papers print them: one privacy row for every output and every ordered pair of labels.

[G21], LP1 (on a classification problem) and [B23], Algorithm 1 (on an unbiased one):

.. math:: \min_M \sum_y p_y \sum_i M_{y i}\, g(v_i, y) \quad\text{s.t.}\quad
          M_{y' i} \leq e^\epsilon M_{y i}, \quad \sum_i M_{y i} = 1, \quad \sum_i M_{y i} v_i = y, \quad M \geq 0.

``n k (k - 1)`` rows: kept as the printed form to compare with; :mod:`optrand.solvers.grid.floor` has the same optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from optrand.base.validation import Floats
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Dual
from optrand.solvers.backends.linear import LP, LPSolution
from optrand.solvers.grid.program import GridScale, read_table

__all__ = ["Pairwise"]


@dataclass(frozen=True)
class Pairwise:
    """All pairs of labels, as printed."""

    def build(self, problem: Problem) -> LP:
        """The program of `problem`, whose outputs must be a grid; variables ``M[y, i]``, row by row."""
        scale = GridScale.of(problem)
        k, n = problem.k, scale.outputs.size
        equal, equal_to = scale.rows(sparse.eye_array(k * n, format="csr"))
        first, second = (pair.ravel() for pair in np.nonzero(~np.eye(k, dtype=bool)))
        pairs = np.arange(first.size)
        privacy = sparse.coo_array(
            (
                np.concatenate((np.ones(first.size), np.full(first.size, -math.exp(problem.epsilon)))),
                (np.concatenate((pairs, pairs)), np.concatenate((first, second))),
            ),
            shape=(first.size, k),
        )
        less = sparse.csr_array(sparse.kron(privacy, sparse.eye_array(n)))
        return LP(scale.costs.ravel(), equal, equal_to, less, np.zeros(first.size * n))

    def read(self, problem: Problem, answer: LPSolution) -> tuple[Randomizer, Dual]:
        """The randomizer and the multipliers of an answer to :meth:`build`."""
        scale = GridScale.of(problem)
        table: Floats = answer.x.reshape(problem.k, -1)
        return read_table(problem, table), scale.dual(answer.equal_dual)
