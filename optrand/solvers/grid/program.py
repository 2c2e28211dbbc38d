"""Shared parts of the programs on a grid: scaling, the rows of normalisation and bias, and reading the table back."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from optrand.base.validation import Floats
from optrand.errors import InvalidInput
from optrand.model.outputs import Grid
from optrand.model.problem import Dual, Problem
from optrand.model.randomizer import Randomizer
from optrand.solvers.scales import typical_loss

__all__ = ["GridScale", "read_table"]

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
        """Normalisation, then unbiasedness if asked for, as equations on variables whose table is ``table @ x``."""
        k = self.problem.k
        sums = sparse.kron(sparse.eye_array(k), np.ones((1, self.outputs.size)))
        if not self.problem.unbiased:
            return sparse.csr_array(sums @ table), np.ones(k)
        means = sparse.kron(sparse.eye_array(k), self.outputs[np.newaxis, :])
        return sparse.csr_array(sparse.vstack((sums, means)) @ table), np.concatenate((np.ones(k), self.labels))

    def dual(self, multipliers: Floats) -> Dual:
        """Multipliers of :meth:`rows` in the units of the problem."""
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
