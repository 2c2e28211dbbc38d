r"""Randomizers without any care for bias as a linear program over interval staircase columns.

Each interval of labels has its best output in closed form, so a mass for each is all that is left to find: rows of the
table sum to one, and written as differences of neighbouring labels these equations are flow conservation on a line, in
which an interval touches two rows only. The optimum is a single path, which :class:`optrand.solvers.BinPath` finds
faster; the program remains as its witness, and takes any family of columns, not intervals only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optrand import losses
from optrand.problem import Problem
from optrand.programs.linear import LP, LPSolution
from optrand.solution import Dual
from optrand.staircase import Staircase
from optrand.validation import Floats

__all__ = ["LinearFlow", "all_intervals", "differences", "undifferenced"]


def all_intervals(k: int) -> NDArray[np.bool_]:
    """Every non-empty interval of ``k`` labels, shape ``(k, k (k + 1) / 2)``."""
    first, last = np.triu_indices(k)
    labels = np.arange(k)[:, np.newaxis]
    return (first <= labels) & (labels <= last)


def differences(table: sparse.csr_array) -> sparse.csr_array:
    """The first row of a table, then each row less the one before it."""
    k = table.shape[0]
    step = sparse.eye_array(k, format="csr") - sparse.eye_array(k, k=-1, format="csr")
    result = sparse.csr_array(step @ table)
    result.eliminate_zeros()
    return result


def undifferenced(multipliers: Floats) -> Floats:
    """Multipliers of the rows themselves from those of their differences."""
    own: Floats = multipliers - np.append(multipliers[1:], 0.0)
    return own


@dataclass(frozen=True, eq=False)
class LinearFlow:
    """The linear program over masses that is left where there is no care for bias.

    Attributes
    ----------
    problem : Problem
        With squared, absolute or Poisson log loss, a bias penalty of 0, and outputs on the line or an interval.
    members : (k, arcs) array of bool
        The sets of labels that columns may favour.
    """

    problem: Problem
    members: NDArray[np.bool_]

    @cached_property
    def weights(self) -> Floats:
        """The columns over ``E``, times the prior."""
        return _steepness(self.problem, self.members) * self.problem.prior[:, np.newaxis]

    @cached_property
    def outputs(self) -> Floats:
        """The best output of each column: a weighted mean of the labels, or a weighted median, within the interval."""
        problem, weights = self.problem, self.weights
        if problem.loss == losses.absolute:
            middle = (weights.cumsum(axis=0) >= weights.sum(axis=0) / 2).argmax(axis=0)
            best = problem.labels[middle]
        else:
            best = problem.labels[0] + (problem.labels - problem.labels[0]) @ weights / weights.sum(axis=0)
        within: Floats = np.clip(best, problem.outputs.low, problem.outputs.high)
        return within

    @cached_property
    def costs(self) -> Floats:
        """The loss of each column at its best output, over ``E``."""
        costs: Floats = (self.weights * self.problem.loss_table(self.outputs)).sum(axis=0)
        return costs

    @property
    def unit(self) -> float:
        """What the costs are divided by."""
        return float(np.abs(self.costs).max()) or 1.0

    def build(self) -> LP:
        """The program; ``x`` are the masses times ``E``."""
        first = np.zeros(self.problem.k)
        first[0] = 1.0
        rows = differences(sparse.csr_array(_steepness(self.problem, self.members)))
        return LP(self.costs / self.unit, rows, first, sparse.csr_array((0, self.costs.size)), np.zeros(0))

    def read(self, answer: LPSolution) -> tuple[Staircase, Dual]:
        """The columns in use and the multipliers of the rows."""
        used = answer.x > 0
        masses = np.maximum(answer.x, 0.0) * math.exp(-self.problem.epsilon)
        dual = Dual(self.unit * undifferenced(answer.equal_dual), np.zeros(self.problem.k))
        return Staircase(self.members, self.outputs, masses).only(used), dual


def _steepness(problem: Problem, members: NDArray[np.bool_]) -> Floats:
    """Staircase columns over ``E``: 1 for the favoured labels and ``exp(-epsilon)`` for the others."""
    return np.where(members, 1.0, math.exp(-problem.epsilon))
