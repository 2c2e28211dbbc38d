r"""The relaxation in the proof of [G21], Theorem 3: only the diagonal :math:`q_y = \Pr[R(y) = y]` is left.

.. math:: \max_q \sum_y p_y q_y \quad\text{s.t.}\quad q_y + e^{-\epsilon} \sum_{y' \neq y} q_{y'} \leq 1, \quad q \geq
          0.

Its vertices are the diagonals of randomized response on a subset of the labels, so its optimum is that of LP1. The rows
are kept as printed, with :math:`e^{-\epsilon}`; they are ``K`` in number, and no row is a difference of two
probabilities, so the trap of rows ``exp(-epsilon) M <= M'`` at large epsilon does not arise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from optrand.errors import InvalidInput
from optrand.model import losses
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Dual
from optrand.solvers.backends.linear import LP, LPSolution

__all__ = ["LP2"]


@dataclass(frozen=True)
class LP2:
    """LP2 of [G21], for classification only."""

    def build(self, problem: Problem) -> LP:
        """The program, turned into a minimisation."""
        if problem.loss != losses.zero_one:
            raise InvalidInput("LP2 is a program of classification only: use programs.Floor()")
        k = problem.k
        rows = np.full((k, k), math.exp(-problem.epsilon))
        np.fill_diagonal(rows, 1.0)
        nothing = sparse.csr_array((0, k))
        return LP(-problem.prior, nothing, np.zeros(0), sparse.csr_array(rows), np.ones(k))

    def read(self, problem: Problem, answer: LPSolution) -> tuple[Randomizer, Dual]:
        r"""Randomized response on the labels with positive ``q``, and the row multipliers as those of LP1.

        With :math:`\nu \geq 0` the multipliers of the rows, the column of label ``j`` has a reduced cost of at least
        :math:`\nu_j + e^{-\epsilon} \sum_{y \neq j} \nu_y - p_j \geq 0` in LP1, up to the factor
        :math:`e^\epsilon`, once the terms above are put at their smallest; so :math:`\alpha = -\nu` is dual feasible
        for LP1.
        """
        kept = answer.x > 0.5 * answer.x.max()
        outputs = problem.labels[kept]
        k = outputs.size
        hit = problem.labels[:, np.newaxis] == outputs
        low = 1 / (math.exp(problem.epsilon) + k - 1)
        matrix = np.where(hit, low * math.exp(problem.epsilon), low)
        matrix[~kept] = 1 / k
        return Randomizer(problem.labels, outputs, matrix, problem.epsilon), Dual(answer.less_dual, np.zeros(problem.k))
